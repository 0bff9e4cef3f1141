//! The life of one call: reserve → run → record. Read this first.
//!
//! ```text
//! begin ── reserve ──┬─ granted ─────────────────────────────► Begun::Run(Reservation)
//!    ▲               └─ held ── judge ──┬─ stored result ────► Begun::Replay
//!    │                                  ├─ refused ──────────► Err(KeyReused, OutcomeUnknown, NotRetained, …)
//!    └──────── changed ◄── wait ◄───────┴─ still running ────► Err(InProgress) when there is no time to wait
//! ```
//!
//! What a caller that goes away leaves behind is decided in one place each: while the reservation is being asked for in
//! [`Handoff`], between the reservation and the end of the body in [`Reservation`]'s `Drop`, and while the result is being
//! recorded in [`Handoff`] again.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::asking::{after, ask};
use crate::attempt::{Attempt, Owned};
use crate::background::{BoxFuture, Handoff};
use crate::context::{Context, Slot};
use crate::error::Error;
use crate::events;
use crate::fingerprint::Fingerprint;
use crate::idempotency::{Core, Idempotency};
use crate::immediate::at_once;
use crate::key::RecordKey;
use crate::meters::Wait;
use crate::policy::{OnCrash, OnLost};
use crate::replay::Replay;
use crate::reservation::{Reservation, give_back};
use crate::store::{
    Lease, OwnerToken, Record, Release, Reserve, Reserved, Settled, State, Store, StoreError, TakeOver,
};
use crate::waiting::{self, News};

/// One call of an operation: everything that is known before its body runs.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) core: Arc<Core>,
    /// When its arguments were looked at.
    pub(crate) started: Instant,
    pub(crate) key: RecordKey,
    pub(crate) fingerprint: Fingerprint,
    /// The token of this call's attempt. One call makes at most one attempt.
    pub(crate) owner: OwnerToken,
    pub(crate) lease: Lease,
    pub(crate) ttl: Duration,
    /// Another time for this one result, where the body has said so.
    pub(crate) own_ttl: OnceLock<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) on_crash: OnCrash,
    pub(crate) on_lost: OnLost,
    pub(crate) take_over: TakeOver,
    pub(crate) version: u32,
    /// Whether it is made in a transaction of the caller's.
    pub(crate) in_transaction: bool,
    /// The task in which the call was made.
    pub(crate) caller: Context,
    /// Who asked how the call comes to its result.
    pub(crate) slot: Option<Arc<Slot>>,
}

/// What is left to do for a call that has begun.
#[derive(Debug)]
pub(crate) enum Begun {
    /// Give this result.
    Replay(Replay),
    /// Run the body.
    Run(Reservation),
}

/// Reserves the key, or finds what a duplicate gets. When this gives an error, the body has not run.
pub(crate) fn begin(call: Arc<Call>) -> Beginning {
    Beginning::AtOnce(Some(call))
}

/// The beginning of a call. With a store that answers at once it is over at once; what more there may be to do is put in a
/// box of its own, because few calls need it.
pub(crate) enum Beginning {
    AtOnce(Option<Arc<Call>>),
    Later(BoxFuture<Result<Begun, Error>>),
}

impl Future for Beginning {
    type Output = Result<Begun, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        if let Self::AtOnce(call) = &mut *self {
            // Without a call it was polled after its end, which no executor does.
            let Some(call) = call.take() else { return Poll::Pending };
            if call.is_inside_itself() {
                return Poll::Ready(Err(Error::Reentrant { operation: call.key.operation().clone() }));
            }
            let answer = if let Some(answer) = reserve_at_once(&call) {
                answer
            } else {
                let mut reserving = reserving(&call);
                let Poll::Ready(answer) = Pin::new(&mut reserving).poll(cx) else {
                    *self = Self::Later(Box::pin(begin_later(call, reserving)));
                    return Poll::Pending;
                };
                answer
            };
            match answer.and_then(|answer| answered(&call, answer)) {
                Ok(Judged::Begun(begun)) => return Poll::Ready(Ok(begun)),
                Ok(Judged::InProgress(lease_left)) => *self = Self::Later(Box::pin(wait(call, lease_left))),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        match &mut *self {
            Self::Later(beginning) => beginning.as_mut().poll(cx),
            Self::AtOnce(_) => Poll::Pending,
        }
    }
}

/// Begins after a store that takes its time.
async fn begin_later(call: Arc<Call>, reserving: Reserving) -> Result<Begun, Error> {
    match enter(&call, reserving).await? {
        Judged::Begun(begun) => Ok(begun),
        // Boxed, because few calls wait, and waiting needs much room.
        Judged::InProgress(lease_left) => Box::pin(wait(call, lease_left)).await,
    }
}

type Reserving = Handoff<Result<Answer, Error>>;

fn reserving(call: &Arc<Call>) -> Reserving {
    Handoff::new(call, Box::pin(reserve(Arc::clone(call))))
}

/// Waits for what a store that takes its time answers to a reservation.
async fn enter(call: &Arc<Call>, reserving: Reserving) -> Result<Judged, Error> {
    let mut answer = reserving.await?;
    if let Answer::Granted(reservation) = &mut answer {
        // Beside a store that takes its time a heartbeat costs nothing, and one that beats before the body begins also
        // beats for a body that blocks its thread. It needs a turn to begin with: what a thread has spawned last, no other
        // thread takes from it.
        reservation.renew();
        tokio::task::yield_now().await;
    }
    answered(call, answer)
}

/// What the answer to a reservation means for a call.
fn answered(call: &Arc<Call>, answer: Answer) -> Result<Judged, Error> {
    match answer {
        Answer::Granted(reservation) => Ok(Judged::Begun(Begun::Run(reservation))),
        Answer::Held(record) => judge(call, record),
    }
}

/// Follows the running record that stands in the way, for as long as the call may wait.
async fn wait(call: Arc<Call>, mut lease_left: Duration) -> Result<Begun, Error> {
    let mut deadline = None;
    loop {
        let judged = match changed(&call, &mut deadline).await? {
            Some(News::Settled(record)) => judge(&call, *record)?,
            Some(News::Free) => enter(&call, reserving(&call)).await?,
            None => {
                let operation = call.key.operation().clone();
                return Err(Error::InProgress { operation, retry_after: lease_left });
            }
        };
        match judged {
            Judged::Begun(begun) => return Ok(begun),
            Judged::InProgress(left) => lease_left = left,
        }
    }
}

/// What the store said to a reservation.
enum Answer {
    Granted(Reservation),
    Held(Record),
}

/// Asks a store that answers without waiting. `None`: the store is none, or has to be asked again after a pause.
fn reserve_at_once(call: &Arc<Call>) -> Option<Result<Answer, Error>> {
    let asked_at = Instant::now();
    match at_once(&call.core, "reserve", |store| store.reserve(&call.request()))? {
        Err(error) if error.is_transient() => None,
        Err(error) => Some(Err(call.store_error(error))),
        Ok(reserved) => Some(Ok(reserved_at(asked_at, call, reserved))),
    }
}

/// Asks for the right to run. It owns all it needs: a caller that goes away meanwhile leaves it to end in the background,
/// where a reservation that nobody takes is given back.
async fn reserve(call: Arc<Call>) -> Result<Answer, Error> {
    let core = &*call.core;
    let request = call.request();
    // How often it was asked before the last time: one of those may have been granted, and its answer lost.
    let asked = AtomicU32::new(0);
    let reserve = |store| {
        asked.fetch_add(1, Ordering::Relaxed);
        Store::reserve(store, request)
    };
    let mut asked_at = Instant::now();
    let mut answer = ask(core, "reserve", core.settings.store_timeout, reserve).await;
    if matches!(answer, Ok(Reserved::Granted(_))) && asked_at.elapsed() >= call.lease.duration {
        // The answer came too late to rely on: somebody may have taken over meanwhile. Asked again with the same token,
        // the store gives a fresh lease, or tells.
        asked_at = Instant::now();
        answer = ask(core, "reserve", core.settings.store_timeout, reserve).await;
    }
    match answer {
        Ok(reserved) => Ok(reserved_at(asked_at, &call, reserved)),
        Err(error) => {
            if error.is_transient() || asked.load(Ordering::Relaxed) > 1 {
                // The store may have granted it all the same. Nothing has run, so it is given back.
                give_back(&call, Release::Unused);
            }
            Err(call.store_error(error))
        }
    }
}

/// What the store said to a call that asked it at that moment.
fn reserved_at(asked_at: Instant, call: &Arc<Call>, reserved: Reserved) -> Answer {
    match reserved {
        Reserved::Granted(grant) => {
            if grant.attempt > 1 {
                events::taken_over(call, grant.attempt);
            }
            Answer::Granted(Reservation::new(Owned::new(Arc::clone(call), grant, asked_at)))
        }
        Reserved::Held(record) => Answer::Held(record),
    }
}

/// What a call gets.
#[derive(Debug)]
pub(crate) enum Judged {
    Begun(Begun),
    /// Nothing yet: another attempt has the key, for so long at least.
    InProgress(Duration),
}

/// Decides what a call gets from a record that it does not own. The same for every store: a store says what it holds, and
/// here is what that means.
pub(crate) fn judge(call: &Arc<Call>, record: Record) -> Result<Judged, Error> {
    let operation = call.key.operation().clone();
    if record.fingerprint.version() != call.fingerprint.version() {
        let reason = "its arguments were fingerprinted by another version of this library".into();
        return Err(Error::Unreadable { operation, reason });
    }
    // Other arguments come before everything else: not even "in progress" is said of a key that is not the caller's.
    if record.fingerprint != call.fingerprint {
        return Err(Error::KeyReused { operation, state: record.state.name() });
    }
    match record.state {
        State::Running { lease_left, .. } if lease_left.is_zero() => Err(Error::OutcomeUnknown { operation }),
        State::Running { lease_left, .. } => Ok(Judged::InProgress(lease_left)),
        State::Settled(Settled::Completed(stored)) => {
            Ok(Judged::Begun(Begun::Replay(Replay::new(call, record.attempt, stored, false))))
        }
        State::Settled(Settled::Failed(stored)) => {
            Ok(Judged::Begun(Begun::Replay(Replay::new(call, record.attempt, stored, true))))
        }
        State::Settled(Settled::NotRetained) => Err(Error::NotRetained { operation }),
        State::Settled(Settled::Unknown) => Err(Error::OutcomeUnknown { operation }),
    }
}

/// Waits, if the call may, until the record is not running any more. `None`: there is no time left to wait.
async fn changed(call: &Arc<Call>, deadline: &mut Option<Instant>) -> Result<Option<News>, Error> {
    let (Some(wait), Ok(_)) = (call.wait, Handle::try_current()) else { return Ok(None) };
    let deadline = *deadline.get_or_insert_with(|| after(wait));
    let news = waiting::news(&call.core, &call.key);
    let waiting = Wait::begin(call.key.operation());
    let news = tokio::time::timeout_at(deadline, news).await;
    waiting.over(match &news {
        Ok(Ok(News::Settled(_))) => "settled",
        Ok(Ok(News::Free)) => "free",
        Ok(Err(_)) => "store-error",
        Err(_) => "too-long",
    });
    match news {
        Ok(Ok(news)) => Ok(Some(news)),
        Ok(Err(error)) => Err(Error::Store { operation: call.key.operation().clone(), source: error }),
        Err(_) => Ok(None),
    }
}

impl Call {
    /// Whether the call is made inside the body of a call with the same key, where waiting would never end.
    pub(crate) fn is_inside_itself(&self) -> bool {
        let mut outer = self.caller.attempt.as_ref().and_then(Attempt::nearest);
        while let Some(attempt) = outer {
            if attempt.call.core.shares_store_with(&self.core)
                && attempt.call.key.as_str() == self.key.as_str()
            {
                return true;
            }
            outer = attempt.call.caller.attempt.as_ref().and_then(Attempt::nearest);
        }
        false
    }

    /// The result of this call is kept for another time than those of others.
    #[cfg(feature = "http")]
    pub(crate) fn keep_for(&self, ttl: Duration) {
        let _ = self.own_ttl.set(ttl.max(crate::prepared::SHORTEST));
    }

    /// What the store is asked for.
    fn request(&self) -> Reserve<'_> {
        Reserve {
            key: &self.key,
            owner: self.owner,
            fingerprint: self.fingerprint,
            lease: self.lease,
            take_over: self.take_over,
            max_attempts: self.core.settings.max_attempts,
        }
    }

    /// The error for a store that did not do its part.
    pub(crate) fn store_error(&self, source: StoreError) -> Error {
        Error::Store { operation: self.key.operation().clone(), source: Arc::new(source) }
    }

    /// The handle of the calls inside the body: that of the task, if there is one.
    pub(crate) fn handle(&self) -> Option<Idempotency> {
        self.caller.handle.clone()
    }
}

/// Gives a reservation up by its token, as `how` says, for as long as the handle's patience lasts.
pub(crate) fn release(call: &Arc<Call>, how: Release) -> BoxFuture<Result<crate::store::Write, StoreError>> {
    let call = Arc::clone(call);
    Box::pin(async move {
        let core = &*call.core;
        ask(core, "release", core.settings.record_patience, |store| store.release(&call.key, call.owner, how))
            .await
    })
}
