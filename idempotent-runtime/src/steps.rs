//! Parts of a body that are run once, each remembered when it is done.
//!
//! A step is run until its result is stored, and then never again: a later attempt with the same key is given the result,
//! and goes on after it. What the crash policy can know of an attempt that gave no answer is sharper for it:
//!
//! ```text
//!            on_crash = "retry"            otherwise
//! step(..)   run → store the result        store that it begins → run → store the result
//! crash      the next attempt runs         between steps: the next attempt goes on
//!            what is not stored            inside a step: nobody knows, the key is refused
//! ```

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::asking::ask;
use crate::attempt::{Attempt, Owned};
use crate::context::attempt;
use crate::error::Error;
use crate::policy::OnCrash;
use crate::sealing;
use crate::store::{PutStep, Step, StepState};

/// How many times a new step lets others go first, so that parallel ones can say that they are there.
const TURNS: usize = 4;

/// In bytes. Every store takes names of this length.
const LONGEST_NAME: usize = 255;

const IN_TRANSACTION: &str = "a call with `transaction` has no steps: all that it writes is one commit; call a function of \
                              its own for what has to be remembered apart";

/// The steps of one attempt.
#[derive(Debug, Default)]
pub(crate) struct Steps(Mutex<State>);

#[derive(Default)]
struct State {
    /// What earlier attempts have finished.
    done: Vec<Step>,
    /// The names that this attempt has asked for.
    asked: BTreeSet<Arc<str>>,
    /// How many have begun, and neither failed nor been recorded.
    open: usize,
}

impl Steps {
    /// The steps of an attempt that is granted with these.
    pub(crate) fn new(mut of_earlier_attempts: Vec<Step>) -> Self {
        of_earlier_attempts.retain(|step| matches!(step.state, StepState::Done(_)));
        Self(Mutex::new(State { done: of_earlier_attempts, ..State::default() }))
    }

    /// Whether a step has begun whose effect nobody knows.
    pub(crate) fn in_doubt(&self) -> bool {
        self.state().open > 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result that an earlier attempt has stored.
    fn stored(&self, name: &str) -> Option<Arc<[u8]>> {
        self.state().done.iter().find(|step| *step.name == *name).and_then(|step| match &step.state {
            StepState::Done(bytes) => Some(Arc::clone(bytes)),
            StepState::Begun => None,
        })
    }

    /// The name of a step that an earlier attempt has finished and this one has not asked for.
    fn forgotten(&self) -> Option<Arc<str>> {
        let state = self.state();
        state.done.iter().map(|step| &step.name).find(|name| !state.asked.contains(*name)).cloned()
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("done", &self.done.len())
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

/// Runs a part of the body once for all attempts; see [`Attempt::step`].
///
/// # Errors
/// Those of [`Attempt::step`]; [`Error::NoAttempt`] outside a body.
pub async fn step<T, E, F>(name: &str, body: impl FnOnce() -> F) -> Result<T, E>
where
    T: Serialize + DeserializeOwned,
    E: From<Error>,
    F: Future<Output = Result<T, E>>,
{
    attempt()?.step(name, body).await
}

impl Attempt {
    /// Runs a part of the body once, and remembers its result for the attempts that may come after this one.
    ///
    /// If an earlier attempt with this key has finished the step, `body` is not called and the stored result is given.
    /// Otherwise `body` runs, and its `Ok` is stored before this returns. An `Err` is not stored: it says that the step
    /// did not happen, and the step may be tried again.
    ///
    /// `name` tells the step from every other of this body, and stays the same across deploys. Steps may run in
    /// parallel. In a body that runs unprotected `body` simply runs.
    ///
    /// # Errors
    /// The body's own, and before it runs:
    /// * [`Error::Step`] when the name was used before in this attempt (number it, with [`step_n`](Self::step_n)), when it is
    ///   longer than 255 bytes or has a zero among them, which not every store could keep, or when
    ///   an earlier attempt has finished a step that this one has not asked for, so that it was probably renamed;
    ///   Also in a call in a [transaction](crate::OperationCall::run_in) of the caller's, which is one commit and has no
    ///   parts;
    /// * [`Error::LeaseLost`] when the key is another attempt's;
    /// * [`Error::Store`] when the store does not answer within the handle's `store_timeout`;
    /// * [`Error::Unreadable`] when the stored result is not of this type or `version`.
    ///
    /// After it has run, [`Error::Store`], [`Error::LeaseLost`] or [`Error::Step`] when its result could not be stored. The
    /// body has to give up then: what the step did is in doubt, and the crash policy decides.
    pub fn step<T, E, F, B>(
        &self,
        name: &str,
        body: B,
    ) -> impl Future<Output = Result<T, E>> + use<T, E, F, B>
    where
        T: Serialize + DeserializeOwned,
        E: From<Error>,
        F: Future<Output = Result<T, E>>,
        B: FnOnce() -> F,
    {
        let name: Arc<str> = name.into();
        let asked = self.owned().map(|owned| Asked::new(owned, name));
        async move {
            let Some(asked) = asked else { return body().await };
            let asked = asked?;
            if let Some(bytes) = asked.begin().await? {
                return asked.read(&bytes).map_err(|error| asked.gave(error).into());
            }
            let begun = Begun::new(&asked.attempt);
            match body().await {
                Ok(value) => {
                    asked.record(serde_json::to_vec(&value)).await?;
                    begun.certain();
                    asked.keep();
                    Ok(value)
                }
                Err(error) => {
                    begun.certain();
                    Err(error)
                }
            }
        }
    }

    /// As [`step`](Self::step), for a name that is used several times, as in a loop: `n` tells them apart.
    ///
    /// # Errors
    /// Those of [`step`](Self::step).
    pub fn step_n<T, E, F, B>(
        &self,
        name: &str,
        n: u64,
        body: B,
    ) -> impl Future<Output = Result<T, E>> + use<T, E, F, B>
    where
        T: Serialize + DeserializeOwned,
        E: From<Error>,
        F: Future<Output = Result<T, E>>,
        B: FnOnce() -> F,
    {
        self.step(&format!("{name}#{n}"), body)
    }
}

/// A step that this attempt has asked for. The name is taken when the future is made, not when it is polled, so that
/// parallel steps are known before the first of them runs. Dropped before it is done, it gives the name back.
struct Asked {
    attempt: Arc<Owned>,
    name: Arc<str>,
    kept: AtomicBool,
}

impl Asked {
    fn new(attempt: &Arc<Owned>, name: Arc<str>) -> Result<Self, Error> {
        if name.len() > LONGEST_NAME || name.contains('\0') {
            let reason = "a name has at most 255 bytes, and none of them is zero";
            attempt.note_error();
            let shown: String = name.chars().filter(|char| *char != '\0').take(40).collect();
            return Err(step_error(attempt, &shown.into(), reason));
        }
        let fresh = attempt.steps.state().asked.insert(Arc::clone(&name));
        if fresh {
            return Ok(Self { attempt: Arc::clone(attempt), name, kept: AtomicBool::new(false) });
        }
        let reason = "this attempt has used the name before; give each its own, or number them with `step_n`";
        attempt.note_error();
        Err(step_error(attempt, &name, reason))
    }

    /// The result of an earlier attempt; `None`: the step may run, and if need be it is written down that it does.
    async fn begin(&self) -> Result<Option<Arc<[u8]>>, Error> {
        self.try_to_begin().await.map_err(|error| self.gave(error))
    }

    async fn try_to_begin(&self) -> Result<Option<Arc<[u8]>>, Error> {
        if self.attempt.call.in_transaction {
            return Err(step_error(&self.attempt, &self.name, IN_TRANSACTION));
        }
        if let Some(bytes) = self.attempt.steps.stored(&self.name) {
            self.keep();
            return Ok(Some(bytes));
        }
        let mut turns = 0;
        while let Some(forgotten) = self.attempt.steps.forgotten() {
            if turns == TURNS {
                let reason = format!(
                    "an earlier attempt has done step `{forgotten}`, which this one has not asked for before it \
                     came to a new step; was it renamed?"
                );
                return Err(step_error(&self.attempt, &self.name, &reason));
            }
            turns += 1;
            tokio::task::yield_now().await;
        }
        if Attempt::of(&self.attempt).is_lost() {
            return Err(Error::LeaseLost { operation: self.attempt.call.key.operation().clone() });
        }
        if self.attempt.call.on_crash == OnCrash::Retry {
            return Ok(None);
        }
        self.put(StepState::Begun).await
    }

    /// Stores the result.
    async fn record(&self, encoded: Result<Vec<u8>, serde_json::Error>) -> Result<(), Error> {
        let call = &self.attempt.call;
        let sealed = sealing::seal(call, encoded.map(Cow::Owned)).map_err(|reason| {
            let reason = format!("it ran, and its result cannot be stored ({reason:?})");
            self.gave(step_error(&self.attempt, &self.name, &reason))
        })?;
        let bytes: Arc<[u8]> = call.version.to_be_bytes().iter().chain(&*sealed).copied().collect();
        self.put(StepState::Done(bytes)).await.map(drop).map_err(|error| self.gave(error))
    }

    /// Writes the step. What is there already, if it is done.
    async fn put(&self, state: StepState) -> Result<Option<Arc<[u8]>>, Error> {
        let call = &self.attempt.call;
        let step = Step { name: Arc::clone(&self.name), state };
        let patience = call.core.settings.store_timeout;
        let asked = ask(&call.core, "put_step", patience, |store| {
            store.put_step(&call.key, call.owner, &step, call.lease)
        });
        match asked.await {
            Ok(PutStep::Stored) => Ok(None),
            Ok(PutStep::Exists(bytes)) => Ok(Some(bytes)),
            Ok(PutStep::Lost) => {
                self.attempt.lose();
                Err(Error::LeaseLost { operation: call.key.operation().clone() })
            }
            Err(error) => Err(call.store_error(error)),
        }
    }

    /// A stored result as a value.
    fn read<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, Error> {
        let call = &self.attempt.call;
        let read = match bytes.split_first_chunk() {
            Some((version, sealed)) => sealing::open(call, u32::from_be_bytes(*version), sealed)
                .and_then(|plain| serde_json::from_slice(&plain).map_err(|error| sealing::misfit(&error))),
            None => Err("it has no version".to_owned()),
        };
        read.map_err(|reason| Error::Unreadable {
            operation: call.key.operation().clone(),
            reason: format!("step `{}`: {reason}", self.name).into(),
        })
    }

    /// Notes that the body is given this error.
    fn gave(&self, error: Error) -> Error {
        self.attempt.note_error();
        error
    }

    /// The name stays used.
    fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.kept.load(Ordering::Relaxed) {
            self.attempt.steps.state().asked.remove(&self.name);
        }
    }
}

/// A step whose body is at work. Until something is certain about it, it is in doubt, whatever becomes of its future.
struct Begun<'a>(&'a Owned);

impl<'a> Begun<'a> {
    fn new(attempt: &'a Owned) -> Self {
        attempt.steps.state().open += 1;
        Self(attempt)
    }

    fn certain(self) {
        let mut state = self.0.steps.state();
        state.open = state.open.saturating_sub(1);
    }
}

fn step_error(attempt: &Owned, step: &Arc<str>, reason: &str) -> Error {
    Error::Step {
        operation: attempt.call.key.operation().clone(),
        step: Arc::clone(step),
        reason: reason.into(),
    }
}
