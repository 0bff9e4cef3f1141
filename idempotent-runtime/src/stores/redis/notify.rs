//! Hearing that records have changed: one connection for all who wait in this process.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::Stream;
use redis::aio::{PubSub, PubSubSink, PubSubStream};
use redis::{Client, Msg, RedisResult};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::reconnecting::{Boxed, Source, Timeouts};
use crate::store::Watch;

/// After so long a silence the connection is tried.
const SILENCE: Duration = Duration::from_secs(10);
/// After a failure nobody tries to listen for so long: whoever waits polls.
const PAUSE: Duration = Duration::from_secs(5);

/// Those who wait, by the key of the record in Redis.
type Waiters = Arc<Mutex<HashMap<Vec<u8>, Vec<oneshot::Sender<()>>>>>;

/// Where a connection that only listens is made to.
pub(super) enum Ear {
    Primary(Arc<Source>),
    /// Any node: in a cluster every message goes to all of them.
    Nodes(Vec<Client>),
}

/// The listener of a store. It ends with the store.
pub(super) struct Notifier {
    ear: Ear,
    channel: String,
    timeouts: Timeouts,
    waiters: Waiters,
    listening: tokio::sync::Mutex<Listening>,
}

#[derive(Default)]
struct Listening {
    task: Option<AbortHandle>,
    failed: Option<Instant>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Notifier {
    pub(super) fn new(ear: Ear, channel: String, timeouts: Timeouts) -> Self {
        Self { ear, channel, timeouts, waiters: Waiters::default(), listening: tokio::sync::Mutex::default() }
    }

    /// A future that ends when the record under `key` has changed, or when it may have without a word. `None`: there is
    /// no connection to listen on just now.
    pub(super) async fn watch(&self, key: Vec<u8>) -> Option<Watch> {
        let (send, woken) = oneshot::channel();
        self.listen().await?;
        {
            let mut waiters = lock(&self.waiters);
            let of_key = waiters.entry(key).or_default();
            of_key.retain(|waiter| !waiter.is_closed());
            of_key.push(send);
        }
        Some(Box::pin(async move {
            // An error says that the connection has broken: time to look.
            let _ = woken.await;
        }))
    }

    /// Makes sure that a connection listens. If the caller goes away, the next one begins anew.
    async fn listen(&self) -> Option<()> {
        let mut listening = self.listening.lock().await;
        if listening.task.as_ref().is_some_and(|task| !task.is_finished()) {
            return Some(());
        }
        if listening.failed.is_some_and(|failed| failed.elapsed() < PAUSE) {
            return None;
        }
        let connecting: Boxed<'_, PubSub> = Box::pin(self.connect());
        let connected = timeout(self.timeouts.connect * 2, connecting).await;
        let Ok(Ok(connection)) = connected else {
            listening.failed = Some(Instant::now());
            return None;
        };
        let (sink, stream) = connection.split();
        let task = tokio::spawn(hear(sink, stream, Arc::clone(&self.waiters), self.timeouts.response));
        listening.task = Some(task.abort_handle());
        Some(())
    }

    async fn connect(&self) -> RedisResult<PubSub> {
        let mut connection = match &self.ear {
            Ear::Primary(source) => source.client().await?.get_async_pubsub().await?,
            Ear::Nodes(nodes) => {
                let mut last = Err(std::io::Error::from(std::io::ErrorKind::NotConnected).into());
                for node in nodes {
                    last = node.get_async_pubsub().await;
                    if last.is_ok() {
                        break;
                    }
                }
                last?
            }
        };
        connection.subscribe(&self.channel).await?;
        Ok(connection)
    }
}

/// Wakes those who wait, until the connection breaks; then all of them.
async fn hear(mut sink: PubSubSink, stream: PubSubStream, waiters: Waiters, patience: Duration) {
    let _all = WakeAll(Arc::clone(&waiters));
    let mut stream = pin!(stream);
    loop {
        let message = poll_fn(|context| stream.as_mut().poll_next(context));
        match timeout(SILENCE, message).await {
            Ok(Some(message)) => wake(&waiters, &message),
            Ok(None) => return,
            Err(_) => {
                lock(&waiters).retain(|_, of_key| {
                    of_key.retain(|waiter| !waiter.is_closed());
                    !of_key.is_empty()
                });
                if !matches!(timeout(patience, sink.ping::<redis::Value>()).await, Ok(Ok(_))) {
                    return;
                }
            }
        }
    }
}

fn wake(waiters: &Waiters, message: &Msg) {
    let of_key = lock(waiters).remove(message.get_payload_bytes());
    for waiter in of_key.into_iter().flatten() {
        // An error says that the waiter has gone.
        let _ = waiter.send(());
    }
}

fn lock(waiters: &Waiters) -> MutexGuard<'_, HashMap<Vec<u8>, Vec<oneshot::Sender<()>>>> {
    waiters.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes everybody when it is dropped, also with its runtime.
struct WakeAll(Waiters);

impl Drop for WakeAll {
    fn drop(&mut self) {
        lock(&self.0).clear();
    }
}
