//! Who is granted the record, and what is shown to everybody else.

use super::bench::{
    Bench, Checked, LEASE, LONG, OTHER, SAME, completed, done, granted, held, holds, running, same, settled,
    tokens, within,
};
use super::checks;
use crate::store::{Lease, Reserve, TakeOver};

checks!("reserving":
    absent_record_is_granted,
    grant_is_kept_as_a_record,
    same_token_is_granted_again,
    same_token_gets_a_fresh_lease,
    same_token_is_granted_again_after_its_lease,
    live_record_is_held,
    live_record_is_held_against_other_arguments,
    settled_record_is_held,
    keys_do_not_meet,
    lease_of_zero_is_over_at_once,
);

async fn absent_record_is_granted(t: &Bench) -> Checked {
    let key = t.key();
    t.absent("before", &key).await?;
    let [a] = tokens();
    let grant = t.grant(&key, a).await?;
    same("attempt", &grant.attempt, &1)?;
    same("steps", &grant.steps, &vec![])?;
    holds("the fence is greater than 0", grant.fence > 0)
}

async fn grant_is_kept_as_a_record(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    let grant = t.grant(&key, a).await?;
    let record = t.load(&key).await?;
    same("key", &record.key, &key)?;
    same("owner", &record.owner, &a)?;
    same("attempt", &record.attempt, &1)?;
    same("fence", &record.fence, &grant.fence)?;
    same("fingerprint", &record.fingerprint, &SAME)?;
    let (left, effects_begun) = running("state", &record)?;
    within("lease_left", left, LONG)?;
    same("effects_begun", &effects_begun, &false)?;
    within("expires_in", record.expires_in, LONG + LONG)?;
    holds("it expires after the lease, not with it", record.expires_in > LONG)
}

async fn same_token_is_granted_again(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    let first = t.grant(&key, a).await?;
    t.store.begin_effects(&key, a, LEASE).await?;
    // Whatever the policy: this attempt is alive, and only an answer was lost.
    let request = Reserve { take_over: TakeOver::BetweenSteps, max_attempts: 1, ..t.request(&key, a) };
    same("the second grant", &granted("reserve again", t.store.reserve(request).await?)?, &first)?;
    same("effects_begun stays", &running("state", &t.load(&key).await?)?.1, &true)?;
    let [b] = tokens();
    held("another call", t.reserve(&key, b).await?).map(drop)
}

async fn same_token_gets_a_fresh_lease(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    let short = Lease { duration: LONG / 4, ..LEASE };
    granted("reserve", t.store.reserve(Reserve { lease: short, ..t.request(&key, a) }).await?)?;
    t.grant(&key, a).await?;
    let (left, _) = running("state", &t.load(&key).await?)?;
    holds("the lease is counted from the second call", left > LONG / 2)
}

async fn same_token_is_granted_again_after_its_lease(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    let first = t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    same("the second grant", &t.grant(&key, a).await?, &first)?;
    let (left, _) = running("state", &t.load(&key).await?)?;
    within("lease_left", left, LONG)
}

async fn live_record_is_held(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    let grant = t.grant(&key, a).await?;
    let before = t.load(&key).await?;
    let record = held("another call", t.reserve(&key, b).await?)?;
    same("owner", &record.owner, &a)?;
    same("attempt", &record.attempt, &1)?;
    same("fence", &record.fence, &grant.fence)?;
    same("fingerprint", &record.fingerprint, &SAME)?;
    same("created_at", &record.created_at, &before.created_at)?;
    let (left, _) = running("state", &record)?;
    within("lease_left", left, LONG)?;
    holds("lease_left is what is left of this lease", left > LONG / 2)?;
    t.still("the record", &before).await
}

async fn live_record_is_held_against_other_arguments(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    t.grant(&key, a).await?;
    let before = t.load(&key).await?;
    let request = Reserve { fingerprint: OTHER, ..t.request(&key, b) };
    let record = held("another call", t.store.reserve(request).await?)?;
    same("the fingerprint that is shown", &record.fingerprint, &SAME)?;
    t.still("the record", &before).await
}

async fn settled_record_is_held(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    t.grant(&key, a).await?;
    t.complete(&key, a, &completed(b"result")).await?;
    for (owner, fingerprint) in [(b, SAME), (b, OTHER), (a, SAME)] {
        let request = Reserve { fingerprint, ..t.request(&key, owner) };
        let record = held("a call afterwards", t.store.reserve(request).await?)?;
        same("what is shown", &settled("state", &record)?, &completed(b"result"))?;
        same("the fingerprint that is shown", &record.fingerprint, &SAME)?;
        within("expires_in", record.expires_in, LONG)?;
    }
    Ok(())
}

async fn keys_do_not_meet(t: &Bench) -> Checked {
    let (one, two) = (t.key(), t.key());
    let [a, b] = tokens();
    t.grant(&one, a).await?;
    t.grant(&two, b).await?;
    t.store.put_step(&one, a, &done("step", b"one"), LEASE).await?;
    t.complete(&two, b, &completed(b"two")).await?;
    running("the first", &t.load(&one).await?)?;
    t.complete(&one, a, &completed(b"one")).await?;
    same("the first", &settled("state", &t.load(&one).await?)?, &completed(b"one"))?;
    same("the second", &settled("state", &t.load(&two).await?)?, &completed(b"two"))
}

async fn lease_of_zero_is_over_at_once(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    let lease = Lease { duration: std::time::Duration::ZERO, ..LEASE };
    granted("reserve", t.store.reserve(Reserve { lease, ..t.request(&key, a) }).await?)?;
    let record = t.load(&key).await?;
    holds("the lease is over", record.state.is_abandoned())?;
    within("expires_in", record.expires_in, LONG)
}
