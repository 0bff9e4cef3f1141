//! What holds on a server, where each record has a lock of its own.

use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::Idempotency;
use tests::Order;

use super::common::{charge, postings};
use super::{Shop, other_database, shop, unopened_store};
use crate::failure::Failure;

const READS_COMMITTED: &str = "READ COMMITTED";

#[tokio::test]
async fn a_call_that_reads_what_is_committed_follows_one_that_is_at_work_under_a_lease() {
    let Shop { idempotency, pool, .. } = &shop(READS_COMMITTED).await;
    let (started, wait_for_start) = tokio::sync::oneshot::channel();
    let leased = tokio::spawn({
        let call = idempotency.operation("charge").key("o-1");
        async move {
            call.run(|_| async move {
                started.send(()).unwrap();
                tokio::time::sleep(Duration::from_millis(300)).await;
                Ok::<u64, Failure>(1)
            })
            .await
        }
    });
    wait_for_start.await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    let call = idempotency.operation("charge").key("o-1");
    assert_eq!(call.run_in(&mut tx, async |_, _| Ok::<u64, Failure>(2)).await, Ok(1));
    assert_eq!(leased.await.unwrap(), Ok(1));
}

#[tokio::test]
async fn the_first_call_of_all_finds_its_table() {
    let pool = other_database().await;
    let idempotency = Idempotency::new(unopened_store(pool.clone()));
    let mut tx = pool.begin().await.unwrap();
    let call = idempotency.operation("charge").key("o-1");
    assert_eq!(call.run_in(&mut tx, async |_, _| Ok::<u64, Failure>(1)).await, Ok(1));
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn two_keys_in_opposite_order_are_a_deadlock_that_the_whole_survives() {
    let Shop { idempotency, pool, .. } = &shop(READS_COMMITTED).await;
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let calls = [["a", "b"], ["b", "a"]].map(|keys| {
        let (idempotency, pool, both) = (idempotency.clone(), pool.clone(), Arc::clone(&both));
        tokio::spawn(async move {
            let mut met = false;
            idempotency
                .transaction(&pool, move |tx| {
                    let first = !std::mem::replace(&mut met, true);
                    let both = Arc::clone(&both);
                    Box::pin(async move {
                        charge(tx, Order::new(keys[0], 1)).await?;
                        if first {
                            both.wait().await;
                        }
                        charge(tx, Order::new(keys[1], 1)).await
                    })
                })
                .await
        })
    });
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok(1));
    }
    assert_eq!(postings(pool).await, 2);
}
