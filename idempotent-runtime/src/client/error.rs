//! Why a request has no answer.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use http::StatusCode;

use super::key::RequestKey;

/// An error of the middleware itself. Inside a [`reqwest_middleware::Error`] it is found by [`ClientError::of`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The key cannot stand in its place. Nothing was sent.
    InvalidKey,
    /// Nobody knows whether the request was carried out. Send it again **with this key** later, or find out.
    OutcomeUnknown {
        /// The key that was sent.
        key: RequestKey,
        /// How often it was sent.
        tries: u32,
        /// The status of the last answer, if there was one.
        status: Option<StatusCode>,
        /// What went wrong with the last try, if there was no answer.
        cause: Option<Arc<reqwest_middleware::Error>>,
    },
    /// The key was used before for another request. It is never replaced by another one: find out which of the two was
    /// meant.
    KeyReused {
        /// The key that was sent.
        key: RequestKey,
        /// What the server says the key belongs to, if it does.
        resource: Option<String>,
    },
}

impl ClientError {
    /// The error of the middleware in `error`, if it is one.
    ///
    /// ```no_run
    /// # async fn pay(client: reqwest_middleware::ClientWithMiddleware) -> Result<(), Box<dyn std::error::Error>> {
    /// use idempotent_runtime::client::{ClientError, RequestKey};
    ///
    /// let mut later = Vec::new();
    /// let request = client.post("https://api.example.com/payments").with_extension(RequestKey::derived(["payment", "order-1"]));
    /// if let Err(error) = request.send().await {
    ///     match ClientError::of(&error) {
    ///         // It may have been carried out: it is sent again with this key later.
    ///         Some(ClientError::OutcomeUnknown { key, .. }) => later.push(key.clone()),
    ///         // The request is wrong.
    ///         Some(other) => return Err(other.clone().into()),
    ///         // Reqwest's own: no try of a request with a key can have been carried out.
    ///         None => return Err(error.into()),
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn of(error: &reqwest_middleware::Error) -> Option<&Self> {
        match error {
            reqwest_middleware::Error::Middleware(error) => error.downcast_ref(),
            reqwest_middleware::Error::Reqwest(_) => None,
        }
    }

    /// The key that was sent.
    pub fn key(&self) -> Option<&RequestKey> {
        match self {
            Self::InvalidKey => None,
            Self::OutcomeUnknown { key, .. } | Self::KeyReused { key, .. } => Some(key),
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidKey => f.write_str(
                "the idempotency key must be there once, as 1 to 255 bytes of visible ASCII without quotes, commas, \
                 semicolons and backslashes",
            ),
            Self::OutcomeUnknown { tries, status, .. } => {
                write!(f, "the outcome of the request is unknown after {tries} tries")?;
                status.map_or(Ok(()), |status| write!(f, ", the last of which was answered with {status}"))
            }
            Self::KeyReused { .. } => f.write_str("the idempotency key was used before for another request"),
        }
    }
}

impl Error for ClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::OutcomeUnknown { cause: Some(cause), .. } => Some(&**cause),
            _ => None,
        }
    }
}
