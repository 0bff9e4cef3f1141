//! What handlers of axum get from the layer.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::response::{IntoResponse, Response};
use http::request::Parts;

use super::key::IdempotencyKey;
use super::problem::{Problem, TYPES};
use super::responses::Verdict;
use crate::attempt::Attempt;
use crate::error::Error;

/// The key of the request. Where there may be none, `Option<IdempotencyKey>`.
///
/// ```
/// use axum::{Router, extract::State, routing::post};
/// use idempotent_runtime::http::IdempotencyKey;
/// use idempotent_runtime::{Error, Idempotency, idempotent};
///
/// #[idempotent(key = "key", store = idempotency, skip(idempotency))]
/// async fn charge(idempotency: &Idempotency, key: IdempotencyKey, amount: String) -> Result<String, Error> {
///     Ok(amount)
/// }
///
/// async fn pay(
///     State(idempotency): State<Idempotency>,
///     key: IdempotencyKey,
///     amount: String,
/// ) -> Result<String, Error> {
///     charge(&idempotency, key, amount).await
/// }
/// # let _: Router<Idempotency> = Router::new().route("/payments", post(pay));
/// ```
impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Rejection> {
        parts.extensions.get().cloned().ok_or(Rejection(Problem::MISSING_KEY))
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for IdempotencyKey {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Self::Rejection> {
        Ok(parts.extensions.get().cloned())
    }
}

/// The attempt that the handler is: its number, its fencing token, keys for calls to other APIs. In a request that is not
/// protected it is an attempt that does nothing.
impl<S: Sync> FromRequestParts<S> for Attempt {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get().cloned().unwrap_or(Self::UNPROTECTED))
    }
}

/// A request without a key where the handler needs one: the problem `missing-key`.
#[derive(Clone, Copy, Debug)]
pub struct Rejection(Problem);

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        self.0.response(TYPES, None)
    }
}

/// The problem document that says the same. Behind the layer it gives the key of the request back: such an error says
/// nothing about the work of the handler, and may be another one a moment later.
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let mut response = Problem::from(&self).response(TYPES, None);
        response.extensions_mut().insert(Verdict::release());
        response
    }
}
