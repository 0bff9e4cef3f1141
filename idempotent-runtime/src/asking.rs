//! Store calls that are bounded in time and repeated when no answer came.

use std::future::{Future, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use crate::chance;
use crate::idempotency::Core;
use crate::meters::StoreCall;
use crate::store::{Store, StoreError, StoreErrorKind, StoreResult};

/// The future of one store call.
pub(crate) type Asked<'a, T> = Pin<Box<dyn Future<Output = StoreResult<T>> + Send + 'a>>;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Makes a store call, and makes it again while its answer is missing and `patience` lasts.
///
/// Every operation of a store gives the same token the same answer again, so that a repetition is never a second call. A
/// panic of the store is such a missing answer: nobody knows whether it came before the write or after it.
///
/// Outside a tokio runtime there is no timer: one try, as long as it takes.
pub(crate) async fn ask<'a, T: Send + 'a>(
    core: &'a Core,
    operation: &'static str,
    patience: Duration,
    call: impl Fn(&'a dyn Store) -> Asked<'a, T>,
) -> StoreResult<T> {
    let Some(store) = core.store.as_deref() else {
        return Err(StoreError::new("disabled", StoreErrorKind::Refused, "there is no store"));
    };
    let call = |store| Guarded::new(store, operation, call(store));
    let mut asked = call(store);
    match poll_once(&mut asked).await {
        // What is answered at once, as from memory, needs no timer.
        Poll::Ready(Err(error)) if error.is_transient() => asked.asked = Box::pin(ready(Err(error))),
        Poll::Ready(answer) => return answer,
        Poll::Pending => {}
    }
    if Handle::try_current().is_err() {
        return asked.await;
    }
    // In a box, because timers are large: a call that is answered at once shall not carry them.
    Box::pin(insist(core, store, patience, asked, call)).await
}

/// Waits for what was asked, and asks again while no answer comes and `patience` lasts.
async fn insist<'a, T>(
    core: &'a Core,
    store: &'a dyn Store,
    patience: Duration,
    mut asked: Guarded<'a, T>,
    call: impl Fn(&'a dyn Store) -> Guarded<'a, T>,
) -> StoreResult<T> {
    let deadline = after(patience);
    let mut pause = FIRST_PAUSE;
    loop {
        let limit = (deadline - Instant::now()).min(core.settings.store_timeout / 2);
        let error = match in_time(limit, asked).await {
            Err(error) if error.is_transient() => error,
            answer => return answer,
        };
        let jittered = pause.mul_f64(chance::jitter());
        if Instant::now() + jittered >= deadline {
            return Err(error);
        }
        sleep(jittered).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        asked = call(store);
    }
}

/// The moment at which `span` has passed. A span that no clock can hold ends in thirty years, so that a setting of
/// `Duration::MAX` means "as long as it takes".
pub(crate) fn after(span: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(span).unwrap_or_else(|| now + Duration::from_secs(30 * 365 * 24 * 60 * 60))
}

/// Waits so long for an answer, and takes a panic of the store for an answer that did not come.
pub(crate) async fn bounded<T>(
    store: &dyn Store,
    operation: &'static str,
    limit: Duration,
    asked: Asked<'_, T>,
) -> StoreResult<T> {
    in_time(limit, Guarded::new(store, operation, asked)).await
}

async fn in_time<T>(limit: Duration, asked: Guarded<'_, T>) -> StoreResult<T> {
    let name = asked.store.name();
    timeout(limit, asked)
        .await
        .unwrap_or_else(|elapsed| Err(StoreError::new(name, StoreErrorKind::Unavailable, elapsed)))
}

/// A store call in which a panic is an error, and which is timed.
struct Guarded<'a, T> {
    store: &'a dyn Store,
    asked: Asked<'a, T>,
    /// Until it is answered.
    meter: Option<StoreCall>,
}

impl<'a, T> Guarded<'a, T> {
    fn new(store: &'a dyn Store, operation: &'static str, asked: Asked<'a, T>) -> Self {
        Self { store, asked, meter: Some(StoreCall::begin(operation)) }
    }
}

impl<T> Future for Guarded<'_, T> {
    type Output = StoreResult<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<StoreResult<T>> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.asked.as_mut().poll(cx)));
        let polled = polled.unwrap_or_else(|_| {
            let error = StoreError::new(self.store.name(), StoreErrorKind::Unavailable, "it panicked");
            Poll::Ready(Err(error))
        });
        if let (Poll::Ready(answer), Some(meter)) = (&polled, self.meter.take_if(|_| polled.is_ready())) {
            meter.answered(answer);
        }
        polled
    }
}

/// Polls a future a single time.
pub(crate) async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx))).await
}
