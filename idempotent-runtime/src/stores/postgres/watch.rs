//! Being told when a record changes: waiters by record, and one connection that listens for all of them.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::key::RecordKey;
use crate::store::{OwnerToken, Watch};

/// How long a waiter waits for the listener to be there before it polls instead.
const START: Duration = Duration::from_secs(2);
/// How long our own word on the channel may take to come back.
const ECHO: Duration = Duration::from_secs(5);
/// So often a silent connection is tried with such a word, since a broken one looks the same.
const SILENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Whether notifications arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hearing {
    NotYet,
    Yes,
    No,
}

/// The waiters of one store.
#[derive(Debug)]
pub(super) struct Watchers {
    channel: String,
    /// By what a notification says. The sender is never used: who listens is woken when it is gone.
    waiting: Mutex<HashMap<String, watch::Sender<()>>>,
    hearing: watch::Sender<Hearing>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

/// What a notification says about `key`: a digest, since everybody who may connect may listen.
fn topic(key: &RecordKey) -> String {
    let mut topic = String::with_capacity(64);
    for byte in Sha256::digest(key.as_str()) {
        // A `String` takes everything.
        let _ = write!(topic, "{byte:02x}");
    }
    topic
}

impl Watchers {
    pub(super) fn new(channel: String) -> Self {
        Self {
            channel,
            waiting: Mutex::default(),
            hearing: watch::Sender::new(Hearing::NotYet),
            listener: Mutex::default(),
        }
    }

    /// Wakes who waits for `key` in this process, without the way through the server.
    pub(super) fn wake(&self, key: &RecordKey) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.is_empty() {
            waiting.remove(&topic(key));
        }
    }

    fn wake_topic(&self, topic: &str) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(topic);
    }

    fn wake_all(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether notifications arrive; begins to listen if nobody does.
    pub(super) async fn hears(self: &Arc<Self>, pool: &PgPool) -> bool {
        let Ok(runtime) = Handle::try_current() else { return false };
        {
            let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
            // Finished also when its runtime has ended.
            if listener.as_ref().is_none_or(JoinHandle::is_finished) {
                self.hearing.send_replace(Hearing::NotYet);
                *listener =
                    Some(runtime.spawn(listen(Arc::downgrade(self), pool.clone(), self.channel.clone())));
            }
        }
        let mut hearing = self.hearing.subscribe();
        let heard = timeout(START, hearing.wait_for(|hearing| *hearing != Hearing::NotYet)).await;
        matches!(heard, Ok(Ok(hearing)) if *hearing == Hearing::Yes)
    }

    /// A future that ends when `key` is told of.
    pub(super) fn watch(self: &Arc<Self>, key: &RecordKey) -> Watch {
        let topic = topic(key);
        let receiver = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.entry(topic.clone()).or_insert_with(|| watch::Sender::new(())).subscribe()
        };
        let mut waiter = Waiter { watchers: Arc::clone(self), topic, receiver };
        Box::pin(async move {
            // An error: the sender is gone.
            let _ = waiter.receiver.changed().await;
        })
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.get_mut().unwrap_or_else(PoisonError::into_inner) {
            listener.abort();
        }
    }
}

struct Waiter {
    watchers: Arc<Watchers>,
    topic: String,
    receiver: watch::Receiver<()>,
}

impl Drop for Waiter {
    /// The last one takes the entry with it.
    fn drop(&mut self) {
        let mut waiting = self.watchers.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.get(&self.topic).is_some_and(|sender| sender.receiver_count() <= 1) {
            waiting.remove(&self.topic);
        }
    }
}

/// Listens for as long as the store is there; a connection that broke is made anew.
async fn listen(watchers: Weak<Watchers>, pool: PgPool, channel: String) {
    let mut pause = FIRST_PAUSE;
    loop {
        let ended = hear(&watchers, &pool, &channel).await;
        let Some(store) = watchers.upgrade() else { return };
        if store.hearing.send_replace(Hearing::No) == Hearing::Yes {
            pause = FIRST_PAUSE;
        }
        // Something may have been missed.
        store.wake_all();
        drop(store);
        tracing::warn!(
            target: "idempotent", channel, reason = %ended,
            "the PostgreSQL store hears no notifications; waiting calls poll meanwhile"
        );
        sleep(pause.mul_f64(rand::random_range(0.5..1.0))).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Listens until something goes wrong, and says what.
async fn hear(watchers: &Weak<Watchers>, pool: &PgPool, channel: &str) -> String {
    // A pool of its own, so that the application's has as many connections as it was given.
    let options =
        PgPoolOptions::new().max_connections(1).acquire_timeout(ECHO).idle_timeout(None).max_lifetime(None);
    let own = options.connect_lazy_with((*pool.connect_options()).clone());
    let heard = async {
        let mut listener = PgListener::connect_with(&own).await?;
        listener.listen(channel).await?;
        // Only our own word, come back, shows that words come: a proxy takes LISTEN and forgets it.
        let mut echo = Some(speak(pool, channel).await?);
        loop {
            let limit = if echo.is_some() { ECHO } else { SILENCE };
            match timeout(limit, listener.try_recv()).await {
                Err(_) if echo.is_some() => return Ok("no notification arrives".to_owned()),
                Err(_) => echo = Some(speak(pool, channel).await?),
                Ok(notification) => {
                    let Some(store) = watchers.upgrade() else { return Ok("the store is gone".to_owned()) };
                    match notification? {
                        None => store.wake_all(),
                        Some(said) if echo.as_deref() == Some(said.payload()) => {
                            echo = None;
                            store.hearing.send_replace(Hearing::Yes);
                        }
                        Some(said) => store.wake_topic(said.payload()),
                    }
                }
            }
        }
    };
    heard.await.unwrap_or_else(|error: sqlx::Error| error.to_string())
}

/// Says something on the channel that nobody else says.
async fn speak(pool: &PgPool, channel: &str) -> Result<String, sqlx::Error> {
    let word = format!("echo {}", OwnerToken::random());
    let text = format!("SELECT pg_notify('{channel}', '{word}')");
    sqlx::Executor::execute(pool, sqlx::raw_sql(sqlx::AssertSqlSafe(text))).await?;
    Ok(word)
}
