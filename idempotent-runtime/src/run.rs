//! Running a body under its reservation, and giving its caller what it gave.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use pin_project_lite::pin_project;
use serde::Serialize;
use tokio::task::futures::TaskLocalFuture;

use crate::attempt::Attempt;
use crate::background::{Background, BoxFuture};
use crate::context::{Context, Slot};
use crate::on_error::ErrorPolicy;
use crate::outcome::{Outcome, Unrecorded};
use crate::policy::OnError;
use crate::reservation::{Ending, Reservation};
use crate::shim::Fallible;
use crate::store::{Settled, Stored};

/// The right to run a body, protected or not.
#[derive(Debug)]
pub struct Running(pub(crate) Right);

#[derive(Debug)]
pub(crate) enum Right {
    Protected(Reservation),
    /// By a disabled handle, or without a key where that is allowed.
    Unprotected {
        context: Context,
        slot: Option<Arc<Slot>>,
        background: Background,
    },
}

impl Running {
    /// The attempt that the body is.
    pub(crate) fn attempt(&self) -> Attempt {
        match &self.0 {
            Right::Protected(reservation) => Attempt::of(reservation.attempt()),
            Right::Unprotected { .. } => Attempt::UNPROTECTED,
        }
    }

    /// The background of the handle.
    pub(crate) fn background(&self) -> Background {
        match &self.0 {
            Right::Protected(reservation) => reservation.attempt().call.core.background.clone(),
            Right::Unprotected { background, .. } => background.clone(),
        }
    }

    fn body_context(&self) -> Context {
        match &self.0 {
            Right::Protected(reservation) => reservation.body_context(),
            Right::Unprotected { context, .. } => context.clone(),
        }
    }
}

pin_project! {
    /// A body at work, then its recording.
    ///
    /// Written by hand because an `async fn` would hold the body twice: once as its argument, once where it is polled.
    pub struct Run<R, P, F> {
        #[pin]
        body: TaskLocalFuture<Context, F>,
        policy: P,
        stage: Stage<R>,
        answer: PhantomData<fn() -> R>,
    }
}

enum Stage<R> {
    Body(Running),
    Recording { answer: Option<R>, slot: Option<Arc<Slot>>, recording: BoxFuture<Outcome> },
    Ended,
}

/// Runs `body`, records what it gives as `policy` says, and gives it to the caller as it is.
pub(crate) fn run<R, P, F: Future<Output = R>>(running: Running, policy: P, body: F) -> Run<R, P, F> {
    Run { body: running.body_context().scope(body), policy, stage: Stage::Body(running), answer: PhantomData }
}

impl<R, P, F> Future for Run<R, P, F>
where
    R: Fallible<Ok: Serialize>,
    P: ErrorPolicy<R::Err>,
    F: Future<Output = R>,
{
    type Output = R;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<R> {
        let mut this = self.project();
        loop {
            match this.stage {
                Stage::Body(running) => {
                    running.polling();
                    let Poll::Ready(answer) = this.body.as_mut().poll(cx) else {
                        running.pending();
                        return Poll::Pending;
                    };
                    let Stage::Body(running) = std::mem::replace(this.stage, Stage::Ended) else {
                        return Poll::Pending;
                    };
                    let answer = answer.into_result();
                    match running.0 {
                        Right::Unprotected { slot, .. } => {
                            set(slot.as_deref(), Outcome::Unprotected);
                            return Poll::Ready(R::from_result(answer));
                        }
                        Right::Protected(reservation) => {
                            let ending = ending_or_panic(&reservation, this.policy, &answer);
                            *this.stage = Stage::Recording {
                                answer: Some(R::from_result(answer)),
                                slot: reservation.attempt().call.slot.clone(),
                                recording: reservation.end(ending),
                            };
                        }
                    }
                }
                Stage::Recording { answer, slot, recording } => {
                    let outcome = ready!(recording.as_mut().poll(cx));
                    set(slot.as_deref(), outcome);
                    let answer = answer.take();
                    *this.stage = Stage::Ended;
                    return answer.map_or(Poll::Pending, Poll::Ready);
                }
                // Polled after its end, which no executor does.
                Stage::Ended => return Poll::Pending,
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

    fn pending(&mut self) {
        if let Right::Protected(reservation) = &mut self.0 {
            reservation.pending();
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
fn ending_or_panic<T: Serialize, E, P: ErrorPolicy<E>>(
    reservation: &Reservation,
    policy: &P,
    answer: &Result<T, E>,
) -> Ending {
    catch_unwind(AssertUnwindSafe(|| ending(reservation, policy, answer))).unwrap_or_else(|_| {
        let reason: Box<dyn std::error::Error + Send + Sync> = "the application's code panicked".into();
        crate::events::not_serializable(&reservation.attempt().call, &*reason);
        let settled = if answer.is_ok() { Settled::NotRetained } else { Settled::Unknown };
        Ending::Settle(settled, Outcome::Unrecorded(Unrecorded::NotSerializable))
    })
}

/// What the end of a body does to its record.
fn ending<T: Serialize, E, P: ErrorPolicy<E>>(
    reservation: &Reservation,
    policy: &P,
    answer: &Result<T, E>,
) -> Ending {
    let attempt = reservation.attempt();
    match answer {
        Ok(value) => settle(reservation, serde_json::to_vec(value), Settled::Completed),
        Err(error) => match policy.decide(error) {
            OnError::Replay if !attempt.gave_error() => {
                settle(reservation, policy.encode(error), Settled::Failed)
            }
            // An error of this crate says nothing about the work, so it is never the result of it.
            OnError::Retry | OnError::Replay if !attempt.effects_begun() => Ending::Release,
            OnError::Retry | OnError::Replay | OnError::Refuse => {
                Ending::Settle(Settled::Unknown, Outcome::Executed)
            }
        },
    }
}

/// Settles with these bytes, or with the fact that there was a result, when they cannot be kept.
fn settle(
    reservation: &Reservation,
    encoded: Result<Vec<u8>, serde_json::Error>,
    settled: fn(Stored) -> Settled,
) -> Ending {
    let call = &reservation.attempt().call;
    let encoded = encoded.map_err(Into::into).and_then(|plain| match &call.core.settings.codec {
        Some(codec) => codec.encode(&call.key, plain),
        None => Ok(plain),
    });
    let bytes = match encoded {
        Ok(bytes) => bytes,
        Err(error) => {
            crate::events::not_serializable(call, &*error);
            return Ending::Settle(Settled::NotRetained, Outcome::Unrecorded(Unrecorded::NotSerializable));
        }
    };
    if call.core.max_result_bytes().is_some_and(|limit| bytes.len() > limit) {
        return Ending::Settle(Settled::NotRetained, Outcome::Unrecorded(Unrecorded::TooLarge));
    }
    let stored = Stored { version: call.version, bytes: bytes.into() };
    Ending::Settle(settled(stored), Outcome::Executed)
}

impl<R, P, F> fmt::Debug for Run<R, P, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}
