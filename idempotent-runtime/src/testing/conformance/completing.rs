//! How a record is settled by its owner.

use super::bench::{
    Bench, Checked, LEASE, LONG, begun, completed, done, holds, same, settled, tokens, within,
};
use super::checks;
use crate::store::{PutStep, Release, Settled, Stored, Write};

checks!("completing":
    owner_settles,
    again_changes_nothing,
    late_owner_may_still_settle,
    owner_settles_once,
    absent_record_is_not_made,
    deleted_record_does_not_come_back,
    steps_are_dropped,
    unknown_keeps_its_steps,
    completed_record_is_not_released,
);

async fn owner_settles(t: &Bench) -> Checked {
    let stored = || Stored { version: 7, bytes: b"bytes".as_slice().into() };
    for end in
        [Settled::Completed(stored()), Settled::Failed(stored()), Settled::NotRetained, Settled::Unknown]
    {
        let key = t.key();
        let [a] = tokens();
        let grant = t.grant(&key, a).await?;
        let before = t.load(&key).await?;
        t.complete(&key, a, &end).await?;
        let record = t.load(&key).await?;
        same("state", &settled("state", &record)?, &end)?;
        same("owner", &record.owner, &a)?;
        same("attempt", &record.attempt, &1)?;
        same("fence", &record.fence, &grant.fence)?;
        same("fingerprint", &record.fingerprint, &before.fingerprint)?;
        same("created_at", &record.created_at, &before.created_at)?;
        within("expires_in", record.expires_in, LONG)?;
    }
    Ok(())
}

async fn again_changes_nothing(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    t.complete(&key, a, &completed(b"first")).await?;
    let before = t.load(&key).await?;
    for end in [completed(b"first"), completed(b"second"), Settled::Unknown] {
        let write = t.store.complete(&key, a, &end, LONG * 9).await?;
        same("complete again by the owner", &write, &Write::Applied)?;
        let after = t.load(&key).await?;
        super::bench::unchanged("the record", &before, &after)?;
        within("expires_in, as the first time", after.expires_in, LONG)?;
    }
    Ok(())
}

async fn late_owner_may_still_settle(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    t.complete(&key, a, &completed(b"late")).await?;
    same("state", &settled("state", &t.load(&key).await?)?, &completed(b"late"))
}

async fn owner_settles_once(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    t.grant(&key, a).await?;
    t.complete(&key, a, &completed(b"first")).await?;
    let before = t.load(&key).await?;
    let write = t.store.complete(&key, b, &completed(b"second"), LONG).await?;
    same("complete by a stranger", &write, &Write::Lost)?;
    t.still("the record", &before).await
}

async fn absent_record_is_not_made(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    let write = t.store.complete(&key, a, &completed(b"ghost"), LONG).await?;
    same("complete of an absent record", &write, &Write::Lost)?;
    t.absent("afterwards", &key).await?;
    same("the first attempt", &t.grant(&key, b).await?.attempt, &1)
}

async fn deleted_record_does_not_come_back(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    same("release", &t.store.release(&key, a, Release::Forget).await?, &Write::Applied)?;
    let write = t.store.complete(&key, a, &completed(b"ghost"), LONG).await?;
    same("complete of a released record", &write, &Write::Lost)?;
    t.absent("afterwards", &key).await
}

async fn steps_are_dropped(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    for step in [done("one", b"1"), begun("two")] {
        same("put_step", &t.store.put_step(&key, a, &step, LEASE).await?, &PutStep::Stored)?;
    }
    t.complete(&key, a, &completed(b"result")).await?;
    same("steps", &t.load(&key).await?.steps, &vec![])
}

async fn unknown_keeps_its_steps(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    let steps = vec![done("one", b"1"), begun("two")];
    t.grant(&key, a).await?;
    for step in &steps {
        same("put_step", &t.store.put_step(&key, a, step, LEASE).await?, &PutStep::Stored)?;
    }
    t.complete(&key, a, &Settled::Unknown).await?;
    // Whoever finds out that it did not happen sends it back to work, where these must not be done again.
    same("steps", &t.load(&key).await?.steps, &steps)
}

async fn completed_record_is_not_released(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    t.complete(&key, a, &completed(b"result")).await?;
    let before = t.load(&key).await?;
    for how in [Release::Forget, Release::Abandon, Release::Unused] {
        same("release", &t.store.release(&key, a, how).await?, &Write::Lost)?;
        t.still("the record", &before).await?;
    }
    holds("the record is still settled", !before.state.is_abandoned())
}
