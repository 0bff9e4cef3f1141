//! Our attribute above and below those of other crates.

#![allow(clippy::unused_async, reason = "some attributes take the await out of sight")]
#![allow(missing_docs, clippy::missing_errors_doc, reason = "test programs")]

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use idempotent_runtime::idempotent;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub id: u32,
}

#[derive(Clone, Debug)]
pub struct Failure(pub String);

impl From<idempotent_runtime::Error> for Failure {
    fn from(error: idempotent_runtime::Error) -> Self {
        Self(error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, self.0).into_response()
    }
}

#[derive(Clone, Debug)]
pub struct Pool;

pub type Reply = Result<String, Failure>;

#[idempotent(key = "order.id", skip(_pool), name = "handler-below")]
#[axum::debug_handler(state = Pool)]
pub async fn handler_below(State(_pool): State<Pool>, Json(order): Json<Order>) -> Reply {
    Ok(order.id.to_string())
}

#[axum::debug_handler(state = Pool)]
#[idempotent(key = "order.id", skip(_pool), name = "handler-above")]
pub async fn handler_above(State(_pool): State<Pool>, Json(order): Json<Order>) -> Reply {
    Ok(order.id.to_string())
}

#[tracing::instrument]
#[idempotent(key = "id", name = "instrument-above")]
pub async fn instrument_above(id: u32) -> Reply {
    Ok(id.to_string())
}

#[idempotent(key = "id", name = "instrument-below")]
#[tracing::instrument]
pub async fn instrument_below(id: u32) -> Reply {
    Ok(id.to_string())
}

#[cached::proc_macro::cached(result = true)]
#[idempotent(key = "id", name = "cached-above")]
pub async fn cached_above(id: u32) -> Result<String, Failure> {
    Ok(id.to_string())
}

#[idempotent(key = "id", name = "anyhow")]
pub async fn any_error(id: u32) -> anyhow::Result<u64> {
    anyhow::ensure!(id > 0, "no such order");
    let amount: u64 = "250".parse()?;
    Ok(amount)
}

#[async_trait::async_trait]
pub trait Charges {
    async fn charge(&self, id: u32) -> Reply;
}

#[async_trait::async_trait]
impl Charges for Pool {
    #[tracing::instrument(skip(self))]
    #[idempotent(key = "id", name = "in-async-trait")]
    async fn charge(&self, id: u32) -> Reply {
        Ok(id.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use idempotent_runtime::stores::MemoryStore;
    use idempotent_runtime::{Error, Idempotency, idempotent};

    use super::{Charges as _, Pool};

    fn handle() -> Idempotency {
        Idempotency::new(MemoryStore::new())
    }

    static RUNS: AtomicU32 = AtomicU32::new(0);

    /// Below ours, `#[tokio::test]` would get a function that is a test of its own; above ours, it leaves none that is `async`.
    /// So a test calls what is annotated.
    #[tokio::test]
    async fn a_test_runs_once() {
        #[idempotent(key = String::from("once"), name = "in-a-test", store = handle())]
        async fn counted() -> Result<(), Error> {
            RUNS.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        counted().await.unwrap();
        assert_eq!(RUNS.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn calls_replay_under_every_attribute() {
        let within = handle();
        within
            .within(async {
                for _ in 0..2 {
                    assert_eq!(super::instrument_above(1).await.unwrap(), "1");
                    assert_eq!(super::instrument_below(1).await.unwrap(), "1");
                    assert_eq!(super::cached_above(1).await.unwrap(), "1");
                    assert_eq!(Pool.charge(1).await.unwrap(), "1");
                    assert_eq!(super::any_error(1).await.unwrap(), 250);
                    assert_eq!(super::any_error(0).await.unwrap_err().to_string(), "no such order");
                }
            })
            .await;
    }
}
