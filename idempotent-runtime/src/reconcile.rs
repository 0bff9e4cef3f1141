//! Asking the application what an attempt that gave no answer has done, before its body runs again.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::context::Slot;
use crate::outcome::Outcome;
use crate::reservation::{Ending, Recording};
use crate::run::{Right, Running};
use crate::shim::{Begun, Fallible, Granted};

/// What the application found out about an earlier attempt: the answer of a `reconcile` expression.
///
/// It is found where the truth is: at the other side of the effect, by the key or a
/// [`downstream_key`](crate::Attempt::downstream_key). An attempt that is not dead but only stood still may act after it
/// was asked about; only the other side can prevent that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconciled<T> {
    /// It happened, with this result: it is recorded, and the body does not run.
    Done(T),
    /// It did not happen: the body runs.
    NotDone,
    /// Nobody knows yet: the call gets [`OutcomeUnknown`](crate::Error::OutcomeUnknown), and the next call asks again.
    Unknown,
}

impl Running {
    /// Whether an attempt before this one may have acted, so that the application has to be asked.
    pub(crate) fn is_after_another(&self) -> bool {
        match &self.0 {
            Right::Protected(reservation) => reservation.attempt().number > 1,
            Right::Unprotected(_) => false,
        }
    }
}

/// What was found out about an earlier attempt, for a function that returns `R`.
#[derive(Debug)]
pub enum Finding<R> {
    /// Its result.
    Done(R),
    /// See [`Reconciled::NotDone`].
    NotDone,
    /// See [`Reconciled::Unknown`].
    Unknown,
    /// The error of the one who was asked.
    Failed(R),
}

impl<R: Fallible> Finding<R> {
    pub(crate) fn of(answer: Result<Reconciled<R::Ok>, R::Err>) -> Self {
        match answer {
            Ok(Reconciled::Done(value)) => Self::Done(R::from_result(Ok(value))),
            Ok(Reconciled::NotDone) => Self::NotDone,
            Ok(Reconciled::Unknown) => Self::Unknown,
            Err(error) => Self::Failed(R::from_result(Err(error))),
        }
    }
}

/// Awaits `asked` under the lease of the new attempt, and goes on as it says.
///
/// When it fails, panics or is dropped, the attempt has not been one: it ends uncounted, and the next call asks again.
pub(crate) fn reconcile<R, P, A>(granted: Granted<R, P>, on_error: &P, asked: A) -> Reconciling<'_, R, P, A> {
    Reconciling { granted: Some(granted), on_error, asked: Box::pin(asked), done: None }
}

/// Asking, then recording what was found.
///
/// It asks nothing of its types: what a return type lacks is said where the call is made, and not again where it is
/// awaited. The question is in a box: it is seldom asked, so it takes no room in the future of each call.
pub struct Reconciling<'p, R, P, A> {
    granted: Option<Granted<R, P>>,
    on_error: &'p P,
    asked: Pin<Box<A>>,
    done: Option<Done<R>>,
}

/// The result of an earlier attempt, on its way into the store.
struct Done<R> {
    answer: R,
    slot: Option<Arc<Slot>>,
    recording: Recording,
}

// Nothing in it is pinned but by its box.
impl<R, P, A> Unpin for Reconciling<'_, R, P, A> {}

impl<R, P, A: Future<Output = Finding<R>>> Future for Reconciling<'_, R, P, A> {
    type Output = Begun<R, P>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Begun<R, P>> {
        let this = &mut *self;
        if let Some(granted) = &mut this.granted {
            granted.running.renew();
            let finding = ready!(this.asked.as_mut().poll(cx));
            let Some(granted) = this.granted.take() else { return Poll::Pending };
            match finding {
                Finding::NotDone => return Poll::Ready(Begun::Run(granted)),
                Finding::Unknown => {
                    let error = granted.running.unknown();
                    return Poll::Ready(Begun::Answer((granted.ends.refuse)(error)));
                }
                Finding::Failed(answer) => return Poll::Ready(Begun::Answer(answer)),
                Finding::Done(answer) => match granted.running.0 {
                    Right::Unprotected { .. } => return Poll::Ready(Begun::Answer(answer)),
                    Right::Protected(reservation) => {
                        let ending = match (granted.ends.ending)(&reservation, this.on_error, &answer) {
                            // What is given is the result of the earlier attempt.
                            Ending::Settle(settled, Outcome::Executed) => {
                                Ending::Settle(settled, Outcome::Replayed)
                            }
                            ending => ending,
                        };
                        let slot = reservation.attempt().call.slot.clone();
                        this.done = Some(Done { answer, slot, recording: reservation.end(ending) });
                    }
                },
            }
        }
        // Without it, it was polled after its end, which no executor does.
        let Some(done) = &mut this.done else { return Poll::Pending };
        let outcome = ready!(Pin::new(&mut done.recording).poll(cx));
        if let Some(slot) = &done.slot {
            slot.set(outcome);
        }
        this.done.take().map_or(Poll::Pending, |done| Poll::Ready(Begun::Answer(done.answer)))
    }
}

impl<R, P, A> fmt::Debug for Reconciling<'_, R, P, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconciling").finish_non_exhaustive()
    }
}
