//! The longest and the shortest spans: no sum of them overflows, and none stands for something else.

use std::time::Duration;

use super::bench::{
    Bench, Checked, LEASE, LONG, begun, completed, differs, done, granted, held, holds, running, same,
    settled, tokens, within,
};
use super::checks;
use crate::key::RecordKey;
use crate::store::{Lease, OwnerToken, PutStep, Release, Reserve, Resolution, Settled, Write};

checks!("spans":
    longest_lease_is_a_lease,
    longest_lease_ends_when_it_is_ended,
    longest_silence_is_kept,
    longest_result_is_kept,
    nothing_is_kept_for_no_time,
    lease_and_silence_of_zero_leave_nothing,
    expired_token_is_granted_anew,
);

const LONGEST: Lease = Lease { duration: Duration::MAX, unknown_ttl: LONG };

async fn with_lease(t: &Bench, owner: OwnerToken, lease: Lease) -> Checked<RecordKey> {
    let key = t.key();
    granted("reserve", t.store.reserve(Reserve { lease, ..t.request(&key, owner) }).await?)?;
    Ok(key)
}

async fn longest_lease_is_a_lease(t: &Bench) -> Checked {
    let [a, b] = tokens();
    let key = with_lease(t, a, LONGEST).await?;
    same("renew", &t.store.renew(&key, a, LONGEST).await?, &Write::Applied)?;
    same("begin_effects", &t.store.begin_effects(&key, a, LONGEST).await?, &Write::Applied)?;
    let put = t.store.put_step(&key, a, &begun("one"), LONGEST).await?;
    same("put_step", &put, &PutStep::Stored)?;
    let record = held("another call", t.reserve(&key, b).await?)?;
    holds("the lease is long", running("state", &record)?.0 > LONG)?;
    t.complete(&key, a, &completed(b"result")).await?;
    within("expires_in of the result", t.load(&key).await?.expires_in, LONG)
}

/// Whoever ends a lease ends it now, however long it was to be; what is remembered of the attempt is `unknown_ttl` more.
async fn longest_lease_ends_when_it_is_ended(t: &Bench) -> Checked {
    for how in [Release::Abandon, Release::Unused, Release::Forget] {
        let [a] = tokens();
        let key = with_lease(t, a, LONGEST).await?;
        t.store.put_step(&key, a, &done("one", b"1"), LONGEST).await?;
        same("release", &t.store.release(&key, a, how).await?, &Write::Applied)?;
        let record = t.load(&key).await?;
        holds(&format!("the lease is over after {how:?}"), record.state.is_abandoned())?;
        holds("it is remembered", record.expires_in > LONG / 2)?;
        if how == Release::Abandon {
            within("expires_in", record.expires_in, LONG)?;
        }
    }
    Ok(())
}

async fn longest_silence_is_kept(t: &Bench) -> Checked {
    let lease = Lease { duration: Duration::MAX, unknown_ttl: Duration::MAX };
    let [a, b, fresh] = tokens();
    let key = with_lease(t, a, lease).await?;
    t.abandon(&key, a).await?;
    holds("the lease is over", t.load(&key).await?.state.is_abandoned())?;
    holds("it is remembered", t.load(&key).await?.expires_in > LONG)?;
    let last = Reserve { lease, max_attempts: 1, ..t.request(&key, b) };
    let record = held("a second attempt of one", t.store.reserve(last).await?)?;
    same("state", &settled("state", &record)?, &Settled::Unknown)?;
    holds("what is unknown is remembered", record.expires_in > LONG)?;
    let resolution = Resolution::Done { settled: completed(b"found"), keep: Duration::MAX };
    t.store.resolve(&key, record.owner, fresh, &resolution).await?;
    let record = t.load(&key).await?;
    same("state", &settled("state", &record)?, &completed(b"found"))?;
    holds("what was found is kept", record.expires_in > LONG)
}

async fn longest_result_is_kept(t: &Bench) -> Checked {
    let [a] = tokens();
    let key = with_lease(t, a, LEASE).await?;
    let write = t.store.complete(&key, a, &completed(b"result"), Duration::MAX).await?;
    same("complete", &write, &Write::Applied)?;
    t.advance(t.tick).await;
    let record = t.load(&key).await?;
    same("state", &settled("state", &record)?, &completed(b"result"))?;
    holds("expires_in", record.expires_in > LONG)
}

async fn nothing_is_kept_for_no_time(t: &Bench) -> Checked {
    let [a, b] = tokens();
    let key = with_lease(t, a, LEASE).await?;
    let write = t.store.complete(&key, a, &completed(b"result"), Duration::ZERO).await?;
    same("complete", &write, &Write::Applied)?;
    t.advance(t.tick).await;
    t.absent("a result that is kept for no time", &key).await?;
    same("the next attempt", &t.grant(&key, b).await?.attempt, &1)
}

async fn lease_and_silence_of_zero_leave_nothing(t: &Bench) -> Checked {
    let [a, b] = tokens();
    let nothing = Lease { duration: Duration::ZERO, unknown_ttl: Duration::ZERO };
    let key = with_lease(t, a, nothing).await?;
    t.advance(t.tick).await;
    t.absent("a record that is remembered for no time", &key).await?;
    t.powerless("its owner", &key, a).await?;
    for resolution in [Resolution::NotDone, Resolution::Done { settled: completed(b"ghost"), keep: LONG }] {
        let compared = t.store.resolve(&key, a, b, &resolution).await?;
        same("resolve", &differs("resolve", compared)?, &None)?;
        t.absent("afterwards", &key).await?;
    }
    same("the next attempt", &t.grant(&key, b).await?.attempt, &1)
}

/// A token that asks again after its own record has expired begins a generation: nothing of before is left.
async fn expired_token_is_granted_anew(t: &Bench) -> Checked {
    let [a] = tokens();
    let lease = Lease { duration: t.tick, unknown_ttl: t.tick };
    let key = t.key();
    let first = granted("reserve", t.store.reserve(Reserve { lease, ..t.request(&key, a) }).await?)?;
    t.store.begin_effects(&key, a, lease).await?;
    t.store.put_step(&key, a, &done("one", b"1"), lease).await?;
    t.advance(t.tick * 3).await;
    let grant = t.grant(&key, a).await?;
    same("attempt", &grant.attempt, &1)?;
    same("steps", &grant.steps, &vec![])?;
    holds("the fence is greater", grant.fence > first.fence)?;
    same("effects_begun", &running("state", &t.load(&key).await?)?.1, &false)
}
