//! Expired records are deleted in the background, whatever the store.

use std::time::Duration;

use idempotent_runtime::store::{ListQuery, StoreErrorKind};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::{Fault, Faults, ManualClock, Op};
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
