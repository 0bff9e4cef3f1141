//! Duplicates that wait for the first call's result.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Compared, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved, Resolution,
    Settled, Step, Store, StoreResult, Watch, Write,
};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::{Error, Idempotency, OnCrash, Outcome, with_outcome};
use tests::{Runs, on_memory, on_memory_with, records};
use tokio::sync::oneshot;
use tokio::time::Instant;

const WAIT: Duration = Duration::from_secs(10);

/// A call that runs until it is told what to return.
fn first_call(
    idempotency: &Idempotency,
) -> (oneshot::Sender<Result<u32, Error>>, tokio::task::JoinHandle<Result<u32, Error>>) {
    let (finish, finished) = oneshot::channel();
    let call = idempotency.operation("charge").on_crash(OnCrash::Retry).key("o-1");
    (finish, tokio::spawn(call.run(|_| async { finished.await.unwrap() })))
}

async fn duplicate(idempotency: Idempotency, wait: Duration, runs: Runs) -> Result<u32, Error> {
    let call = idempotency.operation("charge").on_crash(OnCrash::Retry).wait(wait).key("o-1");
    call.run(|_| async { Ok(1000 + runs.count()) }).await
}

#[tokio::test(start_paused = true)]
async fn a_waiting_duplicate_gets_the_result_as_soon_as_it_is_there() {
    let (idempotency, _) = on_memory();
    let (finish, first) = first_call(&idempotency);
    tokio::task::yield_now().await;
    let runs = Runs::default();
    let waiting = tokio::spawn(with_outcome(duplicate(idempotency.clone(), WAIT, runs.clone())));
    tokio::time::sleep(Duration::from_secs(3)).await;
    let finished_at = Instant::now();
    finish.send(Ok(7)).unwrap();
    let (result, outcome) = waiting.await.unwrap();
    assert_eq!((result.unwrap(), outcome), (7, Some(Outcome::Replayed)));
    assert!(
        finished_at.elapsed() < Duration::from_millis(2),
        "woken, not polled: {:?}",
        finished_at.elapsed()
    );
    assert_eq!((first.await.unwrap().unwrap(), runs.total()), (7, 0));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_short_ends_in_progress_after_that_time() {
    let (idempotency, _) = on_memory();
    let (_finish, _first) = first_call(&idempotency);
    tokio::task::yield_now().await;
    let started = Instant::now();
    let error = duplicate(idempotency, WAIT, Runs::default()).await.unwrap_err();
    assert_eq!(error.code(), "in-progress");
    assert!(started.elapsed() >= WAIT && started.elapsed() < WAIT + Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_duplicate_runs_when_the_first_releases_its_key() {
    let (idempotency, _) = on_memory();
    let (finish, first) = first_call(&idempotency);
    tokio::task::yield_now().await;
    let waiting = tokio::spawn(duplicate(idempotency.clone(), WAIT, Runs::default()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    finish.send(Err(Error::NoAttempt)).unwrap();
    assert!(first.await.unwrap().is_err());
    assert_eq!(waiting.await.unwrap().unwrap(), 1001);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_duplicate_takes_over_when_the_first_dies() {
    let (idempotency, _) = on_memory();
    let (_finish, first) = first_call(&idempotency);
    tokio::task::yield_now().await;
    let waiting = tokio::spawn(duplicate(idempotency.clone(), WAIT, Runs::default()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    first.abort();
    assert_eq!(waiting.await.unwrap().unwrap(), 1001);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_waiter_changes_nothing() {
    let (idempotency, _) = on_memory();
    let (finish, first) = first_call(&idempotency);
    tokio::task::yield_now().await;
    let waiting = tokio::spawn(duplicate(idempotency.clone(), WAIT, Runs::default()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    finish.send(Ok(7)).unwrap();
    assert_eq!(first.await.unwrap().unwrap(), 7);
    assert_eq!(duplicate(idempotency, WAIT, Runs::default()).await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_key_is_taken_for_other_arguments_is_refused_at_once() {
    let (idempotency, _) = on_memory();
    let hold = |argument: u32, seconds: u64, result: Result<u32, Error>| {
        let call = idempotency.operation("charge").wait(WAIT).key("o-1").fingerprint(&argument);
        call.run(move |_| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            result
        })
    };
    let started = Instant::now();
    let two_after_another = async {
        assert!(hold(1, 2, Err(Error::NoAttempt)).await.is_err());
        assert_eq!(hold(2, 5, Ok(2)).await.unwrap(), 2);
    };
    let waiter = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let refused = hold(1, 0, Ok(1)).await.unwrap_err();
        assert_eq!((refused.code(), started.elapsed().as_secs()), ("key-reused", 2));
    };
    tokio::join!(two_after_another, waiter);
}

#[tokio::test]
async fn a_wait_cycle_ends() {
    let (idempotency, _) = on_memory_with(|builder| builder.wait(Duration::from_millis(200)));
    let both = tokio::sync::Barrier::new(2);
    let call = |outer: &'static str, inner: &'static str| {
        let outer = idempotency.operation("charge").key(outer);
        let inner = idempotency.operation("charge").key(inner);
        let both = &both;
        async move {
            outer
                .run(|_| async {
                    both.wait().await;
                    inner.run(|_| async { Ok::<_, Error>(()) }).await
                })
                .await
        }
    };
    let (a, b) = tokio::join!(call("k1", "k2"), call("k2", "k1"));
    assert!(a.is_err() || b.is_err());
}

/// A store that never notifies and counts how often it is looked at.
#[derive(Clone, Debug)]
struct Polled {
    inner: MemoryStore,
    loads: Runs,
}

#[async_trait]
impl Store for Polled {
    fn name(&self) -> &'static str {
        "polled"
    }
    async fn reserve(&self, request: Reserve<'_>) -> StoreResult<Reserved> {
        self.inner.reserve(request).await
    }
    async fn renew(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        self.inner.renew(key, owner, lease).await
    }
    async fn begin_effects(&self, key: &RecordKey, owner: OwnerToken, lease: Lease) -> StoreResult<Write> {
        self.inner.begin_effects(key, owner, lease).await
    }
    async fn complete(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> StoreResult<Write> {
        self.inner.complete(key, owner, settled, keep).await
    }
    async fn release(&self, key: &RecordKey, owner: OwnerToken, how: Release) -> StoreResult<Write> {
        self.inner.release(key, owner, how).await
    }
    async fn put_step(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        step: &Step,
        lease: Lease,
    ) -> StoreResult<PutStep> {
        self.inner.put_step(key, owner, step, lease).await
    }
    async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>> {
        self.loads.count();
        self.inner.load(key).await
    }
    async fn resolve(
        &self,
        key: &RecordKey,
        seen: OwnerToken,
        new: OwnerToken,
        how: &Resolution,
    ) -> StoreResult<Compared> {
        self.inner.resolve(key, seen, new, how).await
    }
    async fn forget(&self, key: &RecordKey, seen: OwnerToken) -> StoreResult<Compared> {
        self.inner.forget(key, seen).await
    }
    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        self.inner.list(query).await
    }
    async fn purge(&self, limit: usize) -> StoreResult<usize> {
        self.inner.purge(limit).await
    }
    async fn watch(&self, _: &RecordKey) -> StoreResult<Option<Watch>> {
        Ok(None)
    }
}

#[tokio::test(start_paused = true)]
async fn many_waiters_of_one_key_look_at_the_store_as_one() {
    let store = Polled { inner: MemoryStore::new(), loads: Runs::default() };
    let idempotency = Idempotency::new(store.clone());
    let (finish, _first) = first_call(&idempotency);
    tokio::task::yield_now().await;
    let waiters: Vec<_> =
        (0..200).map(|_| tokio::spawn(duplicate(idempotency.clone(), WAIT, Runs::default()))).collect();
    tokio::time::sleep(Duration::from_secs(5)).await;
    finish.send(Ok(7)).unwrap();
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap().unwrap(), 7);
    }
    assert!(store.loads.total() <= 40, "{} looks in five seconds", store.loads.total());
}

#[tokio::test(start_paused = true)]
async fn handles_of_one_store_look_at_a_key_as_one() {
    let polled = Polled { inner: MemoryStore::new(), loads: Runs::default() };
    let store: Arc<dyn Store> = Arc::new(polled.clone());
    let handles: Vec<_> = (0..20).map(|_| Idempotency::new(Arc::clone(&store))).collect();
    let (finish, _first) = first_call(&handles[0]);
    tokio::task::yield_now().await;
    let waiters: Vec<_> = (0..200)
        .map(|n| tokio::spawn(duplicate(handles[n % handles.len()].clone(), WAIT, Runs::default())))
        .collect();
    // The handle whose waiter came first, and looks out for all of them, goes away.
    drop(handles);
    tokio::time::sleep(Duration::from_secs(5)).await;
    finish.send(Ok(7)).unwrap();
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap().unwrap(), 7);
    }
    assert!(polled.loads.total() <= 40, "{} looks in five seconds", polled.loads.total());
}

#[tokio::test(start_paused = true)]
async fn handles_of_other_namespaces_in_one_store_wait_for_their_own_keys() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let handle = |namespace: &str| {
        Idempotency::builder().store(Arc::clone(&store)).namespace(namespace).build().unwrap()
    };
    let (one, other) = (handle("one"), handle("other"));
    let (finish, first) = first_call(&one);
    tokio::task::yield_now().await;
    let waiting = tokio::spawn(duplicate(one, WAIT, Runs::default()));
    assert_eq!(duplicate(other, WAIT, Runs::default()).await.unwrap(), 1001);
    finish.send(Ok(7)).unwrap();
    assert_eq!((first.await.unwrap().unwrap(), waiting.await.unwrap().unwrap()), (7, 7));
}

#[test]
fn a_waiter_outlives_the_runtime_that_looked_out_for_it() {
    let (idempotency, store) = on_memory();
    let build =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (first_runtime, looking, waiting) = (build(), build(), build());
    let (finish, first) = {
        let _inside = first_runtime.enter();
        first_call(&idempotency)
    };
    first_runtime.block_on(async {
        while records(&store).await.is_empty() {
            tokio::task::yield_now().await;
        }
    });
    looking.spawn(duplicate(idempotency.clone(), WAIT, Runs::default()));
    let waiter = waiting.spawn(duplicate(idempotency.clone(), WAIT, Runs::default()));
    looking.shutdown_background();
    finish.send(Ok(7)).unwrap();
    assert_eq!(waiting.block_on(waiter).unwrap().unwrap(), 7);
    assert_eq!(first_runtime.block_on(first).unwrap().unwrap(), 7);
}

#[test]
fn a_waiter_on_a_runtime_that_is_shutting_down_does_not_block_it() {
    let (idempotency, _) = on_memory();
    let mut first = Box::pin(
        idempotency.operation("charge").key("o-1").run(|_| std::future::pending::<Result<u32, Error>>()),
    );
    assert!(tests::poll_times(first.as_mut(), 1).is_pending());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (started, has_started) = std::sync::mpsc::channel();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let (done, is_done) = std::sync::mpsc::channel();
    runtime.spawn(async move {
        started.send(()).unwrap();
        may_go.recv().unwrap();
        let mut waiter = Box::pin(duplicate(idempotency, WAIT, Runs::default()));
        let waits = std::future::poll_fn(|cx| std::task::Poll::Ready(waiter.as_mut().poll(cx).is_pending()));
        done.send(waits.await).unwrap();
    });
    has_started.recv().unwrap();
    runtime.shutdown_background();
    std::thread::sleep(Duration::from_millis(50));
    go.send(()).unwrap();
    assert!(is_done.recv_timeout(Duration::from_secs(20)).expect("the worker is not stuck"));
}
