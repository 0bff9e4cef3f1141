//! A body on a task of its own, which a caller that goes away cannot interrupt.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, ready};

use tokio::runtime::Handle as Runtime;
use tokio::task::{JoinError, JoinHandle};
use tracing::Instrument;

use crate::error::Error;
use crate::prepared::DETACHED_NEEDS_RUNTIME;
use crate::shim::{Granted, refused};

/// The body of a `detached` function: what keeps it from a task of its own is reported where that was asked for.
pub fn detachable<R, F>(body: Pin<Box<F>>) -> Pin<Box<dyn Future<Output = R> + Send>>
where
    F: Future<Output = R> + Send + 'static,
{
    body
}

/// As `run`, on a task of its own, so that a caller that goes away cannot interrupt the body.
pub fn run_detached<R, P, F>(granted: Granted<R, P>, on_error: P, body: F) -> Detached<R>
where
    F: Future<Output = R> + Send + Unpin + 'static,
    R: Send + 'static,
    P: Send + 'static,
{
    let (background, refuse) = (granted.running.background(), granted.ends.refuse);
    let run = crate::run::run(granted.running, on_error, Box::pin(body), granted.ends).in_current_span();
    // Without a runtime it is refused before the body: dropped unpolled, the run gives its key back.
    let task = Runtime::try_current().ok().map(|runtime| runtime.spawn(background.track(run)));
    Detached { task, refuse }
}

/// The result of a body on a task of its own.
#[derive(Debug)]
pub struct Detached<R> {
    task: Option<JoinHandle<R>>,
    refuse: fn(Error) -> R,
}

impl<R> Future for Detached<R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<R> {
        let Some(task) = &mut self.task else { return Poll::Ready((self.refuse)(interrupted(None))) };
        let joined = ready!(Pin::new(task).poll(cx));
        Poll::Ready(joined.unwrap_or_else(|error| (self.refuse)(interrupted(Some(error)))))
    }
}

/// Carries a panic of the body on to the caller. Without a panic the runtime has ended before the body; without a task
/// there was none.
fn interrupted(error: Option<JoinError>) -> Error {
    let error = match error.map(JoinError::try_into_panic) {
        Some(Ok(panic)) => std::panic::resume_unwind(panic),
        Some(Err(_)) => Error::OutcomeUnknown { operation: "".into() },
        None => Error::NotConfigured { operation: "".into(), reason: DETACHED_NEEDS_RUNTIME },
    };
    refused(error, None)
}
