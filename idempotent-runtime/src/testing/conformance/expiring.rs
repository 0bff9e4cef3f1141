//! Records that nobody needs any more.

use super::bench::{
    Bench, Checked, LEASE, LONG, OTHER, completed, differs, done, granted, held, holds, running, same,
    settled, tokens,
};
use super::checks;
use crate::store::{Lease, ListQuery, Reserve, Resolution, Settled, Write};

checks!("expiring":
    result_expires,
    result_is_kept_from_its_completion,
    generation_after_a_result_starts_anew,
    generation_after_other_arguments_starts_anew,
    running_record_outlives_its_lease,
    silent_attempt_expires_in_the_end,
    renewed_record_does_not_expire,
    unknown_expires,
    operator_finds_nothing_expired,
    purge_takes_only_what_is_expired,
    far_future_is_kept,
);

async fn keep_shortly(t: &Bench, end: &Settled) -> Checked<crate::key::RecordKey> {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    same("complete", &t.store.complete(&key, a, end, t.tick * 4).await?, &Write::Applied)?;
    Ok(key)
}

async fn result_expires(t: &Bench) -> Checked {
    // Less than a second, unless somebody chose very long ticks: a store that counts seconds fails here.
    let key = keep_shortly(t, &completed(b"result")).await?;
    settled("at once", &t.load(&key).await?)?;
    t.advance(t.tick * 5).await;
    t.absent("after its time", &key).await?;
    let query = ListQuery { operation: Some(t.operation().to_owned()), ..ListQuery::default() };
    same("the list", &t.store.list(&query).await?.records, &vec![])
}

async fn result_is_kept_from_its_completion(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    t.advance(t.tick * 6).await;
    t.store.complete(&key, a, &completed(b"result"), t.tick * 8).await?;
    t.advance(t.tick * 5).await;
    same("before its time", &settled("state", &t.load(&key).await?)?, &completed(b"result"))?;
    t.advance(t.tick * 4).await;
    t.absent("after its time", &key).await
}

async fn generation_after_a_result_starts_anew(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b, c] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    let second = t.grant(&key, b).await?;
    t.store.begin_effects(&key, b, LEASE).await?;
    let created_at = t.load(&key).await?.created_at;
    t.store.complete(&key, b, &completed(b"result"), t.tick * 2).await?;
    t.advance(t.tick * 3).await;
    t.powerless("the old owner, before the new generation", &key, b).await?;
    let grant = t.grant(&key, c).await?;
    same("attempt", &grant.attempt, &1)?;
    holds("the fence is greater", grant.fence > second.fence)?;
    let record = t.load(&key).await?;
    same("effects_begun", &running("state", &record)?.1, &false)?;
    holds("created_at is new", record.created_at > created_at)?;
    t.powerless("the old owner, in the new generation", &key, b).await
}

async fn generation_after_other_arguments_starts_anew(t: &Bench) -> Checked {
    let key = keep_shortly(t, &completed(b"result")).await?;
    let [b, c] = tokens();
    let other = |owner| Reserve { fingerprint: OTHER, ..t.request(&key, owner) };
    held("other arguments at once", t.store.reserve(other(b)).await?)?;
    t.advance(t.tick * 5).await;
    granted("other arguments after its time", t.store.reserve(other(c)).await?)?;
    same("fingerprint", &t.load(&key).await?.fingerprint, &OTHER)
}

async fn running_record_outlives_its_lease(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    let lease = Lease { duration: t.tick * 2, unknown_ttl: LONG };
    granted("reserve", t.store.reserve(Reserve { lease, ..t.request(&key, a) }).await?)?;
    t.store.put_step(&key, a, &done("one", b"1"), lease).await?;
    t.advance(t.tick * 4).await;
    let record = t.load(&key).await?;
    holds("the lease is over", record.state.is_abandoned())?;
    let other = Reserve { fingerprint: OTHER, ..t.request(&key, b) };
    held("other arguments", t.store.reserve(other).await?)?;
    same("attempt", &t.grant(&key, b).await?.attempt, &2)
}

async fn silent_attempt_expires_in_the_end(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    let lease = Lease { duration: t.tick * 2, unknown_ttl: t.tick * 6 };
    let first = granted("reserve", t.store.reserve(Reserve { lease, ..t.request(&key, a) }).await?)?;
    t.store.put_step(&key, a, &done("one", b"1"), lease).await?;
    t.advance(t.tick * 4).await;
    holds("the lease is over", t.load(&key).await?.state.is_abandoned())?;
    t.advance(t.tick * 6).await;
    t.absent("after its time", &key).await?;
    t.powerless("the silent attempt", &key, a).await?;
    let other = Reserve { fingerprint: OTHER, ..t.request(&key, b) };
    let grant = granted("other arguments", t.store.reserve(other).await?)?;
    same("attempt", &grant.attempt, &1)?;
    same("steps", &grant.steps, &vec![])?;
    holds("the fence is greater", grant.fence > first.fence)
}

async fn renewed_record_does_not_expire(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    let lease = Lease { duration: t.tick * 2, unknown_ttl: t.tick * 4 };
    granted("reserve", t.store.reserve(Reserve { lease, ..t.request(&key, a) }).await?)?;
    for _ in 0..3 {
        t.advance(t.tick * 3).await;
        same("renew", &t.store.renew(&key, a, lease).await?, &Write::Applied)?;
    }
    same("complete", &t.store.complete(&key, a, &completed(b"late"), LONG).await?, &Write::Applied)?;
    t.advance(t.tick * 7).await;
    same("state", &settled("state", &t.load(&key).await?)?, &completed(b"late"))
}

async fn unknown_expires(t: &Bench) -> Checked {
    for end in [Settled::Unknown, Settled::NotRetained] {
        let key = keep_shortly(t, &end).await?;
        let [b] = tokens();
        held("a call at once", t.reserve(&key, b).await?)?;
        t.advance(t.tick * 5).await;
        same("attempt after its time", &t.grant(&key, b).await?.attempt, &1)?;
    }
    Ok(())
}

async fn operator_finds_nothing_expired(t: &Bench) -> Checked {
    let key = keep_shortly(t, &Settled::Unknown).await?;
    let seen = t.load(&key).await?.owner;
    t.advance(t.tick * 5).await;
    let [fresh] = tokens();
    let done = Resolution::Done { settled: completed(b"found"), keep: LONG };
    let compared = t.store.resolve(&key, seen, fresh, &done).await?;
    same("resolve", &differs("resolve", compared)?, &None)?;
    same("forget", &differs("forget", t.store.forget(&key, seen).await?)?, &None)?;
    t.absent("afterwards", &key).await
}

async fn purge_takes_only_what_is_expired(t: &Bench) -> Checked {
    let mut gone = Vec::new();
    for _ in 0..5 {
        gone.push(keep_shortly(t, &completed(b"gone")).await?);
    }
    let [a, b] = tokens();
    let (live, over, kept) = (t.key(), t.key(), t.key());
    t.grant(&live, a).await?;
    t.grant(&over, a).await?;
    t.abandon(&over, a).await?;
    t.grant(&kept, b).await?;
    t.complete(&kept, b, &completed(b"kept")).await?;
    t.advance(t.tick * 5).await;
    same("purge of at most nothing", &t.store.purge(0).await?, &0)?;
    // How many there are is not known: a store may drop them by itself, and others may share it.
    for _ in 0..1_000 {
        let purged = t.store.purge(2).await?;
        holds("purge keeps to its limit", purged <= 2)?;
        if purged == 0 {
            break;
        }
    }
    for key in &gone {
        t.absent("an expired record", key).await?;
    }
    running("the live record", &t.load(&live).await?)?;
    holds("the abandoned record is still abandoned", t.load(&over).await?.state.is_abandoned())?;
    same("the kept record", &settled("state", &t.load(&kept).await?)?, &completed(b"kept"))
}

async fn far_future_is_kept(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    let century = std::time::Duration::from_secs(100 * 365 * 24 * 60 * 60);
    let lease = Lease { duration: LONG, unknown_ttl: century };
    granted("reserve", t.store.reserve(Reserve { lease, ..t.request(&key, a) }).await?)?;
    t.load(&key).await?;
    t.store.complete(&key, a, &completed(b"result"), century).await?;
    holds("expires_in", t.load(&key).await?.expires_in > century / 2)
}
