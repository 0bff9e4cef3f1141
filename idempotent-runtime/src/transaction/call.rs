//! The life of one call in a transaction of the caller's. What stands in its way is judged as for every other call.

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{Entered, Entry, Link, TransactionConnection, Transactional, Trouble, WAIT};
use crate::asking::after;
use crate::attempt::{Attempt, Owned};
use crate::call::{Begun, Call, Judged, judge};
use crate::context::{Context, Slot};
use crate::error::Error;
use crate::events;
use crate::on_error::ErrorPolicy;
use crate::outcome::Outcome;
use crate::prepared::{Prepared, Ready, Unprotected};
use crate::replay::Replay;
use crate::reservation::Ending;
use crate::run::ending_or_panic;
use crate::shim::{Fallible, refused, replay};
use crate::store::{Settled, Store};

const NO_RECORDS: &str = "the store of this handle keeps no records in a database that a transaction can be of; \
                          `transaction` works with `PostgresStore`, `MySqlStore` and, with the \
                          feature `sqlite-transactions`, `SqliteStore`";
const OTHER_DATABASE: &str = "the transaction is of another kind of database than the table of the store";
const NOT_OPEN: &str = "the connection is not inside a transaction; begin one, and commit it after the call";
const ENDED: &str =
    "the body has ended the transaction of its call, so what it wrote and the record of it are not one";

/// How long a waiting call pauses before it looks at a running record again.
const PAUSE: Duration = Duration::from_millis(50);

/// When to ask again about a transaction of which nobody knows how long it takes.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What a call in a transaction has to do after it has begun.
#[derive(Debug)]
pub enum BegunIn<R, P> {
    /// Nothing: this is its result.
    Answer(R),
    /// Run the body, then close the call.
    Run(RunningIn, Closing<R, P>),
}

/// The right to run a body in a transaction.
pub struct RunningIn(Right);

enum Right {
    Protected { attempt: Arc<Owned>, records: Transactional },
    Unprotected(Unprotected),
}

impl RunningIn {
    /// The attempt that the body is.
    pub(crate) fn attempt(&self) -> Attempt {
        match &self.0 {
            Right::Protected { attempt, .. } => Attempt::of(attempt),
            Right::Unprotected(_) => Attempt::UNPROTECTED,
        }
    }

    /// Notes that the body is about to begin.
    pub(crate) fn polling(&self) {
        if let Right::Protected { attempt, .. } = &self.0 {
            attempt.polling();
        }
    }

    fn body_context(&self) -> Context {
        match &self.0 {
            Right::Protected { attempt, .. } => {
                Context { handle: attempt.call.handle(), attempt: Some(Attempt::of(attempt)), slot: None }
            }
            Right::Unprotected(unprotected) => unprotected.context.clone(),
        }
    }
}

impl fmt::Debug for RunningIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningIn").finish_non_exhaustive()
    }
}

/// A call that has entered the transaction, or has a result.
pub struct EnteredIn(Entrance);

enum Entrance {
    Replay(Replay),
    Run(RunningIn),
}

impl fmt::Debug for EnteredIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnteredIn").finish_non_exhaustive()
    }
}

/// Reserves the key in the transaction, or finds the result.
pub(crate) async fn begin_in<R, P, C>(prepared: Prepared, on_error: &P, connection: &mut C) -> BegunIn<R, P>
where
    R: Fallible<Ok: Serialize + DeserializeOwned, Err: From<Error>>,
    P: ErrorPolicy<R::Err>,
    C: TransactionConnection,
{
    begun_in(enter_in(prepared, connection).await, on_error)
}

/// The first part of `begin_in`, which knows no types: a message about one is not repeated where it is awaited.
///
/// # Errors
/// Those of a call whose body does not run.
pub async fn enter_in(
    mut prepared: Prepared,
    connection: &mut dyn TransactionConnection,
) -> Result<EnteredIn, Error> {
    prepared.in_transaction();
    let started = Instant::now();
    let entered = beginning(prepared, started, connection).await;
    entered.map(EnteredIn).map_err(|error| refused(error, Some(started)))
}

/// The second part of [`begin_in`].
pub(crate) fn begun_in<R, P>(entered: Result<EnteredIn, Error>, on_error: &P) -> BegunIn<R, P>
where
    R: Fallible<Ok: Serialize + DeserializeOwned, Err: From<Error>>,
    P: ErrorPolicy<R::Err>,
{
    match entered {
        Ok(EnteredIn(Entrance::Run(running))) => BegunIn::Run(running, Closing { ending, answer }),
        Ok(EnteredIn(Entrance::Replay(stored))) => BegunIn::Answer(R::from_result(replay(&stored, on_error))),
        Err(error) => BegunIn::Answer(R::from_result(Err(error.into()))),
    }
}

/// Runs the body. Its future has ended, and given back what it borrows of the transaction, when this returns.
pub async fn run_in<F: Future>(running: &RunningIn, body: F) -> F::Output {
    let context = running.body_context();
    let mut body = Box::pin(body);
    poll_fn(|cx| {
        running.polling();
        let mut polled = Poll::Pending;
        context.clone().enter(&mut || polled = body.as_mut().poll(cx));
        polled
    })
    .await
}

/// How a call ends. It asks nothing of its types: what a return type lacks is said where the call begins, and not again.
pub struct Closing<R, P> {
    ending: fn(&RunningIn, &P, &R) -> EndingIn,
    answer: fn(Result<(), Error>, R) -> R,
}

impl<R, P> Closing<R, P> {
    /// What becomes of the record of a body that gave `answer`; then comes [`record_in`].
    pub fn ending(&self, running: &RunningIn, on_error: &P, answer: &R) -> EndingIn {
        (self.ending)(running, on_error, answer)
    }

    /// What the caller gets.
    pub fn answer(&self, recorded: Result<(), Error>, answer: R) -> R {
        (self.answer)(recorded, answer)
    }
}

impl<R, P> fmt::Debug for Closing<R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closing").finish_non_exhaustive()
    }
}

/// What the end of a body does to its record.
pub struct EndingIn {
    /// `None` in a call that is not protected.
    ending: Option<Ending>,
    failed: bool,
}

impl fmt::Debug for EndingIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndingIn").finish_non_exhaustive()
    }
}

fn ending<R, P>(running: &RunningIn, on_error: &P, answer: &R) -> EndingIn
where
    R: Fallible<Ok: Serialize>,
    P: ErrorPolicy<R::Err>,
{
    let answer = answer.as_result();
    let ending = match &running.0 {
        Right::Protected { attempt, .. } => {
            attempt.end();
            Some(ending_or_panic(attempt, on_error, answer))
        }
        Right::Unprotected { .. } => None,
    };
    EndingIn { ending, failed: answer.is_err() }
}

/// Records in the transaction what the body gave. With an error that is not what the caller gets.
///
/// # Errors
/// When the transaction cannot be completed.
pub async fn record_in(
    running: RunningIn,
    ending: EndingIn,
    connection: &mut dyn TransactionConnection,
) -> Result<(), Error> {
    let EndingIn { ending, failed } = ending;
    let (attempt, records, ending) = match (running.0, ending) {
        (Right::Protected { attempt, records }, Some(ending)) => (attempt, records, ending),
        (Right::Unprotected(unprotected), _) => {
            unprotected.ended();
            return Ok(());
        }
        (Right::Protected { attempt, .. }, None) => {
            return Err(refused(error(&attempt.call, Trouble::Ended), Some(attempt.call.started)));
        }
    };
    let ended = match connection.link(&records) {
        Some(mut link) => end(&attempt, ending, failed, &mut *link).await,
        None => Err(Trouble::Ended),
    };
    match ended {
        Ok(outcome) => {
            set(attempt.call.slot.as_deref(), outcome);
            events::ended(&attempt.call, attempt.number, outcome);
            Ok(())
        }
        // The body said itself that nothing happened, and nothing will have: its transaction is of no use any more.
        Err(trouble) if failed && !matches!(trouble, Trouble::Ended) => {
            note(&trouble);
            Ok(())
        }
        Err(trouble) => Err(refused(error(&attempt.call, trouble), Some(attempt.call.started))),
    }
}

fn answer<R: Fallible<Err: From<Error>>>(recorded: Result<(), Error>, answer: R) -> R {
    match recorded {
        Ok(()) => answer,
        Err(error) => R::from_result(Err(error.into())),
    }
}

async fn beginning(
    prepared: Prepared,
    started: Instant,
    connection: &mut dyn TransactionConnection,
) -> Result<Entrance, Error> {
    let call = match prepared.ready(started)? {
        Ready::Protected(call) => call,
        Ready::Unprotected(unprotected) => {
            return Ok(Entrance::Run(RunningIn(Right::Unprotected(unprotected))));
        }
    };
    let not_configured = |reason| Error::NotConfigured { operation: call.key.operation().clone(), reason };
    let Some(records) = call.core.store.as_deref().and_then(Store::transactional) else {
        return Err(not_configured(NO_RECORDS));
    };
    let Some(mut link) = connection.link(&records) else { return Err(not_configured(OTHER_DATABASE)) };
    if call.is_inside_itself() {
        return Err(Error::Reentrant { operation: call.key.operation().clone() });
    }
    let found = enter(&call, &mut *link).await?;
    drop(link);
    Ok(match found {
        Found::Result(stored) => Entrance::Replay(stored),
        Found::Right(attempt) => {
            Entrance::Run(RunningIn(Right::Protected { attempt: Arc::new(attempt), records }))
        }
    })
}

/// What a call finds under its key.
enum Found {
    Result(Replay),
    Right(Owned),
}

/// Reserves, or judges what stands in the way, for as long as the call may wait.
async fn enter(call: &Arc<Call>, link: &mut dyn Link) -> Result<Found, Error> {
    let wait = call.wait.unwrap_or(WAIT);
    let deadline = after(wait);
    let mut made = false;
    loop {
        let asked_at = Instant::now();
        let entry = Entry { wait: deadline.saturating_duration_since(asked_at), ..entry(call) };
        let (record, sees_changes) = match link.enter(&entry).await {
            Ok(Entered::Granted(grant)) => {
                if grant.attempt > 1 {
                    events::taken_over(call, grant.attempt);
                }
                return Ok(Found::Right(Owned::new(Arc::clone(call), grant, asked_at)));
            }
            Ok(Entered::Held { record, sees_changes }) => (record, sees_changes),
            Err(Trouble::NoTable(_)) if !made => {
                made = true;
                link.make_table().await.map_err(|source| call.store_error(source))?;
                continue;
            }
            Err(trouble) => return Err(error(call, trouble)),
        };
        match judge(call, record)? {
            Judged::Begun(Begun::Replay(stored)) => return Ok(Found::Result(stored)),
            // A judgement never gives the right to run.
            Judged::Begun(Begun::Run(_)) => {
                return Err(Error::OutcomeUnknown { operation: call.key.operation().clone() });
            }
            // A call with a lease is at work. It is followed on this connection, if that would see it end.
            Judged::InProgress(left) => {
                if !sees_changes || Instant::now() + PAUSE >= deadline {
                    let operation = call.key.operation().clone();
                    return Err(Error::InProgress { operation, retry_after: left });
                }
                tokio::time::sleep(PAUSE.mul_f64(rand::random_range(0.5..1.0))).await;
            }
        }
    }
}

fn entry(call: &Call) -> Entry<'_> {
    Entry {
        level: level(call),
        key: &call.key,
        owner: call.owner,
        fingerprint: call.fingerprint,
        unknown_ttl: call.lease.unknown_ttl,
        wait: call.wait.unwrap_or(WAIT),
        take_over: call.take_over,
        max_attempts: call.core.settings.max_attempts,
    }
}

/// How many calls in transactions there are around this one.
fn level(call: &Call) -> usize {
    let around = |call: &Call| call.caller.attempt.as_ref().and_then(Attempt::nearest).cloned();
    let mut level = 0;
    let mut outer = around(call);
    while let Some(attempt) = outer {
        level += usize::from(attempt.call.in_transaction);
        outer = around(&attempt.call);
    }
    level
}

/// Settles the record, or undoes the call. After an error nothing of the call is left to be committed.
async fn end(attempt: &Owned, ending: Ending, failed: bool, link: &mut dyn Link) -> Result<Outcome, Trouble> {
    let (call, number) = (&attempt.call, attempt.number);
    let entry = entry(call);
    let (settled, outcome) = match ending {
        Ending::Release => return link.undo(&entry, number).await.map(|()| Outcome::Executed),
        Ending::Settle(settled, outcome) => (settled, outcome),
    };
    let keep = match settled {
        Settled::Unknown => call.lease.unknown_ttl,
        _ => call.ttl,
    };
    match link.settle(&entry, number, &settled, keep, failed).await {
        Ok(()) => Ok(outcome),
        Err(trouble @ (Trouble::Ended | Trouble::RolledBack(_))) => Err(trouble),
        Err(trouble) => {
            // Where it is not possible, the database has given the transaction up already.
            let _ = link.undo(&entry, number).await;
            Err(trouble)
        }
    }
}

fn error(call: &Call, trouble: Trouble) -> Error {
    note(&trouble);
    let operation = call.key.operation().clone();
    match trouble {
        Trouble::NotOpen => Error::Transaction { operation, reason: NOT_OPEN },
        Trouble::Ended | Trouble::RolledBack(_) => Error::Transaction { operation, reason: ENDED },
        Trouble::Busy => Error::InProgress { operation, retry_after: RETRY_AFTER },
        Trouble::NoTable(source) | Trouble::Contended(source) | Trouble::Store(source) => {
            call.store_error(source)
        }
    }
}

/// Tells the transaction around, if it is one that may begin again, that it would be worth it.
fn note(trouble: &Trouble) {
    #[cfg(feature = "_sqlx")]
    if matches!(trouble, Trouble::Contended(_) | Trouble::RolledBack(_)) {
        super::whole::note_contention();
    }
    let _ = trouble;
}

fn set(slot: Option<&Slot>, outcome: Outcome) {
    if let Some(slot) = slot {
        slot.set(outcome);
    }
}
