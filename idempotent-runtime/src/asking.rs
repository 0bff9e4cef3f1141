//! Store calls that are bounded in time and repeated when no answer came.

use std::future::{Future, ready};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use crate::chance;
use crate::idempotency::Core;
use crate::store::{Store, StoreError, StoreErrorKind, StoreResult};

/// The future of one store call.
pub(crate) type Asked<'a, T> = Pin<Box<dyn Future<Output = StoreResult<T>> + Send + 'a>>;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Makes a store call, and makes it again while its answer is missing and `patience` lasts.
///
/// Every operation of a store gives the same token the same answer again, so that a repetition is never a second call.
/// Outside a tokio runtime there is no timer: one try, as long as it takes.
pub(crate) async fn ask<'a, T: Send + 'a>(
    core: &'a Core,
    patience: Duration,
    call: impl Fn(&'a dyn Store) -> Asked<'a, T>,
) -> StoreResult<T> {
    let Some(store) = core.store.as_deref() else {
        return Err(StoreError::new("disabled", StoreErrorKind::Refused, "there is no store"));
    };
    let mut asked = call(store);
    match poll_once(&mut asked).await {
        // What is answered at once, as from memory, needs no timer.
        Poll::Ready(Err(error)) if error.is_transient() => asked = Box::pin(ready(Err(error))),
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
    mut asked: Asked<'a, T>,
    call: impl Fn(&'a dyn Store) -> Asked<'a, T>,
) -> StoreResult<T> {
    let deadline = after(patience);
    let mut pause = FIRST_PAUSE;
    loop {
        let limit = (deadline - Instant::now()).min(core.settings.store_timeout / 2);
        let error = match bounded(store, limit, asked).await {
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

async fn bounded<T>(store: &dyn Store, limit: Duration, answer: Asked<'_, T>) -> StoreResult<T> {
    timeout(limit, answer)
        .await
        .unwrap_or_else(|elapsed| Err(StoreError::new(store.name(), StoreErrorKind::Unavailable, elapsed)))
}

/// Polls a future a single time.
pub(crate) async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx))).await
}
