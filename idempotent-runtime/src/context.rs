//! What a task knows of the calls it is in: the handle, the attempt whose body this is, and who asked for an outcome.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::futures::TaskLocalFuture;

use crate::attempt::Attempt;
use crate::error::Error;
use crate::idempotency::Idempotency;
use crate::outcome::Outcome;

tokio::task_local! {
    static CONTEXT: Context;
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    /// The handle that [`Idempotency::within`] set.
    pub(crate) handle: Option<Idempotency>,
    /// The attempt whose body this is.
    pub(crate) attempt: Option<Attempt>,
    /// Where the next annotated call puts its outcome.
    pub(crate) slot: Option<Arc<Slot>>,
}

impl Context {
    /// The context of the running task; an empty one outside.
    pub(crate) fn current() -> Self {
        CONTEXT.try_with(Clone::clone).unwrap_or_default()
    }

    /// Calls `poll` in this context.
    ///
    /// Not generic, so that it is compiled once and not for each annotated function.
    pub(crate) fn enter(self, poll: &mut dyn FnMut()) {
        CONTEXT.sync_scope(self, poll);
    }

    /// Runs `future` in this context.
    pub(crate) fn scope<F: Future>(self, future: F) -> TaskLocalFuture<Self, F> {
        CONTEXT.scope(self, future)
    }
}

/// The attempt whose body this is.
///
/// In a body that runs unprotected it is an attempt that does nothing.
///
/// # Errors
/// [`Error::NoAttempt`] outside a body, or in a task that the body has spawned: an [`Attempt`] can be cloned and taken
/// along.
pub fn attempt() -> Result<Attempt, Error> {
    CONTEXT.try_with(|context| context.attempt.clone()).ok().flatten().ok_or(Error::NoAttempt)
}

/// Runs `future` and also says how the first idempotent call directly inside it came to its result.
///
/// `None` when there was no such call, or when it gave an error of this crate. Calls that are made inside the body of
/// that call, and calls after it, do not count.
///
/// ```
/// # use idempotent_runtime::{with_outcome, Error, Idempotency, Outcome, stores::MemoryStore};
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let idempotency = Idempotency::new(MemoryStore::new());
/// let greet = idempotency.operation("greet");
/// for expected in [Outcome::Executed, Outcome::Replayed] {
///     let call = greet.key("anna").run(|_| async { Ok::<_, Error>("hello, anna".to_owned()) });
///     let (greeting, outcome) = with_outcome(call).await;
///     assert_eq!((greeting.unwrap().as_str(), outcome), ("hello, anna", Some(expected)));
/// }
/// # });
/// ```
pub async fn with_outcome<F: Future>(future: F) -> (F::Output, Option<Outcome>) {
    let slot = Arc::new(Slot::default());
    let context = Context { slot: Some(Arc::clone(&slot)), ..Context::current() };
    let output = context.scope(future).await;
    (output, slot.outcome())
}

/// Where one call leaves its outcome: the first that claims it.
#[derive(Debug, Default)]
pub(crate) struct Slot(Mutex<SlotState>);

#[derive(Debug, Default)]
struct SlotState {
    claimed: bool,
    outcome: Option<Outcome>,
}

impl Slot {
    /// Whether the caller is the first.
    pub(crate) fn claim(&self) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut state.claimed, true)
    }

    pub(crate) fn set(&self, outcome: Outcome) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).outcome = Some(outcome);
    }

    fn outcome(&self) -> Option<Outcome> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).outcome
    }
}
