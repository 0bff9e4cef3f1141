//! What a returned `Err` does to its key, as types: only a policy that may store an error asks that it can be stored.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::policy::{OnError, Unstored};

/// What a returned `Err` does, and how it is stored if it is.
#[diagnostic::on_unimplemented(
    message = "`{E}` cannot be stored for replay",
    label = "this error type is not `Serialize` and `DeserializeOwned`",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it, with `#[serde(skip)]` on the variant that holds \
            `idempotent_runtime::Error`, or choose another `on_error`"
)]
pub trait ErrorPolicy<E> {
    /// What this error does to the key.
    fn decide(&self, error: &E) -> OnError;

    /// The error as it is stored. Called only after [`decide`](Self::decide) has said [`OnError::Replay`].
    ///
    /// # Errors
    /// The serializer's.
    fn encode(&self, error: &E) -> Result<Vec<u8>, serde_json::Error>;

    /// A stored error again; `None` when this policy never stores one.
    fn decode(&self, bytes: &[u8]) -> Option<Result<E, serde_json::Error>>;
}

/// `on_error = "retry"`: the key is released. See [`OnError::Retry`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Retry;

/// `on_error = "refuse"`: the key stays used. See [`OnError::Refuse`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Refuse;

/// `on_error = "replay"`: the error is the result. See [`OnError::Replay`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Replay;

/// `on_error = path`: a function of the error decides.
#[derive(Clone, Copy, Debug)]
pub struct Decide<F, D> {
    function: F,
    answer: PhantomData<fn() -> D>,
}

/// What a function given as `on_error` may return: [`OnError`] where the error can be stored, [`Unstored`] elsewhere.
#[diagnostic::on_unimplemented(
    message = "a function given as `on_error` cannot decide about `{E}` by returning `{Self}`",
    label = "return `OnError` where `{E}` is `Serialize` and `DeserializeOwned`, and `Unstored` where it is not",
    note = "to return `OnError`, derive `serde::Serialize` and `serde::Deserialize` for `{E}`, with `#[serde(skip)]` on the \
            variant that holds `idempotent_runtime::Error`"
)]
pub trait Decision<E>: sealed::Sealed {
    #[doc(hidden)]
    fn verdict(self) -> OnError;
    #[doc(hidden)]
    fn encode(error: &E) -> Result<Vec<u8>, serde_json::Error>;
    #[doc(hidden)]
    fn decode(bytes: &[u8]) -> Option<Result<E, serde_json::Error>>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::OnError {}
    impl Sealed for super::Unstored {}
}

/// The policy of a function of the error.
pub fn decide<E, F: Fn(&E) -> D, D: Decision<E>>(function: F) -> Decide<F, D> {
    Decide { function, answer: PhantomData }
}

#[diagnostic::do_not_recommend]
impl<E: Serialize + DeserializeOwned> Decision<E> for OnError {
    fn verdict(self) -> OnError {
        self
    }
    fn encode(error: &E) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(error)
    }
    fn decode(bytes: &[u8]) -> Option<Result<E, serde_json::Error>> {
        Some(serde_json::from_slice(bytes))
    }
}

impl<E> Decision<E> for Unstored {
    fn verdict(self) -> OnError {
        match self {
            Self::Retry => OnError::Retry,
            Self::Refuse => OnError::Refuse,
        }
    }
    fn encode(_: &E) -> Result<Vec<u8>, serde_json::Error> {
        Err(not_stored())
    }
    fn decode(_: &[u8]) -> Option<Result<E, serde_json::Error>> {
        None
    }
}

impl<E, F: Fn(&E) -> D, D: Decision<E>> ErrorPolicy<E> for Decide<F, D> {
    fn decide(&self, error: &E) -> OnError {
        (self.function)(error).verdict()
    }
    fn encode(&self, error: &E) -> Result<Vec<u8>, serde_json::Error> {
        D::encode(error)
    }
    fn decode(&self, bytes: &[u8]) -> Option<Result<E, serde_json::Error>> {
        D::decode(bytes)
    }
}

#[diagnostic::do_not_recommend]
impl<E: Serialize + DeserializeOwned> ErrorPolicy<E> for Replay {
    fn decide(&self, _: &E) -> OnError {
        OnError::Replay
    }
    fn encode(&self, error: &E) -> Result<Vec<u8>, serde_json::Error> {
        <OnError as Decision<E>>::encode(error)
    }
    fn decode(&self, bytes: &[u8]) -> Option<Result<E, serde_json::Error>> {
        <OnError as Decision<E>>::decode(bytes)
    }
}

/// The two policies that never store an error differ in what they decide only.
macro_rules! never_stores {
    ($policy:ident) => {
        impl<E> ErrorPolicy<E> for $policy {
            fn decide(&self, _: &E) -> OnError {
                OnError::$policy
            }
            fn encode(&self, _: &E) -> Result<Vec<u8>, serde_json::Error> {
                Err(not_stored())
            }
            fn decode(&self, _: &[u8]) -> Option<Result<E, serde_json::Error>> {
                None
            }
        }
    };
}

never_stores!(Retry);
never_stores!(Refuse);

fn not_stored() -> serde_json::Error {
    serde::ser::Error::custom("this policy stores no error")
}
