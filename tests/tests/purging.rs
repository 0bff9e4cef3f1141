//! Expired records are deleted in the background, whatever the store.

use std::time::Duration;

use idempotent_runtime::store::StoreErrorKind;
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::{Fault, Faults, ManualClock, Operation};
use idempotent_runtime::{Error, Idempotency};

#[tokio::test(start_paused = true)]
async fn it_goes_on_until_it_is_dropped() {
    let clock = ManualClock::default();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    let idempotency =
        Idempotency::builder().store(store.clone()).ttl(Duration::from_secs(60)).build().unwrap();
    let charge = idempotency.operation("charge");
    for n in 0..2500 {
        charge.key(&n).run(|_| async { Ok::<_, Error>(1) }).await.unwrap();
    }
    let purging = idempotency.purge_every(Duration::from_secs(10));
    assert!(format!("{purging:?}").contains("running: true"));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(store.len(), 2500);
    clock.advance(Duration::from_secs(61));
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(store.len(), 0);

    drop(purging);
    charge.key("late").run(|_| async { Ok::<_, Error>(1) }).await.unwrap();
    clock.advance(Duration::from_secs(61));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(store.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn it_outlives_a_store_that_fails() {
    let store = MemoryStore::new();
    let faults = Faults::new(store).always(Operation::Purge, Fault::Refuse(StoreErrorKind::Unavailable));
    let faults = std::sync::Arc::new(faults);
    let _purging = Idempotency::new(std::sync::Arc::clone(&faults)).purge_every(Duration::from_secs(1));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let failed = faults.count(Operation::Purge);
    assert!(failed >= 3);
    faults.heal();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(faults.count(Operation::Purge) > failed);
}

#[test]
fn without_a_runtime_it_does_nothing() {
    let purging = Idempotency::new(MemoryStore::new()).purge_every(Duration::from_secs(1));
    assert!(format!("{purging:?}").contains("running: false"));
    Idempotency::disabled().purge_every(Duration::from_secs(1)).forever();
}
