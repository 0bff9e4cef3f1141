//! Whoever waits for a record is woken, by stores that have a way to.

use std::future::Future;
use std::time::Duration;

use super::bench::{Bench, Checked, LEASE, LONG, completed, fail, tokens};
use super::checks;
use crate::key::RecordKey;
use crate::store::{OwnerToken, Release, Reserve, Resolution, Settled};

checks!("watching":
    completion_wakes,
    failure_to_keep_wakes,
    release_wakes,
    abandon_wakes,
    end_of_lease_by_renew_wakes,
    resolution_wakes,
    forgetting_wakes,
    unused_release_wakes,
    exhaustion_wakes,
    every_waiter_is_woken,
    dropped_waiter_disturbs_nobody,
);

/// `change` must wake somebody who has watched the record since before.
async fn wakes<F: Future<Output = Checked>>(
    t: &Bench,
    change: impl FnOnce(RecordKey, OwnerToken) -> F,
) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    woken(t, &key, change(key.clone(), a)).await
}

async fn woken(t: &Bench, key: &RecordKey, change: impl Future<Output = Checked>) -> Checked {
    let Some(watch) = t.store.watch(key).await? else { return Ok(()) };
    change.await?;
    let patience = (t.tick * 100).max(Duration::from_secs(5));
    match tokio::time::timeout(patience, watch).await {
        Ok(()) => Ok(()),
        Err(_) => fail(format!("expected the waiter to be woken, saw it asleep after {patience:?}")),
    }
}

async fn completion_wakes(t: &Bench) -> Checked {
    wakes(t, |key, a| async move { t.complete(&key, a, &completed(b"result")).await }).await
}

async fn failure_to_keep_wakes(t: &Bench) -> Checked {
    for end in [Settled::NotRetained, Settled::Unknown] {
        wakes(t, |key, a| async move { t.complete(&key, a, &end).await }).await?;
    }
    Ok(())
}

async fn release_wakes(t: &Bench) -> Checked {
    wakes(t, |key, a| async move { Ok(t.store.release(&key, a, Release::Forget).await.map(drop)?) }).await
}

async fn abandon_wakes(t: &Bench) -> Checked {
    wakes(t, |key, a| async move { t.abandon(&key, a).await }).await
}

async fn end_of_lease_by_renew_wakes(t: &Bench) -> Checked {
    let over = crate::store::Lease { duration: Duration::ZERO, ..LEASE };
    wakes(t, |key, a| async move { Ok(t.store.renew(&key, a, over).await.map(drop)?) }).await
}

async fn resolution_wakes(t: &Bench) -> Checked {
    for resolution in [Resolution::Done { settled: completed(b"found"), keep: LONG }, Resolution::NotDone] {
        let key = t.key();
        let [a, fresh] = tokens();
        t.grant(&key, a).await?;
        t.abandon(&key, a).await?;
        let change = async { Ok(t.store.resolve(&key, a, fresh, &resolution).await.map(drop)?) };
        woken(t, &key, change).await?;
    }
    Ok(())
}

async fn forgetting_wakes(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    woken(t, &key, async { Ok(t.store.forget(&key, a).await.map(drop)?) }).await
}

async fn unused_release_wakes(t: &Bench) -> Checked {
    wakes(t, |key, a| async move { Ok(t.store.release(&key, a, Release::Unused).await.map(drop)?) }).await?;
    let key = t.key();
    let [a, b] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    t.grant(&key, b).await?;
    woken(t, &key, async { Ok(t.store.release(&key, b, Release::Unused).await.map(drop)?) }).await
}

/// Nobody will come back for a record whose last attempt is used up.
async fn exhaustion_wakes(t: &Bench) -> Checked {
    let key = t.key();
    let [a, b] = tokens();
    t.grant(&key, a).await?;
    t.abandon(&key, a).await?;
    let last = Reserve { max_attempts: 1, ..t.request(&key, b) };
    woken(t, &key, async { Ok(t.store.reserve(last).await.map(drop)?) }).await
}

async fn every_waiter_is_woken(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    let mut others = Vec::new();
    for _ in 0..3 {
        others.extend(t.store.watch(&key).await?);
    }
    woken(t, &key, async { t.complete(&key, a, &completed(b"result")).await }).await?;
    for other in others {
        if tokio::time::timeout((t.tick * 100).max(Duration::from_secs(5)), other).await.is_err() {
            return fail("expected every waiter to be woken, saw one asleep");
        }
    }
    Ok(())
}

async fn dropped_waiter_disturbs_nobody(t: &Bench) -> Checked {
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    let dropped = t.store.watch(&key).await?;
    woken(t, &key, async {
        drop(dropped);
        t.complete(&key, a, &completed(b"result")).await
    })
    .await
}
