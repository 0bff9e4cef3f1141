//! One scene for each thing that the library tells of.

use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::store::{Release, Store, StoreErrorKind};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::{Fault, Faults, ManualClock, Operation};
use idempotent_runtime::{
    Attempt, Error, Idempotency, IdempotencyBuilder, OnCrash, OnLost, OnMissingKey, Reconciled,
};
use serde::{Deserialize, Serialize, Serializer};
use tests::only_record;
use tokio::time::{advance, sleep, timeout};

/// In every key, argument and result of the scenes, and so in no event.
pub const SECRET: &str = "tell-nobody";

const LEASE: Duration = Duration::from_secs(30);

type Outcome = Result<String, Error>;

/// A handle on a store that fails as it is told to.
pub struct Scene {
    pub idempotency: Idempotency,
    pub store: Arc<Faults<MemoryStore>>,
}

pub fn scene() -> Scene {
    with(|store| store, |builder| builder)
}

fn with(
    faults: impl FnOnce(Faults<MemoryStore>) -> Faults<MemoryStore>,
    settings: impl FnOnce(IdempotencyBuilder) -> IdempotencyBuilder,
) -> Scene {
    let store = Arc::new(faults(Faults::new(MemoryStore::new())));
    let builder = Idempotency::builder().store(Arc::clone(&store)).lease(LEASE);
    Scene { idempotency: settings(builder).build().unwrap(), store }
}

impl Scene {
    pub fn call(&self) -> idempotent_runtime::OperationCall {
        self.idempotency.operation("charge").on_crash(OnCrash::Retry).key(SECRET).fingerprint(SECRET)
    }

    async fn runs(&self) -> Outcome {
        self.call().run(|_| async { Ok(SECRET.to_owned()) }).await
    }

    async fn hangs(&self, long: Duration) {
        let hung = self.call().run(|_| std::future::pending::<Outcome>());
        assert!(timeout(long, hung).await.is_err());
        self.idempotency.shutdown().await;
    }
}

pub async fn replayed() {
    let scene = scene();
    assert_eq!(scene.runs().await.unwrap(), SECRET);
    assert_eq!(scene.runs().await.unwrap(), SECRET);
}

pub async fn refused() {
    let scene = scene();
    scene.runs().await.unwrap();
    let other = scene.idempotency.operation("charge").key(SECRET).fingerprint("other");
    other.run(|_| async { Ok::<_, Error>(String::new()) }).await.unwrap_err();
}

pub async fn given_back() {
    let late = |store: Faults<_>| store.before(Operation::Reserve, |_| sleep(Duration::from_millis(50)));
    let scene = with(late, |builder| builder);
    assert!(timeout(Duration::from_millis(10), scene.runs()).await.is_err());
    scene.idempotency.shutdown().await;
}

pub async fn taken_over() {
    let scene = scene();
    scene.hangs(Duration::from_millis(5)).await;
    assert_eq!(scene.runs().await.unwrap(), SECRET);
}

pub fn left_to_its_lease() {
    let hangs = |store: Faults<_>| store.before(Operation::Release, |_| std::future::pending());
    let scene = with(hangs, |builder| builder);
    for number in 0..=10_000 {
        let call = scene.idempotency.operation("charge").key(&(SECRET, number));
        let mut hung = Box::pin(call.run(|_| std::future::pending::<Outcome>()));
        // Its reservation, a turn for the heartbeat, and the body.
        assert!(tests::poll_times(hung.as_mut(), 4).is_pending());
    }
}

pub async fn renewal_late() {
    let scene = scene();
    let call = scene.call();
    let blocks = call.run(|_| async {
        sleep(Duration::from_millis(1)).await;
        advance(LEASE - Duration::from_millis(2)).await;
        sleep(Duration::from_secs(1)).await;
        Ok::<_, Error>(SECRET.to_owned())
    });
    blocks.await.unwrap();
}

pub async fn lease_lost() {
    let scene = scene();
    let call = scene.call();
    let told = tokio::spawn(call.run(|attempt: Attempt| async move {
        attempt.lost().await;
        Ok::<_, Error>(SECRET.to_owned())
    }));
    sleep(Duration::from_millis(1)).await;
    let record = only_record(&scene.store).await;
    scene.store.release(&record.key, record.owner, Release::Forget).await.unwrap();
    told.await.unwrap().unwrap();
}

pub async fn cancelled() {
    let scene = with(|store| store, |builder| builder.on_lost(OnLost::Cancel).max_run(LEASE));
    let hung = scene.call().run(|_| std::future::pending::<Outcome>());
    assert_eq!(hung.await.unwrap_err().code(), "lease-lost");
}

pub async fn lease_unconfirmed() {
    let away = |store: Faults<_>| store.always(Operation::Renew, Fault::LoseRequest);
    let scene = with(away, |builder| builder);
    let call = scene.call();
    let told = call.run(|attempt: Attempt| async move {
        attempt.lost().await;
        sleep(2 * LEASE).await;
        Ok::<_, Error>(SECRET.to_owned())
    });
    told.await.unwrap();
}

pub async fn max_run_over() {
    let scene = with(|store| store, |builder| builder.max_run(LEASE));
    scene.hangs(LEASE + Duration::from_secs(1)).await;
}

pub async fn gave_up_recording() {
    let away = |store: Faults<_>| store.always(Operation::Complete, Fault::LoseRequest);
    let scene = with(away, |builder| builder.record_patience(Duration::from_secs(1)));
    assert_eq!(scene.runs().await.unwrap(), SECRET);
}

#[derive(Deserialize)]
struct Unserializable(String);

impl Serialize for Unserializable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("it does not like to be written down"))
    }
}

pub async fn not_serializable() {
    let scene = scene();
    let result = scene.call().run(|_| async { Ok::<_, Error>(Unserializable(SECRET.to_owned())) });
    assert_eq!(result.await.unwrap().0, SECRET);
}

pub async fn unreadable() {
    let scene = scene();
    scene.runs().await.unwrap();
    scene.call().run(|_| async { Ok::<_, Error>(7) }).await.unwrap_err();
}

pub async fn unprotected() {
    let idempotency = Idempotency::disabled();
    for _ in 0..2 {
        idempotency.operation("charge").key(SECRET).run(|_| async { Ok::<_, Error>(1) }).await.unwrap();
    }
    let keyless = scene().idempotency.operation("keyless").on_missing_key(OnMissingKey::Run).key("");
    keyless.run(|_| async { Ok::<_, Error>(1) }).await.unwrap();
}

pub async fn reconciled() {
    let scene = scene();
    scene.hangs(Duration::from_millis(5)).await;
    let found = || async { Ok(Reconciled::Done(SECRET.to_owned())) };
    let call = scene.call().reconcile_or_run(found, |_| async { Ok::<_, Error>(String::new()) });
    assert_eq!(call.await.unwrap(), SECRET);
}

pub async fn purged() {
    let clock = ManualClock::default();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    let store = Arc::new(Faults::new(store));
    let idempotency = Idempotency::new(Arc::clone(&store));
    idempotency.operation("charge").key(SECRET).run(|_| async { Ok::<_, Error>(1) }).await.unwrap();
    clock.advance(Duration::from_secs(100_000_000));
    let _purging = idempotency.purge_every(Duration::from_secs(10));
    sleep(Duration::from_secs(12)).await;
    store.plan_nth(Operation::Purge, 1, Fault::Refuse(StoreErrorKind::Refused));
    sleep(Duration::from_secs(12)).await;
    store.plan_nth(Operation::Purge, 1, Fault::DelayRequest(Duration::from_secs(100)));
    sleep(Duration::from_secs(80)).await;
}
