//! Running a body under its reservation, and giving its caller what it gave.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use serde::Serialize;

use crate::attempt::{Attempt, Owned};
use crate::background::{Background, BoxFuture};
use crate::context::{Context, Slot};
use crate::error::Error;
use crate::on_error::ErrorPolicy;
use crate::outcome::{Outcome, Unrecorded};
use crate::policy::OnError;
use crate::prepared::Unprotected;
use crate::reservation::{Ending, Recording, Reservation};
use crate::sealing;
use crate::shim::refused;
use crate::store::{Settled, Stored};

/// The right to run a body, protected or not.
#[derive(Debug)]
pub struct Running(pub(crate) Right);

#[derive(Debug)]
pub(crate) enum Right {
    Protected(Reservation),
    /// By a disabled handle, or without a key where that is allowed.
    Unprotected(Unprotected),
}

impl Running {
    /// The attempt that the body is.
    pub(crate) fn attempt(&self) -> Attempt {
        match &self.0 {
            Right::Protected(reservation) => Attempt::of(reservation.attempt()),
            Right::Unprotected(_) => Attempt::UNPROTECTED,
        }
    }

    /// The background of the handle.
    pub(crate) fn background(&self) -> Background {
        match &self.0 {
            Right::Protected(reservation) => reservation.attempt().call.core.background.clone(),
            Right::Unprotected(unprotected) => unprotected.background.clone(),
        }
    }

    /// What ends when the body is to be dropped, if ever.
    fn loss(&self) -> Option<BoxFuture<()>> {
        match &self.0 {
            Right::Protected(reservation) => reservation.loss(),
            Right::Unprotected(_) => None,
        }
    }

    fn body_context(&self) -> Context {
        match &self.0 {
            Right::Protected(reservation) => reservation.body_context(),
            Right::Unprotected(unprotected) => unprotected.context.clone(),
        }
    }
}

/// A body at work, then its recording.
///
/// The body is in a box, so that what an annotated function adds to a future is small and of one size. Otherwise annotated
/// functions that call each other would soon be too deep for the compiler, and too large for a thread's stack.
pub enum Run<R, P, F: ?Sized> {
    /// Until there is an answer.
    #[doc(hidden)]
    AtWork {
        recorded: Recorded<R, P>,
        // Last, so that the compiler has looked at all the rest before it follows the body into the next call.
        body: Pin<Box<F>>,
    },
    /// The body was dropped before its end.
    #[doc(hidden)]
    Dropped,
}

// Nothing in it is pinned but by its box.
impl<R, P, F: ?Sized> Unpin for Run<R, P, F> {}

/// All of it but the body, so that functions of the same types share what is compiled for it.
pub struct Recorded<R, P> {
    stage: Stage,
    context: Context,
    policy: P,
    ends: Ends<R, P>,
    /// What ends when it is to be dropped.
    loss: Option<BoxFuture<()>>,
    /// What the body gave. It stays here until it is the caller's.
    answer: Option<R>,
}

/// What is done with a result, so that to be awaited asks nothing of its type.
pub(crate) struct Ends<R, P> {
    /// How it is written down.
    pub(crate) ending: fn(&Reservation, &P, &R) -> Ending,
    /// What the caller gets when the body is dropped before its end.
    pub(crate) refuse: fn(Error) -> R,
}

enum Stage {
    Body(Running),
    Recording { slot: Option<Arc<Slot>>, recording: Recording },
    Ended,
}

/// Runs `body`, records what it gives as `policy` and `ends` say, and gives it to the caller as it is.
pub(crate) fn run<R, P, F>(running: Running, policy: P, body: Pin<Box<F>>, ends: Ends<R, P>) -> Run<R, P, F>
where
    F: Future<Output = R> + ?Sized,
{
    Run::AtWork { body, recorded: Recorded::new(running, policy, ends) }
}

impl<R, P, F: Future<Output = R> + ?Sized> Future for Run<R, P, F> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<R> {
        let Self::AtWork { recorded, body } = &mut *self else { return Poll::Pending };
        if recorded.is_lost(cx) {
            let answer = recorded.cancel();
            // Before the caller hears of it, so that nothing goes on behind its back.
            *self = Self::Dropped;
            return answer.map_or(Poll::Pending, Poll::Ready);
        }
        recorded.poll(cx, &mut |cx, answer| {
            let polled = body.as_mut().poll(cx);
            polled.map(|given| *answer = Some(given))
        })
    }
}

impl<R, P> Recorded<R, P> {
    fn new(running: Running, policy: P, ends: Ends<R, P>) -> Self {
        let (context, loss) = (running.body_context(), running.loss());
        Self { stage: Stage::Body(running), context, policy, ends, loss, answer: None }
    }

    fn poll(
        &mut self,
        cx: &mut TaskContext<'_>,
        body: &mut dyn FnMut(&mut TaskContext<'_>, &mut Option<R>) -> Poll<()>,
    ) -> Poll<R> {
        if let Stage::Body(running) = &mut self.stage {
            running.polling();
            let mut polled = Poll::Pending;
            self.context.clone().enter(&mut || polled = body(cx, &mut self.answer));
            if polled.is_pending() {
                running.renew();
                return Poll::Pending;
            }
            self.body_ended();
        }
        if let Stage::Recording { slot, recording } = &mut self.stage {
            let outcome = ready!(Pin::new(recording).poll(cx));
            set(slot.as_deref(), outcome);
            self.stage = Stage::Ended;
        }
        // Without an answer it was polled after its end, which no executor does.
        self.answer.take().map_or(Poll::Pending, Poll::Ready)
    }

    /// Whether the body is to be dropped now.
    fn is_lost(&mut self, cx: &mut TaskContext<'_>) -> bool {
        let at_work = matches!(self.stage, Stage::Body(_));
        at_work && self.loss.as_mut().is_some_and(|loss| loss.as_mut().poll(cx).is_ready())
    }

    /// The answer of a call whose body was dropped.
    fn cancel(&mut self) -> Option<R> {
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Body(Running(Right::Protected(reservation))) => {
                let started = reservation.attempt().call.started;
                let error = refused(reservation.cancel(), Some(started));
                Some((self.ends.refuse)(error))
            }
            _ => None,
        }
    }

    /// Begins to record what the body gave, if that is to be recorded.
    fn body_ended(&mut self) {
        let (Stage::Body(running), Some(answer)) =
            (std::mem::replace(&mut self.stage, Stage::Ended), &self.answer)
        else {
            return;
        };
        match running.0 {
            Right::Unprotected(unprotected) => unprotected.ended(),
            Right::Protected(reservation) => {
                let ending = (self.ends.ending)(&reservation, &self.policy, answer);
                self.stage = Stage::Recording {
                    slot: reservation.attempt().call.slot.clone(),
                    recording: reservation.end(ending),
                };
            }
        }
    }
}

impl Running {
    /// Notes that the body is about to begin.
    pub(crate) fn polling(&mut self) {
        if let Right::Protected(reservation) = &mut self.0 {
            reservation.polling();
        }
    }

    /// The error for an attempt before this one of which nobody knows what it did.
    pub(crate) fn unknown(&self) -> Error {
        let (operation, started) = match &self.0 {
            Right::Protected(reservation) => {
                let call = &reservation.attempt().call;
                (call.key.operation().clone(), call.started)
            }
            Right::Unprotected(unprotected) => (unprotected.operation.clone(), unprotected.started),
        };
        refused(Error::OutcomeUnknown { operation }, Some(started))
    }

    /// Renews the lease from now on.
    pub(crate) fn renew(&mut self) {
        if let Right::Protected(reservation) = &mut self.0 {
            reservation.renew();
        }
    }
}

fn set(slot: Option<&Slot>, outcome: Outcome) {
    if let Some(slot) = slot {
        slot.set(outcome);
    }
}

/// What the end of a body does to its record, also when the application's own code panics over it: a `Serialize`, a codec
/// or an `on_error`. The body has run to its end by then, so its value is still its caller's, and it never runs again.
pub(crate) fn ending_or_panic<T: Serialize, E, P: ErrorPolicy<E>>(
    attempt: &Owned,
    policy: &P,
    answer: Result<&T, &E>,
) -> Ending {
    catch_unwind(AssertUnwindSafe(|| ending(attempt, policy, answer))).unwrap_or_else(|_| {
        let reason: Box<dyn std::error::Error + Send + Sync> = "the application's code panicked".into();
        crate::events::not_serializable(&attempt.call, &*reason);
        let settled = if answer.is_ok() { Settled::NotRetained } else { Settled::Unknown };
        Ending::Settle(settled, Outcome::Unrecorded(Unrecorded::NotSerializable))
    })
}

/// What the end of a body does to its record.
fn ending<T: Serialize, E, P: ErrorPolicy<E>>(attempt: &Owned, policy: &P, answer: Result<&T, &E>) -> Ending {
    match answer {
        Ok(value) => sealing::serialized(value, |written| {
            settle(attempt, written.map(Cow::Borrowed), Settled::Completed)
        }),
        Err(error) => match policy.decide(error) {
            OnError::Replay if !attempt.passes_error_on() => {
                settle(attempt, policy.encode(error).map(Cow::Owned), Settled::Failed)
            }
            // An error of this crate says nothing about the work, so it is never the result of it.
            OnError::Retry | OnError::Replay if !attempt.may_have_acted() => Ending::Release,
            OnError::Retry | OnError::Replay | OnError::Refuse => {
                Ending::Settle(Settled::Unknown, Outcome::Executed)
            }
        },
    }
}

/// Settles with these bytes, or with the fact that there was a result, when they cannot be kept.
pub(crate) fn settle(
    attempt: &Owned,
    encoded: Result<Cow<'_, [u8]>, serde_json::Error>,
    settled: fn(Stored) -> Settled,
) -> Ending {
    let call = &attempt.call;
    match sealing::seal(call, encoded) {
        Ok(bytes) => {
            let stored = Stored { version: call.version, bytes: (*bytes).into() };
            Ending::Settle(settled(stored), Outcome::Executed)
        }
        Err(reason) => Ending::Settle(Settled::NotRetained, Outcome::Unrecorded(reason)),
    }
}

impl<R, P, F: ?Sized> fmt::Debug for Run<R, P, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

impl<R, P> fmt::Debug for Recorded<R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded").finish_non_exhaustive()
    }
}
