//! Work that must go on although nobody waits for it any more: the rest of a store call whose caller was dropped.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::call::Call;
use crate::meters::BackgroundTask;

/// A future that owns all it needs, so that it can go on elsewhere.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The tasks of one handle, counted so that a shutdown can wait for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Background(TaskTracker);

impl Background {
    /// Runs `work` on the current runtime. Without one it is dropped: correctness never rests on this.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = Handle::try_current() {
            let task = BackgroundTask::begin();
            let work = async move {
                work.await;
                task.end();
            };
            self.0.spawn_on(work, &runtime);
        }
    }

    /// Counts a future that somebody else spawns.
    pub(crate) fn track<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        let task = BackgroundTask::begin();
        self.0.track_future(async move {
            let output = work.await;
            task.end();
            output
        })
    }

    /// How many are at work.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Waits until nothing is at work.
    pub(crate) async fn drain(&self) {
        // A closed tracker takes new tasks as well. Opened again, it would never wake another who waits beside this one.
        self.0.close();
        self.0.wait().await;
    }
}

/// A future that is not cancelled when it is dropped: what is left of it goes on in the background, and its output is
/// dropped there.
pub(crate) struct Handoff<T: Send + 'static> {
    work: Option<BoxFuture<T>>,
    /// Whose background it is. The call, and not the background itself: all calls of a handle share the count of that, and
    /// threads would wait for each other to change it.
    call: Arc<Call>,
}

impl<T: Send + 'static> Handoff<T> {
    pub(crate) fn new(call: &Arc<Call>, work: BoxFuture<T>) -> Self {
        Self { work: Some(work), call: Arc::clone(call) }
    }
}

impl<T: Send + 'static> Future for Handoff<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let polled = work.as_mut().poll(cx);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Handoff<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.call.core.background.spawn(async move { drop(work.await) });
        }
    }
}
