//! A `reqwest` client that retries safely.
//!
//! [`IdempotencyMiddleware`] gives each request one key, before it is first sent, and sends the same bytes under the same key
//! until there is an answer. It never makes a second key for a request: a timeout means that nobody knows what happened, and
//! another key would make it happen twice.
//!
//! ```no_run
//! # async fn pay() -> Result<(), Box<dyn std::error::Error>> {
//! use idempotent_runtime::client::{Exchange, IdempotencyMiddleware, RequestKey};
//!
//! let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new())
//!     .with(IdempotencyMiddleware::new())
//!     .build();
//! let response = client
//!     .post("https://api.example.com/payments")
//!     .body("{\"amount\":250}")
//!     .with_extension(RequestKey::new("order-1-payment")?) // without it: a random one
//!     .send()
//!     .await?;
//! let exchange = response.extensions().get::<Exchange>();
//! # let _ = exchange;
//! # Ok(()) }
//! ```
//!
//! It belongs outside every other layer that sends again, so that all of them share the key, and it should be the only one that
//! retries. Redirects are followed inside `reqwest`; give the client [`redirects`], so that a key never goes to another
//! origin.
//!
//! The rules are in the [guide](https://github.com/idempotent-rs/idempotent/blob/main/docs/client.md).

mod answer;
mod attempts;
mod budget;
mod error;
mod key;
mod middleware;
mod policy;
mod redirect;
mod vendor;

pub use error::ClientError;
pub use key::RequestKey;
pub use middleware::{BodyFactory, Exchange, IdempotencyMiddleware, TryNumber};
pub use policy::{PolicyError, RetryPolicy};
pub use redirect::redirects;
pub use vendor::{KeyForm, Place, Vendor};
