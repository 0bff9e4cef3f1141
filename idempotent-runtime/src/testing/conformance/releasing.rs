//! How an attempt ends without a result.

use std::time::Duration;

use super::bench::{
    Bench, Checked, LEASE, LONG, begun, done, granted, held, holds, running, same, tokens, within,
};
use super::checks;
use crate::key::RecordKey;
use crate::store::{Lease, OwnerToken, Release, Reserve, Step, TakeOver, Write};

checks!("releasing":
    forget_deletes,
    forget_deletes_after_the_lease,
    forget_again_is_applied,
    forget_deletes_a_record_whose_steps_only_began,
    forget_keeps_finished_steps,
    forget_with_finished_steps_again_changes_nothing,
    released_key_is_closed_to_the_old_owner,
    abandon_ends_the_lease_and_nothing_else,
    end_of_the_lease_moves_the_expiry,
    abandon_again_changes_nothing,
    unused_attempt_is_not_counted,
    unused_attempt_again_is_taken_off_once,
    unused_attempt_after_its_lease_is_taken_off,
    unused_attempt_does_not_use_up_the_last,
    unused_first_attempt_is_deleted,
);

async fn release(t: &Bench, key: &RecordKey, owner: OwnerToken, how: Release) -> Checked {
    same(&format!("release ({how:?})"), &t.store.release(key, owner, how).await?, &Write::Applied)
}

async fn with_steps(t: &Bench, owner: OwnerToken, steps: &[Step]) -> Checked<RecordKey> {
    let key = t.key();
    t.grant(&key, owner).await?;
    t.store.begin_effects(&key, owner, LEASE).await?;
    for step in steps {
        t.store.put_step(&key, owner, step, LEASE).await?;
    }
    Ok(key)
}

async fn forget_deletes(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    let first = t.grant(&key, a).await?;
    t.store.begin_effects(&key, a, LEASE).await?;
    release(t, &key, a, Release::Forget).await?;
    t.absent("afterwards", &key).await?;
    t.advance(Duration::from_millis(2)).await;
    let second = t.grant(&key, b).await?;
    same("attempt", &second.attempt, &1)?;
    holds("the fence of the new generation is greater", second.fence > first.fence)?;
    same("effects_begun", &running("state", &t.load(&key).await?)?.1, &false)
}

async fn forget_deletes_after_the_lease(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    release(t, &key, a, Release::Forget).await?;
    t.absent("afterwards", &key).await
}

async fn forget_again_is_applied(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    for how in [Release::Forget, Release::Forget, Release::Abandon] {
        release(t, &key, a, how).await?;
        t.absent("afterwards", &key).await?;
    }
    Ok(())
}

async fn forget_deletes_a_record_whose_steps_only_began(t: &Bench) -> Checked {
    let [a, b] = tokens();
    let key = with_steps(t, a, &[begun("one")]).await?;
    release(t, &key, a, Release::Forget).await?;
    t.absent("afterwards", &key).await?;
    same("steps of the next generation", &t.grant(&key, b).await?.steps, &vec![])
}

async fn forget_keeps_finished_steps(t: &Bench) -> Checked {
    let [a, b] = tokens();
    let kept = vec![done("one", b"1"), done("three", b"3")];
    let key = with_steps(t, a, &[done("one", b"1"), begun("two"), done("three", b"3")]).await?;
    release(t, &key, a, Release::Forget).await?;
    let record = t.load(&key).await?;
    holds("the lease is over", record.state.is_abandoned())?;
    same("effects_begun", &running("state", &record)?.1, &false)?;
    same("steps", &record.steps, &kept)?;
    let careful = Reserve { take_over: TakeOver::BetweenSteps, ..t.request(&key, b) };
    let grant = granted("a careful call", t.store.reserve(careful).await?)?;
    same("attempt", &grant.attempt, &2)?;
    same("steps of the grant", &grant.steps, &kept)
}

async fn forget_with_finished_steps_again_changes_nothing(t: &Bench) -> Checked {
    let [a] = tokens();
    let key = with_steps(t, a, &[done("one", b"1"), begun("two")]).await?;
    release(t, &key, a, Release::Forget).await?;
    let before = t.load(&key).await?;
    release(t, &key, a, Release::Forget).await?;
    t.still("the record", &before).await
}

async fn released_key_is_closed_to_the_old_owner(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    t.grant(&key, a).await?;
    release(t, &key, a, Release::Forget).await?;
    t.grant(&key, b).await?;
    t.powerless("the owner before the release", &key, a).await?;
    held("a reservation by the owner before the release", t.reserve(&key, a).await?).map(drop)
}

async fn abandon_ends_the_lease_and_nothing_else(t: &Bench) -> Checked {
    let [a] = tokens();
    let key = with_steps(t, a, &[done("one", b"1"), begun("two")]).await?;
    let before = t.load(&key).await?;
    release(t, &key, a, Release::Abandon).await?;
    holds("the lease is over", t.load(&key).await?.state.is_abandoned())?;
    t.still("everything else", &before).await
}

async fn end_of_the_lease_moves_the_expiry(t: &Bench) -> Checked {
    for how in [Release::Abandon, Release::Forget, Release::Unused] {
        let key = t.key();
        let [a] = tokens();
        let lease = Lease { duration: LONG, unknown_ttl: t.tick * 100 };
        granted("reserve", t.store.reserve(Reserve { lease, ..t.request(&key, a) }).await?)?;
        // So that there is something to keep.
        t.store.put_step(&key, a, &done("one", b"1"), lease).await?;
        release(t, &key, a, how).await?;
        let expires_in = t.load(&key).await?.expires_in;
        within(&format!("expires_in, counted from the end of the lease, {how:?}"), expires_in, t.tick * 100)?;
    }
    Ok(())
}

async fn abandon_again_changes_nothing(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    release(t, &key, a, Release::Abandon).await?;
    let before = t.load(&key).await?;
    release(t, &key, a, Release::Abandon).await?;
    t.still("the record", &before).await
}

async fn unused_attempt_is_not_counted(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b, c] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    let second = t.grant(&key, b).await?;
    release(t, &key, b, Release::Unused).await?;
    let record = t.load(&key).await?;
    holds("the lease is over", record.state.is_abandoned())?;
    same("attempts that count", &record.attempt, &1)?;
    let third = t.grant(&key, c).await?;
    same("the attempt after it", &third.attempt, &2)?;
    holds("the fence is greater all the same", third.fence > second.fence)
}

async fn unused_attempt_again_is_taken_off_once(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b, c] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    t.grant(&key, b).await?;
    release(t, &key, b, Release::Unused).await?;
    for _ in 0..2 {
        same("again", &t.store.release(&key, b, Release::Unused).await?, &Write::Lost)?;
        let record = t.load(&key).await?;
        same("attempts that count", &record.attempt, &1)?;
        same("owner", &record.owner, &OwnerToken::NOBODY)?;
    }
    same("the attempt after it", &t.grant(&key, c).await?.attempt, &2)
}

async fn unused_attempt_after_its_lease_is_taken_off(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    t.grant(&key, b).await?;
    t.abandon(&key, b).await?;
    release(t, &key, b, Release::Unused).await?;
    same("attempts that count", &t.load(&key).await?.attempt, &1)
}

async fn unused_first_attempt_is_deleted(t: &Bench) -> Checked {
    let [a, b] = tokens();
    let key = t.key();
    t.grant(&key, a).await?;
    for how in [Release::Unused, Release::Unused] {
        release(t, &key, a, how).await?;
        t.absent("afterwards", &key).await?;
    }
    let key = with_steps(t, a, &[done("one", b"1")]).await?;
    release(t, &key, a, Release::Unused).await?;
    same("finished steps stay", &t.grant(&key, b).await?.steps, &vec![done("one", b"1")])
}

async fn unused_attempt_does_not_use_up_the_last(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b, c] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    t.grant(&key, b).await?;
    release(t, &key, b, Release::Unused).await?;
    let request = Reserve { max_attempts: 2, ..t.request(&key, c) };
    same("the attempt after it", &granted("reserve", t.store.reserve(request).await?)?.attempt, &2)
}
