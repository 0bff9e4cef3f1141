//! The right to run one body, and what becomes of it when the body ends, or does not.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep};

use crate::asking::{ask, poll_once};
use crate::attempt::{Attempt, Owned};
use crate::background::{BoxFuture, Handoff};
use crate::call::{Call, release};
use crate::context;
use crate::error::Error;
use crate::events;
use crate::heartbeat::Heartbeat;
use crate::immediate::{Immediate, at_once};
use crate::meters;
use crate::outcome::{Outcome, Unrecorded};
use crate::policy::OnLost;
use crate::store::{Release, Settled, StoreResult, Write};

/// How many tasks a handle may have in the background before it gives no more keys back.
const MOST_IN_BACKGROUND: usize = 10_000;

/// The right to run the body, held by one attempt.
///
/// Dropped before the body was first polled, it gives the key back: nothing has happened. Dropped after that, it
/// abandons: nobody knows what has happened, the lease ends now, and the policies decide.
#[derive(Debug)]
pub(crate) struct Reservation {
    attempt: Arc<Owned>,
    phase: Phase,
    heartbeat: Option<Heartbeat>,
    body: meters::Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reserved,
    Running,
    Ended,
}

/// What the end of a body does to its record.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The record is settled; the outcome is what it means for the caller.
    Settle(Settled, Outcome),
    /// The key is given back.
    Release,
}

impl Reservation {
    pub(crate) fn new(attempt: Owned) -> Self {
        Self {
            attempt: Arc::new(attempt),
            phase: Phase::Reserved,
            heartbeat: None,
            body: meters::Body::new(),
        }
    }

    pub(crate) fn attempt(&self) -> &Arc<Owned> {
        &self.attempt
    }

    /// The context in which the body runs.
    pub(crate) fn body_context(&self) -> context::Context {
        context::Context {
            handle: self.attempt.call.handle(),
            attempt: Some(Attempt::of(&self.attempt)),
            slot: None,
        }
    }

    /// Notes that the body is about to be polled.
    pub(crate) fn polling(&mut self) {
        self.phase = Phase::Running;
        self.body.polling();
        self.attempt.polling();
    }

    /// Renews the lease from now on.
    pub(crate) fn renew(&mut self) {
        if self.heartbeat.is_none() {
            self.heartbeat = Heartbeat::start(&self.attempt);
        }
    }

    /// What ends when the lease is lost, for a body that is to be dropped then.
    pub(crate) fn loss(&self) -> Option<BoxFuture<()>> {
        if self.attempt.call.on_lost == OnLost::GoOn {
            return None;
        }
        let attempt = Attempt::of(&self.attempt);
        Some(Box::pin(async move { attempt.lost().await }))
    }

    /// Ends without a word to the store: what stands there may be another attempt's. Gives the caller's error.
    pub(crate) fn cancel(mut self) -> Error {
        let call = Arc::clone(&self.attempt.call);
        self.body.over(call.key.operation(), "cancelled");
        self.phase = Phase::Ended;
        self.attempt.end();
        events::cancelled(&call, self.attempt.number);
        Error::LeaseLost { operation: call.key.operation().clone() }
    }

    /// Records the end of the body.
    pub(crate) fn end(mut self, ending: Ending) -> Recording {
        if self.phase == Phase::Running {
            self.body.over(self.attempt.call.key.operation(), "ended");
        }
        self.phase = Phase::Ended;
        self.attempt.end();
        let heartbeat = self.heartbeat.take();
        if let Some(outcome) = record_at_once(&self.attempt, &ending) {
            return Recording::Done(outcome);
        }
        let attempt = Arc::clone(&self.attempt);
        let call = &self.attempt.call;
        let work = Handoff::new(call, Box::pin(record(attempt, ending, heartbeat)));
        Recording::AtWork { work, patience: call.core.settings.store_timeout, timer: None }
    }
}

/// The recording of a body's end. The caller waits for it as long as the handle's `store_timeout`; then, or when it goes
/// away before, the rest is done in the background.
pub(crate) enum Recording {
    Done(Outcome),
    AtWork {
        work: Handoff<Outcome>,
        patience: Duration,
        /// There is none before the store keeps the caller waiting, and none without a runtime.
        timer: Option<Pin<Box<Sleep>>>,
    },
}

impl Future for Recording {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let (work, patience, timer) = match &mut *self {
            Self::Done(outcome) => return Poll::Ready(*outcome),
            Self::AtWork { work, patience, timer } => (work, patience, timer),
        };
        if let Poll::Ready(outcome) = Pin::new(work).poll(cx) {
            return Poll::Ready(outcome);
        }
        if timer.is_none() && Handle::try_current().is_ok() {
            *timer = Some(Box::pin(sleep(*patience)));
        }
        let Some(timer) = timer else { return Poll::Pending };
        timer.as_mut().poll(cx).map(|()| Outcome::Unrecorded(Unrecorded::StoreFailed))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let call = &self.attempt.call;
        let how = match self.phase {
            Phase::Ended => return,
            Phase::Running => {
                self.body.over(call.key.operation(), "dropped");
                Release::Abandon
            }
            Phase::Reserved => Release::Unused,
        };
        events::dropped(call, self.attempt.number, how);
        give_back(call, how);
    }
}

/// Ends an attempt in the background, for as long as the handle's patience lasts.
///
/// In an outage every call leaves such a task behind. Past a bound they are not worth their memory, nor the storm when the
/// store is back: the leases end by themselves, and correctness never rests on this.
pub(crate) fn give_back(call: &Arc<Call>, how: Release) {
    if call.core.background.len() >= MOST_IN_BACKGROUND {
        return events::not_given_back(call);
    }
    let released = release(call, how);
    call.core.background.spawn(async move {
        // Whether it succeeds is not this call's business any more: at worst the lease ends by itself.
        let _ = released.await;
    });
}

/// Writes down how the body ended, in a store that answers without waiting. `None`: it is none, or did not take it.
fn record_at_once(attempt: &Owned, ending: &Ending) -> Option<Outcome> {
    let call = &*attempt.call;
    let Ending::Settle(settled, outcome) = ending else { return None };
    let complete =
        |store: &dyn Immediate| store.complete(&call.key, call.owner, settled, call.keeps(settled));
    let written = at_once(&call.core, "complete", complete)?.ok()?;
    Some(recorded(attempt, Ok(written), *outcome))
}

/// Writes down how the body ended, again and again until the store confirms or the handle's patience is over. The
/// heartbeat goes on meanwhile, so that nobody takes over what is only not recorded yet.
async fn record(attempt: Arc<Owned>, ending: Ending, mut heartbeat: Option<Heartbeat>) -> Outcome {
    let call = &attempt.call;
    let mut writing = pin!(write(call, ending));
    let (written, outcome) = match poll_once(&mut writing).await {
        Poll::Ready(written) => written,
        Poll::Pending => {
            heartbeat = heartbeat.or_else(|| Heartbeat::start(&attempt));
            writing.await
        }
    };
    drop(heartbeat);
    recorded(&attempt, written, outcome)
}

/// What a caller is told of its recording; `outcome`, if it is written.
fn recorded(attempt: &Owned, written: StoreResult<Write>, outcome: Outcome) -> Outcome {
    let call = &*attempt.call;
    let outcome = match written {
        Ok(Write::Applied) => outcome,
        Ok(Write::Lost) => Outcome::Unrecorded(Unrecorded::LeaseLost),
        Err(error) => {
            events::not_recorded(call, attempt.number, &error);
            Outcome::Unrecorded(Unrecorded::StoreFailed)
        }
    };
    events::ended(call, attempt.number, outcome);
    outcome
}

/// Writes the ending, and says what it means for the caller if it is written.
async fn write(call: &Arc<Call>, ending: Ending) -> (StoreResult<Write>, Outcome) {
    match ending {
        Ending::Release => (release(call, Release::Forget).await, Outcome::Executed),
        Ending::Settle(settled, outcome) => match complete(call, &settled).await {
            // The store does not take this result, and never will: then it keeps that there was one.
            Err(error) if !error.is_transient() && settled.stored().is_some() => {
                let written = Box::pin(complete(call, &Settled::NotRetained)).await;
                (written, Outcome::Unrecorded(Unrecorded::TooLarge))
            }
            written => (written, outcome),
        },
    }
}

async fn complete(call: &Call, settled: &Settled) -> StoreResult<Write> {
    let core = &*call.core;
    let keep = call.keeps(settled);
    ask(core, "complete", core.settings.record_patience, |store| {
        store.complete(&call.key, call.owner, settled, keep)
    })
    .await
}

impl Call {
    /// How long its record is kept.
    fn keeps(&self, settled: &Settled) -> Duration {
        match settled {
            Settled::Unknown => self.lease.unknown_ttl,
            _ => self.own_ttl.get().copied().unwrap_or(self.ttl),
        }
    }
}
