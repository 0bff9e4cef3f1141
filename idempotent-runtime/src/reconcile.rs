//! Asking the application what an attempt that gave no answer has done, before its body runs again.

use std::future::Future;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::on_error::ErrorPolicy;
use crate::outcome::Outcome;
use crate::run::{Right, Running, ending_or_panic};
use crate::shim::{Begun, Fallible};

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
    /// Nobody knows yet: the call gets [`OutcomeUnknown`](Error::OutcomeUnknown), and the next call asks again.
    Unknown,
}

impl Running {
    /// Whether an attempt before this one may have acted, so that the application has to be asked.
    pub fn is_after_another(&self) -> bool {
        match &self.0 {
            Right::Protected(reservation) => reservation.attempt().number > 1,
            Right::Unprotected { .. } => false,
        }
    }
}

/// Awaits `asked` under the lease of the new attempt, and goes on as it says.
///
/// When it fails, panics or is dropped, the attempt has not been one: it ends uncounted, and the next call asks again.
pub(crate) async fn reconcile<R, P, F>(mut running: Running, on_error: &P, asked: F) -> Begun<R>
where
    R: Fallible<Ok: Serialize + DeserializeOwned, Err: From<Error>>,
    P: ErrorPolicy<R::Err>,
    F: Future<Output = Result<Reconciled<R::Ok>, R::Err>>,
{
    running.renew();
    match asked.await {
        Ok(Reconciled::NotDone) => Begun::Run(running),
        Ok(Reconciled::Unknown) => {
            let error = running.unknown();
            Begun::Answer(R::from_result(Err(error.into())))
        }
        Ok(Reconciled::Done(value)) => {
            let answer = Ok(value);
            if let Right::Protected(reservation) = running.0 {
                let ending = ending_or_panic(reservation.attempt(), on_error, answer.as_ref());
                let slot = reservation.attempt().call.slot.clone();
                let outcome = reservation.end(ending).await;
                if let Some(slot) = slot {
                    // What is given is the result of the earlier attempt.
                    slot.set(if outcome == Outcome::Executed { Outcome::Replayed } else { outcome });
                }
            }
            Begun::Answer(R::from_result(answer))
        }
        Err(error) => Begun::Answer(R::from_result(Err(error))),
    }
}
