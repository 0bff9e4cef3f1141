//! What an operator does about records that no attempt settles.

use super::bench::{
    Bench, Checked, LEASE, LONG, begun, completed, differs, done, fail, granted, held, holds, running, same,
    settled, tokens, unchanged, within,
};
use super::checks;
use crate::key::RecordKey;
use crate::store::{Compared, OwnerToken, Reserve, Resolution, Settled, Step, Stored, TakeOver};

checks!("operating":
    resolve_done_settles,
    resolve_done_again_changes_nothing,
    resolve_done_may_be_a_failure,
    resolve_shuts_out_the_late_owner,
    resolve_not_done_deletes,
    resolve_not_done_keeps_finished_steps,
    resolve_leaves_the_rest_alone,
    forget_deletes,
    forget_leaves_the_rest_alone,
    forgotten_owner_is_powerless,
    forget_again_finds_nothing,
    resolve_not_done_again_changes_nothing,
    renewed_record_is_left_alone,
    exhausted_record_is_resolved,
    unused_record_is_resolved,
);

fn resolved(bytes: &[u8]) -> Resolution {
    Resolution::Done { settled: completed(bytes), keep: LONG }
}

/// Records that wait for an operator: abandoned, unknown, not retained.
async fn waiting(t: &Bench, owner: OwnerToken, steps: &[Step]) -> Checked<Vec<RecordKey>> {
    let mut keys = Vec::new();
    for end in [None, Some(Settled::Unknown), Some(Settled::NotRetained)] {
        let key = t.key();
        t.grant(&key, owner).await?;
        t.store.begin_effects(&key, owner, LEASE).await?;
        for step in steps {
            t.store.put_step(&key, owner, step, LEASE).await?;
        }
        match end {
            None => t.abandon(&key, owner).await?,
            Some(end) => t.complete(&key, owner, &end).await?,
        }
        keys.push(key);
    }
    Ok(keys)
}

async fn resolve(t: &Bench, key: &RecordKey, seen: OwnerToken, new: OwnerToken, as_: &Resolution) -> Checked {
    match t.store.resolve(key, seen, new, as_).await? {
        Compared::Changed => Ok(()),
        Compared::Differs(record) => fail(format!("resolve: expected it changed, saw {record:?}")),
    }
}

async fn resolve_done_settles(t: &Bench) -> Checked {
    let [a, fresh] = tokens();
    for key in waiting(t, a, &[done("one", b"1")]).await? {
        let before = t.load(&key).await?;
        resolve(t, &key, a, fresh, &resolved(b"found")).await?;
        let record = t.load(&key).await?;
        same("state", &settled("state", &record)?, &completed(b"found"))?;
        same("owner", &record.owner, &fresh)?;
        same("steps", &record.steps, &vec![])?;
        same("fingerprint", &record.fingerprint, &before.fingerprint)?;
        same("created_at", &record.created_at, &before.created_at)?;
        within("expires_in", record.expires_in, LONG)?;
        let [b] = tokens();
        held("a call afterwards", t.reserve(&key, b).await?)?;
    }
    Ok(())
}

async fn resolve_done_again_changes_nothing(t: &Bench) -> Checked {
    let [a, fresh] = tokens();
    for key in waiting(t, a, &[]).await? {
        resolve(t, &key, a, fresh, &resolved(b"found")).await?;
        let before = t.load(&key).await?;
        resolve(t, &key, a, fresh, &resolved(b"found")).await?;
        t.still("the record", &before).await?;
    }
    Ok(())
}

async fn resolve_done_may_be_a_failure(t: &Bench) -> Checked {
    let [a, fresh] = tokens();
    let failed = Settled::Failed(Stored { version: 3, bytes: b"declined".as_slice().into() });
    for key in waiting(t, a, &[]).await? {
        resolve(t, &key, a, fresh, &Resolution::Done { settled: failed.clone(), keep: LONG }).await?;
        same("state", &settled("state", &t.load(&key).await?)?, &failed)?;
    }
    Ok(())
}

async fn resolve_shuts_out_the_late_owner(t: &Bench) -> Checked {
    let [a, fresh] = tokens();
    for key in waiting(t, a, &[]).await? {
        resolve(t, &key, a, fresh, &resolved(b"found")).await?;
        t.powerless("the late owner", &key, a).await?;
    }
    Ok(())
}

async fn resolve_not_done_deletes(t: &Bench) -> Checked {
    let [a, b, fresh] = tokens();
    for key in waiting(t, a, &[begun("one")]).await? {
        resolve(t, &key, a, fresh, &Resolution::NotDone).await?;
        t.absent("afterwards", &key).await?;
        t.powerless("the late owner, without a record", &key, a).await?;
        let grant = t.grant(&key, b).await?;
        same("attempt", &grant.attempt, &1)?;
        same("steps", &grant.steps, &vec![])?;
        t.powerless("the late owner, beside a new attempt", &key, a).await?;
    }
    Ok(())
}

async fn resolve_not_done_keeps_finished_steps(t: &Bench) -> Checked {
    let [a, b, fresh] = tokens();
    // Not of the record that is not retained: its body ran to the end, so its steps are gone.
    for key in waiting(t, a, &[done("one", b"1"), begun("two")]).await?.into_iter().take(2) {
        resolve(t, &key, a, fresh, &Resolution::NotDone).await?;
        let record = t.load(&key).await?;
        holds("the lease is over", record.state.is_abandoned())?;
        same("effects_begun", &running("state", &record)?.1, &false)?;
        same("owner", &record.owner, &fresh)?;
        same("steps", &record.steps, &vec![done("one", b"1")])?;
        within("expires_in", record.expires_in, LONG + LONG)?;
        t.powerless("the late owner", &key, a).await?;
        let careful = Reserve { take_over: TakeOver::BetweenSteps, max_attempts: 1, ..t.request(&key, b) };
        let grant = granted("a careful call", t.store.reserve(careful).await?)?;
        same("the attempts are counted anew", &grant.attempt, &1)?;
        holds("the fence is greater", grant.fence > record.fence)?;
        same("steps of the grant", &grant.steps, &vec![done("one", b"1")])?;
    }
    Ok(())
}

async fn resolve_leaves_the_rest_alone(t: &Bench) -> Checked {
    let [a, fresh, stranger] = tokens();
    let live = t.key();
    t.grant(&live, a).await?;
    let mut cases = vec![(live, a)];
    for end in [completed(b"result"), Settled::Failed(Stored { version: 1, bytes: [].into() })] {
        let key = t.key();
        t.grant(&key, a).await?;
        t.complete(&key, a, &end).await?;
        cases.push((key, a));
    }
    cases.extend(waiting(t, a, &[]).await?.into_iter().map(|key| (key, stranger)));
    for (key, seen) in cases {
        let before = t.load(&key).await?;
        for resolution in [resolved(b"wrong"), Resolution::NotDone] {
            let compared = t.store.resolve(&key, seen, fresh, &resolution).await?;
            match differs("resolve", compared)? {
                Some(record) => unchanged("what is shown", &before, &record)?,
                None => return fail("resolve: expected to be shown the record, saw none"),
            }
            t.still("the record", &before).await?;
        }
    }
    let absent = t.key();
    let compared = t.store.resolve(&absent, a, fresh, &resolved(b"ghost")).await?;
    same("resolve of an absent record", &differs("resolve", compared)?, &None)?;
    t.absent("afterwards", &absent).await
}

async fn forget_deletes(t: &Bench) -> Checked {
    let [a, b] = tokens();
    let mut keys = waiting(t, a, &[done("one", b"1")]).await?;
    let key = t.key();
    t.grant(&key, a).await?;
    t.complete(&key, a, &completed(b"result")).await?;
    keys.push(key);
    for key in keys {
        same("forget", &t.store.forget(&key, a).await?, &Compared::Changed)?;
        t.absent("afterwards", &key).await?;
        let grant = t.grant(&key, b).await?;
        same("attempt", &grant.attempt, &1)?;
        same("steps", &grant.steps, &vec![])?;
    }
    Ok(())
}

async fn forget_leaves_the_rest_alone(t: &Bench) -> Checked {
    let [a, stranger] = tokens();
    let live = t.key();
    t.grant(&live, a).await?;
    let done = t.key();
    t.grant(&done, a).await?;
    t.complete(&done, a, &completed(b"result")).await?;
    let mut cases = vec![(live, a), (done, stranger)];
    cases.extend(waiting(t, a, &[]).await?.into_iter().map(|key| (key, stranger)));
    for (key, seen) in cases {
        let before = t.load(&key).await?;
        match differs("forget", t.store.forget(&key, seen).await?)? {
            Some(record) => unchanged("what is shown", &before, &record)?,
            None => return fail("forget: expected to be shown the record, saw none"),
        }
        t.still("the record", &before).await?;
    }
    let absent = t.store.forget(&t.key(), a).await?;
    same("forget of an absent record", &differs("forget", absent)?, &None)
}

async fn forgotten_owner_is_powerless(t: &Bench) -> Checked {
    let [a, b] = tokens();
    let key = t.key();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    same("forget", &t.store.forget(&key, a).await?, &Compared::Changed)?;
    t.powerless("the forgotten owner, without a record", &key, a).await?;
    t.grant(&key, b).await?;
    t.powerless("the forgotten owner, beside a new attempt", &key, a).await
}

/// The answer of the first may have been lost: the second must not delete what has come since.
async fn forget_again_finds_nothing(t: &Bench) -> Checked {
    let [a, b] = tokens();
    for key in waiting(t, a, &[done("one", b"1")]).await? {
        same("forget", &t.store.forget(&key, a).await?, &Compared::Changed)?;
        same("forget again", &differs("forget again", t.store.forget(&key, a).await?)?, &None)?;
        t.absent("afterwards", &key).await?;
        t.grant(&key, b).await?;
        t.abandon(&key, b).await?;
        let before = t.load(&key).await?;
        holds("the next record is shown", differs("forget", t.store.forget(&key, a).await?)?.is_some())?;
        t.still("the next record", &before).await?;
    }
    Ok(())
}

async fn resolve_not_done_again_changes_nothing(t: &Bench) -> Checked {
    let [a, b, fresh] = tokens();
    // Those that have finished steps stay, and are recognised by their new token.
    for key in waiting(t, a, &[done("one", b"1"), begun("two")]).await?.into_iter().take(2) {
        resolve(t, &key, a, fresh, &Resolution::NotDone).await?;
        let before = t.load(&key).await?;
        resolve(t, &key, a, fresh, &Resolution::NotDone).await?;
        t.still("the record", &before).await?;
        t.grant(&key, b).await?;
        let before = t.load(&key).await?;
        let compared = t.store.resolve(&key, a, fresh, &Resolution::NotDone).await?;
        holds("the next attempt is shown", differs("resolve", compared)?.is_some())?;
        t.still("the next attempt", &before).await?;
    }
    for key in waiting(t, a, &[]).await? {
        resolve(t, &key, a, fresh, &Resolution::NotDone).await?;
        let compared = t.store.resolve(&key, a, fresh, &Resolution::NotDone).await?;
        same("resolve again", &differs("resolve again", compared)?, &None)?;
        t.absent("afterwards", &key).await?;
    }
    Ok(())
}

/// It was seen with its lease over, and has given a sign of life since: under the token that was seen.
async fn renewed_record_is_left_alone(t: &Bench) -> Checked {
    let [a, fresh] = tokens();
    let key = t.key();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    t.store.renew(&key, a, LEASE).await?;
    let before = t.load(&key).await?;
    for resolution in [resolved(b"wrong"), Resolution::NotDone] {
        let compared = t.store.resolve(&key, a, fresh, &resolution).await?;
        holds("it is shown", differs("resolve", compared)?.is_some())?;
        t.still("the record", &before).await?;
    }
    holds("it is shown", differs("forget", t.store.forget(&key, a).await?)?.is_some())?;
    t.still("the record", &before).await
}

async fn exhausted_record_is_resolved(t: &Bench) -> Checked {
    let [a, b, c, fresh] = tokens();
    for resolution in [resolved(b"found"), Resolution::NotDone] {
        let key = t.key();
        t.grant(&key, a).await?;
        t.store.put_step(&key, a, &done("one", b"1"), LEASE).await?;
        t.abandon(&key, a).await?;
        t.store.reserve(Reserve { max_attempts: 1, ..t.request(&key, b) }).await?;
        // Not with the token of an attempt that does not have it any more.
        holds(
            "it is shown",
            differs("resolve", t.store.resolve(&key, a, fresh, &resolution).await?)?.is_some(),
        )?;
        resolve(t, &key, OwnerToken::NOBODY, fresh, &resolution).await?;
        if resolution != Resolution::NotDone {
            same("state", &settled("state", &t.load(&key).await?)?, &completed(b"found"))?;
            continue;
        }
        let request = Reserve { max_attempts: 1, ..t.request(&key, c) };
        let grant = granted("the next call", t.store.reserve(request).await?)?;
        same("attempt", &grant.attempt, &1)?;
        same("steps", &grant.steps, &vec![done("one", b"1")])?;
    }
    Ok(())
}

async fn unused_record_is_resolved(t: &Bench) -> Checked {
    let [a, b, fresh] = tokens();
    for resolution in [resolved(b"found"), Resolution::NotDone] {
        let key = t.key();
        t.grant(&key, a).await?;
        t.abandon(&key, a).await?;
        t.grant(&key, b).await?;
        t.store.release(&key, b, crate::store::Release::Unused).await?;
        resolve(t, &key, OwnerToken::NOBODY, fresh, &resolution).await?;
        match t.store.load(&key).await? {
            None => same("resolved as", &resolution, &Resolution::NotDone)?,
            Some(record) => same("state", &settled("state", &record)?, &completed(b"found"))?,
        }
    }
    Ok(())
}
