//! Steps: written by the owner, kept in order, given to the next attempt.

use super::bench::{
    Bench, Checked, LEASE, LONG, begun, completed, done, fail, running, same, tokens, within,
};
use super::checks;
use crate::key::RecordKey;
use crate::store::{Lease, OwnerToken, PutStep, Settled, Step};

checks!("steps":
    begun_then_done,
    done_step_stays,
    again_is_recognised,
    order_is_that_of_writing,
    next_attempt_gets_them,
    next_attempt_may_finish_them,
    step_renews_the_lease,
    step_works_after_the_lease,
    finished_step_renews_too,
    settled_record_takes_no_step,
    step_is_not_an_effect_mark,
    names_are_told_apart,
);

async fn put(t: &Bench, key: &RecordKey, owner: OwnerToken, step: &Step) -> Checked {
    same("put_step", &t.store.put_step(key, owner, step, LEASE).await?, &PutStep::Stored)
}

async fn begun_then_done(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    put(t, &key, a, &begun("one")).await?;
    same("steps", &t.load(&key).await?.steps, &vec![begun("one")])?;
    put(t, &key, a, &done("one", b"1")).await?;
    same("steps", &t.load(&key).await?.steps, &vec![done("one", b"1")])
}

async fn done_step_stays(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    put(t, &key, a, &done("one", b"1")).await?;
    for step in [begun("one"), done("one", b"other")] {
        let seen = t.store.put_step(&key, a, &step, LEASE).await?;
        same("put_step on a finished one", &seen, &PutStep::Exists(b"1".as_slice().into()))?;
        same("steps", &t.load(&key).await?.steps, &vec![done("one", b"1")])?;
    }
    Ok(())
}

async fn again_is_recognised(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    put(t, &key, a, &begun("one")).await?;
    put(t, &key, a, &begun("one")).await?;
    put(t, &key, a, &done("one", b"1")).await?;
    match t.store.put_step(&key, a, &done("one", b"1"), LEASE).await? {
        PutStep::Stored => {}
        PutStep::Exists(bytes) => same("the bytes that exist", &&*bytes, &b"1".as_slice())?,
        PutStep::Lost => return fail("put_step again by the owner: expected it stored, saw Lost"),
    }
    same("steps", &t.load(&key).await?.steps, &vec![done("one", b"1")])
}

async fn order_is_that_of_writing(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    for name in ["delta", "alpha", "charlie", "bravo"] {
        put(t, &key, a, &begun(name)).await?;
    }
    // A step keeps the place at which it began.
    put(t, &key, a, &done("alpha", b"2")).await?;
    put(t, &key, a, &done("delta", b"1")).await?;
    let expected = vec![done("delta", b"1"), done("alpha", b"2"), begun("charlie"), begun("bravo")];
    same("steps", &t.load(&key).await?.steps, &expected)
}

async fn next_attempt_gets_them(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    let steps = vec![done("one", b"1"), begun("two")];
    t.grant(&key, a).await?;
    for step in &steps {
        put(t, &key, a, step).await?;
    }
    same("steps of the same token's grant", &t.grant(&key, a).await?.steps, &steps)?;
    t.abandon(&key, a).await?;
    same("steps of the next grant", &t.grant(&key, b).await?.steps, &steps)
}

async fn next_attempt_may_finish_them(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    t.grant(&key, a).await?;
    put(t, &key, a, &done("one", b"1")).await?;
    put(t, &key, a, &begun("two")).await?;
    t.abandon(&key, a).await?;
    t.grant(&key, b).await?;
    put(t, &key, b, &done("two", b"2")).await?;
    put(t, &key, b, &begun("three")).await?;
    let seen = t.store.put_step(&key, a, &done("three", b"zombie"), LEASE).await?;
    same("put_step by the zombie", &seen, &PutStep::Lost)?;
    let expected = vec![done("one", b"1"), done("two", b"2"), begun("three")];
    same("steps", &t.load(&key).await?.steps, &expected)
}

async fn step_renews_the_lease(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    let lease = Lease { duration: LONG / 8, ..LEASE };
    same("put_step", &t.store.put_step(&key, a, &begun("one"), lease).await?, &PutStep::Stored)?;
    within("lease_left", running("state", &t.load(&key).await?)?.0, LONG / 8)
}

async fn step_works_after_the_lease(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    put(t, &key, a, &done("one", b"1")).await?;
    within("lease_left", running("state", &t.load(&key).await?)?.0, LONG)
}

async fn finished_step_renews_too(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    put(t, &key, a, &done("one", b"1")).await?;
    for step in [done("one", b"1"), done("one", b"other"), begun("one")] {
        t.abandon(&key, a).await?;
        t.store.put_step(&key, a, &step, LEASE).await?;
        within("lease_left", running("state", &t.load(&key).await?)?.0, LONG)?;
    }
    Ok(())
}

async fn settled_record_takes_no_step(t: &Bench) -> Checked {
    let [a] = tokens();
    for end in [completed(b"result"), Settled::NotRetained, Settled::Unknown] {
        let key = t.key();
        t.grant(&key, a).await?;
        put(t, &key, a, &done("one", b"1")).await?;
        t.complete(&key, a, &end).await?;
        let before = t.load(&key).await?;
        for step in [done("one", b"1"), done("two", b"2"), begun("two")] {
            let seen = t.store.put_step(&key, a, &step, LEASE).await?;
            same("put_step after the end", &seen, &PutStep::Lost)?;
            t.still("the record", &before).await?;
        }
    }
    Ok(())
}

async fn step_is_not_an_effect_mark(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    put(t, &key, a, &begun("one")).await?;
    put(t, &key, a, &done("one", b"1")).await?;
    same("effects_begun", &running("state", &t.load(&key).await?)?.1, &false)
}

async fn names_are_told_apart(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    let steps: Vec<Step> = ["step", "Step", "step ", "stęp", "step#2", "p:0", "🦀"]
        .map(|name| done(name, name.as_bytes()))
        .into();
    for step in &steps {
        put(t, &key, a, step).await?;
    }
    same("steps", &t.load(&key).await?.steps, &steps)
}
