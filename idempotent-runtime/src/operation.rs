//! One named operation and its policies, for those who want no macro.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::attempt::Attempt;
use crate::error::Error;
use crate::idempotency::Idempotency;
use crate::key::OperationName;
use crate::on_error::{Decide, Decision, ErrorPolicy, Refuse, Replay, Retry, decide};
use crate::policy::{OnCrash, OnLost, OnMissingKey};
use crate::prepared::{Policies, Prepared};
use crate::reconcile::{Finding, Reconciled, reconcile};
use crate::shim::{Begun, Fallible, begin, run};
use crate::transaction::{BegunIn, TransactionConnection, begin_in, record_in, run_in};

/// An operation: a stable name, and what happens when something goes wrong. Made by
/// [`Idempotency::operation`]; its methods are the options of the attribute.
///
/// ```
/// # use std::time::Duration;
/// # use idempotent_runtime::{Error, Idempotency, OnCrash, OnError, stores::MemoryStore};
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # enum ChargeError { Declined, Idempotency(String) }
/// # impl From<Error> for ChargeError { fn from(e: Error) -> Self { Self::Idempotency(e.to_string()) } }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let idempotency = Idempotency::new(MemoryStore::new());
/// let charge = idempotency
///     .operation("charge")
///     .ttl(Duration::from_secs(48 * 60 * 60))
///     .on_crash(OnCrash::Refuse)
///     .on_error(|error: &ChargeError| match error {
///         ChargeError::Declined => OnError::Replay,
///         ChargeError::Idempotency(_) => OnError::Retry,
///     });
///
/// let call = charge.key("order-1").fingerprint(&250);
/// let receipt: Result<u32, ChargeError> = call.run(|attempt| async move {
///     assert_eq!(attempt.number(), 1);
///     Ok(4711)
/// }).await;
/// # assert!(receipt.is_ok());
/// # });
/// ```
#[derive(Clone)]
#[must_use]
pub struct Operation<P = Retry> {
    handle: Idempotency,
    name: OperationName,
    policies: Policies,
    on_error: P,
}

/// One call of an [`Operation`]: its key and its fingerprint.
#[must_use = "a call does nothing until it is run"]
pub struct OperationCall<P = Retry> {
    prepared: Prepared,
    on_error: P,
}

impl Operation {
    pub(crate) fn new(handle: &Idempotency, name: OperationName) -> Self {
        Self { handle: handle.clone(), name, policies: Policies::DEFAULT, on_error: Retry }
    }
}

impl<P> Operation<P> {
    /// How long a finished record is kept, counted from completion. Default: the handle's.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.policies.ttl = Some(ttl);
        self
    }

    /// How long a silent attempt counts as alive. Default: the handle's.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.policies.lease = Some(lease);
        self
    }

    /// How long a duplicate waits for the first call's result. Default: the handle's.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.policies.wait = Some(wait);
        self
    }

    /// The version of the result type. A result that was stored with another one is [`Unreadable`](Error::Unreadable).
    /// Default: 1.
    pub fn version(mut self, version: u32) -> Self {
        self.policies.version = version;
        self
    }

    /// What happens after an attempt that gave no answer.
    pub fn on_crash(mut self, policy: OnCrash) -> Self {
        self.policies.on_crash = policy;
        self
    }

    /// What happens to a body whose lease is lost while it runs. Default: the handle's.
    pub fn on_lost(mut self, policy: OnLost) -> Self {
        self.policies.on_lost = Some(policy);
        self
    }

    /// What happens when a key part is null or empty.
    pub fn on_missing_key(mut self, policy: OnMissingKey) -> Self {
        self.policies.on_missing_key = policy;
        self
    }

    /// Decides for each `Err` what it does to its key.
    ///
    /// The function returns [`OnError`](crate::OnError) where the error type can be stored, and
    /// [`Unstored`](crate::Unstored) where it cannot.
    pub fn on_error<E, F: Fn(&E) -> D, D: Decision<E>>(self, function: F) -> Operation<Decide<F, D>> {
        self.with(decide(function))
    }

    /// Every `Err` is the result: it is stored and given to duplicates.
    pub fn replay_errors(self) -> Operation<Replay> {
        self.with(Replay)
    }

    /// After an `Err` nobody knows whether the work happened: the key stays used.
    pub fn refuse_after_errors(self) -> Operation<Refuse> {
        self.with(Refuse)
    }

    pub(crate) fn handle(&self) -> &Idempotency {
        &self.handle
    }

    /// The version of results, and the ttl where it is not the handle's.
    pub(crate) fn kept(&self) -> (u32, Option<Duration>) {
        (self.policies.version, self.policies.ttl)
    }

    fn with<Q>(self, on_error: Q) -> Operation<Q> {
        Operation { handle: self.handle, name: self.name, policies: self.policies, on_error }
    }
}

impl<P: Clone> Operation<P> {
    /// A call with this key. Give a key of several parts by calling [`OperationCall::and`] for each further one.
    pub fn key<K: Serialize + ?Sized>(&self, key: &K) -> OperationCall<P> {
        let mut prepared = Prepared::of(Some(self.handle.clone()), self.name.clone(), self.policies);
        prepared.key("key", key);
        OperationCall { prepared, on_error: self.on_error.clone() }
    }
}

impl<P> OperationCall<P> {
    /// Adds another part to the key.
    pub fn and<K: Serialize + ?Sized>(mut self, part: &K) -> Self {
        self.prepared.key("key", part);
        self
    }

    /// Adds an argument to the fingerprint: a duplicate with another one is refused as [`KeyReused`](Error::KeyReused).
    pub fn fingerprint<T: Serialize + ?Sized>(mut self, argument: &T) -> Self {
        self.prepared.argument("argument", argument, &[]);
        self
    }

    /// As [`fingerprint`](Self::fingerprint), under the argument's name: then the call is the same as that of an annotated
    /// function whose argument is called `name`.
    pub fn argument<T: Serialize + ?Sized>(mut self, name: &'static str, argument: &T) -> Self {
        self.prepared.argument(name, argument, &[]);
        self
    }

    pub(crate) fn into_prepared(self) -> Prepared {
        self.prepared
    }

    /// Runs `body` unless the call is a duplicate, and gives the result of the one run that counts.
    ///
    /// # Errors
    /// The body's own, or one made from an [`Error`] when the body did not run.
    pub async fn run<R, F, B>(self, body: B) -> R
    where
        R: Fallible<Ok: Serialize + DeserializeOwned, Err: From<Error>>,
        P: ErrorPolicy<R::Err>,
        F: Future<Output = R>,
        B: FnOnce(Attempt) -> F,
    {
        let begun = begin::<R, P>(self.prepared, &self.on_error).await;
        go_on(begun, self.on_error, body).await
    }
}

impl<P> OperationCall<P> {
    /// As [`run`](Self::run), but before a second attempt the application is asked what the first one did, in place of
    /// [`on_crash`](Operation::on_crash).
    ///
    /// `find` is called only when an attempt before this one gave no answer. It runs under the lease of the new attempt.
    ///
    /// ```
    /// # use idempotent_runtime::{Error, Idempotency, Reconciled, stores::MemoryStore};
    /// # struct Gateway;
    /// # impl Gateway {
    /// #     async fn find(&self, _: &str) -> Result<Option<u32>, Error> { Ok(None) }
    /// #     async fn charge(&self, _: &str) -> Result<u32, Error> { Ok(4711) }
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// # let (idempotency, gateway) = (Idempotency::new(MemoryStore::new()), Gateway);
    /// let call = idempotency.operation("charge").key("order-1");
    /// let receipt = call.reconcile_or_run(
    ///     || async { Ok(gateway.find("order-1").await?.map_or(Reconciled::NotDone, Reconciled::Done)) },
    ///     |_| gateway.charge("order-1"),
    /// );
    /// assert_eq!(receipt.await?, 4711);
    /// # Ok::<_, Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// Those of [`run`](Self::run), and those of `find`: then the attempt ends uncounted, and the next call asks again.
    pub async fn reconcile_or_run<R, A, G, F, B>(mut self, find: G, body: B) -> R
    where
        R: Fallible<Ok: Serialize + DeserializeOwned, Err: From<Error>>,
        P: ErrorPolicy<R::Err>,
        A: Future<Output = Result<Reconciled<R::Ok>, R::Err>>,
        G: FnOnce() -> A,
        F: Future<Output = R>,
        B: FnOnce(Attempt) -> F,
    {
        self.prepared.reconciles();
        let begun = match begin::<R, P>(self.prepared, &self.on_error).await {
            Begun::Run(granted) if granted.is_after_another() => {
                let asked = async { Finding::of(find().await) };
                reconcile(granted, &self.on_error, asked).await
            }
            begun => begun,
        };
        go_on(begun, self.on_error, body).await
    }
}

impl<P> OperationCall<P> {
    /// As [`run`](Self::run), but inside a transaction of the caller's: what `body` writes through the connection and the
    /// record of it are one commit, and neither is there if it never comes.
    ///
    /// The store has to keep its records in the same database. A duplicate waits for the transaction of the first call as
    /// long as [`wait`](Operation::wait) says (5 seconds, if nobody says anything), then replays. When `body` returns an
    /// `Err`, what it wrote is undone, and the transaction can be used further. See the
    /// [guide](https://github.com/idempotent-rs/idempotent/blob/main/docs/transactions.md).
    ///
    /// ```no_run
    /// # use idempotent_runtime::{Error, Idempotency};
    /// # #[cfg(feature = "postgres")]
    /// # async fn pay(idempotency: Idempotency, pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut transaction = pool.begin().await?;
    /// let call = idempotency.operation("charge").key("order-1");
    /// let receipt = call.run_in(&mut transaction, async |transaction, attempt| {
    ///     sqlx::query("UPDATE accounts SET balance = balance - 1").execute(&mut **transaction).await.unwrap();
    ///     Ok::<_, Error>(attempt.number())
    /// });
    /// receipt.await?;
    /// transaction.commit().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`run`](Self::run), and:
    /// * [`Error::NotConfigured`] when the store keeps no records in such a database, or the handle is disabled;
    /// * [`Error::Transaction`] when the connection is not inside a transaction, or `body` has ended it;
    /// * [`Error::Store`] also after the body, when the transaction cannot be completed: nothing of it may be committed then.
    ///   One that [is retryable](Error::is_retryable) is worth another transaction.
    pub async fn run_in<R, C, B>(self, connection: &mut C, body: B) -> R
    where
        R: Fallible<Ok: Serialize + DeserializeOwned, Err: From<Error>>,
        P: ErrorPolicy<R::Err>,
        C: TransactionConnection,
        B: AsyncFnOnce(&mut C, Attempt) -> R,
    {
        match begin_in::<R, P, C>(self.prepared, &self.on_error, connection).await {
            BegunIn::Answer(answer) => answer,
            BegunIn::Run(running, closing) => {
                let attempt = running.attempt();
                let answer = run_in(&running, body(&mut *connection, attempt)).await;
                let ending = closing.ending(&running, &self.on_error, &answer);
                let recorded = record_in(running, ending, connection).await;
                closing.answer(recorded, answer)
            }
        }
    }
}

/// Gives the answer that is there, or runs the body.
async fn go_on<R, P, F>(begun: Begun<R, P>, on_error: P, body: impl FnOnce(Attempt) -> F) -> R
where
    R: Fallible<Ok: Serialize + DeserializeOwned, Err: From<Error>>,
    P: ErrorPolicy<R::Err>,
    F: Future<Output = R>,
{
    match begun {
        Begun::Answer(answer) => answer,
        Begun::Run(mut granted) => {
            // What the closure does before it gives its future is a part of the body.
            granted.running.polling();
            let body = Box::pin(body(granted.running.attempt()));
            run(granted, on_error, body).await
        }
    }
}

impl<P: fmt::Debug> fmt::Debug for Operation<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("name", &self.name)
            .field("policies", &self.policies)
            .finish_non_exhaustive()
    }
}

impl<P> fmt::Debug for OperationCall<P> {
    /// Without key and arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationCall").finish_non_exhaustive()
    }
}
