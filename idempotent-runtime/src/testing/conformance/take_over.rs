//! When a call takes over from an attempt that went silent.

use super::bench::{
    Bench, Checked, LEASE, LONG, OTHER, begun, completed, done, fail, granted, held, holds, running, same,
    settled, tokens, within,
};
use super::checks;
use crate::fingerprint::Fingerprint;
use crate::store::{Lease, OwnerToken, Reserve, Reserved, Settled, Step, TakeOver};

checks!("take_over":
    every_policy_against_every_history,
    attempt_and_fence_grow,
    marks_of_earlier_attempts_stay,
    lease_that_ran_out_is_over,
    lease_of_the_new_attempt_is_its_own,
    last_attempt_settles_unknown,
    exhausted_record_keeps_its_steps,
    zombie_is_powerless,
    other_fingerprint_version_is_another_fingerprint,
);

/// What an attempt has done before it went silent.
struct History {
    effects_begun: bool,
    steps: Vec<Step>,
    live: bool,
}

async fn attempt(t: &Bench, owner: OwnerToken, history: &History) -> Checked<crate::key::RecordKey> {
    let key = t.key();
    t.grant(&key, owner).await?;
    if history.effects_begun {
        t.store.begin_effects(&key, owner, LEASE).await?;
    }
    for step in &history.steps {
        t.store.put_step(&key, owner, step, LEASE).await?;
    }
    if !history.live {
        t.abandon(&key, owner).await?;
    }
    Ok(key)
}

async fn every_policy_against_every_history(t: &Bench) -> Checked {
    let steps: [&[Step]; 5] = [
        &[],
        &[begun("one")],
        &[done("one", b"1")],
        &[done("one", b"1"), begun("two")],
        &[done("one", b"1"), done("two", b"2")],
    ];
    for live in [false, true] {
        for effects_begun in [false, true] {
            for steps in steps {
                for policy in [TakeOver::Always, TakeOver::BeforeEffects, TakeOver::BetweenSteps] {
                    let history = History { effects_begun, steps: steps.to_vec(), live };
                    let allowed = !live && policy.allows(effects_begun, steps);
                    try_policy(t, &history, policy, allowed).await?;
                }
            }
        }
    }
    Ok(())
}

async fn try_policy(t: &Bench, history: &History, take_over: TakeOver, allowed: bool) -> Checked {
    let case = format!(
        "{take_over:?}, effects begun {}, steps {:?}, live {}",
        history.effects_begun, history.steps, history.live
    );
    let [a, b, c] = tokens();
    let key = attempt(t, a, history).await?;
    let before = t.load(&key).await?;

    let other = Reserve { take_over, fingerprint: OTHER, ..t.request(&key, b) };
    held(&format!("{case}, other arguments"), t.store.reserve(other).await?)?;
    t.still(&format!("{case}, after other arguments"), &before).await?;

    match (t.store.reserve(Reserve { take_over, ..t.request(&key, c) }).await?, allowed) {
        (Reserved::Granted(grant), true) => {
            same(&format!("{case}: attempt"), &grant.attempt, &2)?;
            same(&format!("{case}: steps"), &grant.steps, &history.steps)
        }
        (Reserved::Held(record), false) => {
            super::bench::unchanged(&format!("{case}: what is shown"), &before, &record)?;
            t.still(&format!("{case}: the record"), &before).await
        }
        (seen, _) => {
            let expected = if allowed { "a grant" } else { "a record in the way" };
            fail(format!("{case}: expected {expected}, saw {seen:?}"))
        }
    }
}

async fn attempt_and_fence_grow(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b, c] = tokens();
    let first = t.grant(&key, a).await?;
    let created_at = t.load(&key).await?.created_at;
    t.abandon(&key, a).await?;
    let second = t.grant(&key, b).await?;
    same("the second attempt", &second.attempt, &2)?;
    holds("the second fence is greater", second.fence > first.fence)?;
    t.abandon(&key, b).await?;
    let third = t.grant(&key, c).await?;
    same("the third attempt", &third.attempt, &3)?;
    holds("the third fence is greater", third.fence > second.fence)?;
    let record = t.load(&key).await?;
    same("owner", &record.owner, &c)?;
    same("created_at is that of the first attempt", &record.created_at, &created_at)
}

async fn marks_of_earlier_attempts_stay(t: &Bench) -> Checked {
    let [a, b, c] = tokens();
    let history = History { effects_begun: true, steps: vec![], live: false };
    let key = attempt(t, a, &history).await?;
    t.grant(&key, b).await?;
    let (_, effects_begun) = running("state", &t.load(&key).await?)?;
    same("effects_begun after the take-over", &effects_begun, &true)?;
    t.abandon(&key, b).await?;
    let cautious = Reserve { take_over: TakeOver::BeforeEffects, ..t.request(&key, c) };
    held("a cautious call after a bold one", t.store.reserve(cautious).await?).map(drop)
}

async fn lease_that_ran_out_is_over(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    let lease = Lease { duration: t.tick * 2, ..LEASE };
    granted("reserve", t.store.reserve(Reserve { lease, ..t.request(&key, a) }).await?)?;
    t.advance(t.tick * 3).await;
    let record = t.load(&key).await?;
    holds("the lease is over", record.state.is_abandoned())?;
    within("expires_in", record.expires_in, LONG)?;
    same("the second attempt", &t.grant(&key, b).await?.attempt, &2)
}

async fn lease_of_the_new_attempt_is_its_own(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b, c] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    t.grant(&key, b).await?;
    let (left, _) = running("state", &t.load(&key).await?)?;
    within("lease_left", left, LONG)?;
    holds("lease_left is that of the new lease", left > LONG / 2)?;
    held("a third call", t.reserve(&key, c).await?).map(drop)
}

async fn last_attempt_settles_unknown(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b, last, other] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    let two = |owner| Reserve { max_attempts: 2, ..t.request(&key, owner) };
    same("the second attempt", &granted("reserve", t.store.reserve(two(b)).await?)?.attempt, &2)?;
    t.abandon(&key, b).await?;
    // Asking again with the same token, and asking with another one, show the same.
    for owner in [last, last, other] {
        let record = held("a third attempt of two", t.store.reserve(two(owner)).await?)?;
        same("state", &settled("state", &record)?, &Settled::Unknown)?;
        same("owner", &record.owner, &OwnerToken::NOBODY)?;
        within("expires_in", record.expires_in, LONG)?;
    }
    t.powerless("the last attempt", &key, b).await?;
    // An earlier one that asks again, late, does not have the record for it, and is not told that it has settled it.
    t.powerless("who has settled it", &key, last).await?;
    held("a call with more attempts", t.reserve(&key, other).await?).map(drop)
}

async fn exhausted_record_keeps_its_steps(t: &Bench) -> Checked {
    let [a, b] = tokens();
    let steps = vec![done("one", b"1"), begun("two")];
    let key = attempt(t, a, &History { effects_begun: false, steps: steps.clone(), live: false }).await?;
    let request = Reserve { max_attempts: 1, ..t.request(&key, b) };
    let record = held("a second attempt of one", t.store.reserve(request).await?)?;
    same("state", &settled("state", &record)?, &Settled::Unknown)?;
    same("steps", &record.steps, &steps)
}

async fn zombie_is_powerless(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    t.grant(&key, b).await?;
    t.store.put_step(&key, b, &done("one", b"1"), LEASE).await?;
    t.powerless("the zombie, beside a running attempt", &key, a).await?;
    held("a reservation by the zombie", t.reserve(&key, a).await?)?;
    t.complete(&key, b, &completed(b"second")).await?;
    t.powerless("the zombie, after the other completed", &key, a).await?;
    same("the result", &settled("state", &t.load(&key).await?)?, &completed(b"second"))
}

async fn other_fingerprint_version_is_another_fingerprint(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    let request = Reserve { fingerprint: Fingerprint::from_parts(2, [1; 32]), ..t.request(&key, b) };
    held("a call of another version", t.store.reserve(request).await?).map(drop)
}
