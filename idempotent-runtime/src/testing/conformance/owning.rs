//! What the owner of a record may do while it runs, and that nobody else may.

use super::bench::{Bench, Checked, LEASE, LONG, completed, holds, running, same, tokens, within};
use super::checks;
use crate::store::{Lease, Write};

checks!("owning":
    renew_moves_the_lease,
    renew_of_zero_ends_the_lease,
    renew_works_after_the_lease,
    renew_moves_the_expiry,
    begin_effects_is_written_and_renews,
    begin_effects_works_after_the_lease,
    begin_effects_again_changes_nothing,
    renew_keeps_the_mark_of_effects,
    stranger_is_powerless,
    nobody_is_powerful_over_nothing,
    owner_of_a_completed_record_renews_nothing,
);

const SHORT: Lease = Lease { duration: std::time::Duration::from_secs(60), unknown_ttl: LONG };

async fn renew_moves_the_lease(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    let before = t.load(&key).await?;
    for (lease, most) in [(SHORT, SHORT.duration), (LEASE, LONG)] {
        same("renew", &t.store.renew(&key, a, lease).await?, &Write::Applied)?;
        let record = t.load(&key).await?;
        let (left, _) = running("state", &record)?;
        within("lease_left", left, most)?;
        holds("lease_left is counted from the renewal", left > most / 2)?;
        same("attempt", &record.attempt, &before.attempt)?;
        same("fence", &record.fence, &before.fence)?;
        same("created_at", &record.created_at, &before.created_at)?;
    }
    Ok(())
}

async fn renew_of_zero_ends_the_lease(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    t.grant(&key, a).await?;
    let lease = Lease { duration: std::time::Duration::ZERO, ..LEASE };
    same("renew", &t.store.renew(&key, a, lease).await?, &Write::Applied)?;
    holds("the lease is over", t.load(&key).await?.state.is_abandoned())?;
    same("the second attempt", &t.grant(&key, b).await?.attempt, &2)
}

async fn renew_works_after_the_lease(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    same("renew", &t.store.renew(&key, a, LEASE).await?, &Write::Applied)?;
    let (left, _) = running("state", &t.load(&key).await?)?;
    within("lease_left", left, LONG)
}

async fn renew_moves_the_expiry(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    let lease = Lease { duration: t.tick * 100, unknown_ttl: t.tick * 100 };
    same("renew", &t.store.renew(&key, a, lease).await?, &Write::Applied)?;
    let record = t.load(&key).await?;
    within("expires_in", record.expires_in, t.tick * 200)?;
    holds("it expires after the lease, not with it", record.expires_in > t.tick * 100)
}

async fn begin_effects_is_written_and_renews(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    same("begin_effects", &t.store.begin_effects(&key, a, SHORT).await?, &Write::Applied)?;
    let (left, effects_begun) = running("state", &t.load(&key).await?)?;
    same("effects_begun", &effects_begun, &true)?;
    within("lease_left", left, SHORT.duration)
}

async fn begin_effects_works_after_the_lease(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    same("begin_effects", &t.store.begin_effects(&key, a, LEASE).await?, &Write::Applied)?;
    let (left, effects_begun) = running("state", &t.load(&key).await?)?;
    same("effects_begun", &effects_begun, &true)?;
    within("lease_left", left, LONG)
}

async fn begin_effects_again_changes_nothing(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    same("begin_effects", &t.store.begin_effects(&key, a, LEASE).await?, &Write::Applied)?;
    let before = t.load(&key).await?;
    same("begin_effects again", &t.store.begin_effects(&key, a, LEASE).await?, &Write::Applied)?;
    let after = t.load(&key).await?;
    same("effects_begun", &running("state", &after)?.1, &true)?;
    same("attempt", &after.attempt, &before.attempt)?;
    same("owner", &after.owner, &before.owner)
}

async fn renew_keeps_the_mark_of_effects(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    t.store.begin_effects(&key, a, LEASE).await?;
    t.store.renew(&key, a, LEASE).await?;
    same("effects_begun", &running("state", &t.load(&key).await?)?.1, &true)
}

async fn stranger_is_powerless(t: &Bench) -> Checked {
    let [a, stranger] = tokens();
    let live = t.key();
    t.grant(&live, a).await?;
    t.powerless("a stranger, on a live record", &live, stranger).await?;
    let over = t.key();
    t.grant(&over, a).await?;
    t.abandon(&over, a).await?;
    t.powerless("a stranger, on an abandoned record", &over, stranger).await?;
    let settled = t.key();
    t.grant(&settled, a).await?;
    t.complete(&settled, a, &completed(b"result")).await?;
    t.powerless("a stranger, on a completed record", &settled, stranger).await
}

async fn nobody_is_powerful_over_nothing(t: &Bench) -> Checked {
    let [a] = tokens();
    t.powerless("a token, on an absent record", &t.key(), a).await
}

async fn owner_of_a_completed_record_renews_nothing(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    t.complete(&key, a, &completed(b"result")).await?;
    let before = t.load(&key).await?;
    same("renew", &t.store.renew(&key, a, LEASE).await?, &Write::Lost)?;
    same("begin_effects", &t.store.begin_effects(&key, a, LEASE).await?, &Write::Lost)?;
    t.still("the record", &before).await
}
