//! Type parameters are kept. <https://github>.com/jaemk/cached/issues/211

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "input")]
pub async fn echo<T: Serialize>(input: T) -> Result<(), Failure> {
    drop(input);
    Ok(())
}

#[idempotent(key = "id", skip(hidden))]
pub async fn generic_result<T, U>(id: u32, input: T, hidden: U) -> Result<T, Failure>
where
    T: Serialize + serde::de::DeserializeOwned,
{
    drop(hidden);
    let _ = id;
    Ok(input)
}

#[idempotent(key = "id", on_error = "replay", skip(E))]
pub async fn generic_error<E>(id: u32) -> Result<u32, E>
where
    E: From<idempotent_runtime::Error> + Serialize + serde::de::DeserializeOwned,
{
    Ok(id)
}

pub trait Kind {
    const NAME: &'static str;
}

#[idempotent(key = (K::NAME, id))]
pub async fn kind_in_key<K: Kind>(id: u32) -> Result<u32, Failure> {
    Ok(id)
}

#[idempotent(key = "id", fingerprint = (K::NAME, id))]
pub async fn kind_in_fingerprint<K: Kind>(id: u32) -> Result<u32, Failure> {
    Ok(id)
}

#[idempotent(key = (id, N))]
pub async fn number_in_key<const N: usize>(id: u32) -> Result<usize, Failure> {
    let _ = id;
    Ok(N)
}

#[idempotent(key = "id", fingerprint = "id", skip(T, N))]
pub async fn left_out<T: Default, const N: usize>(id: u32) -> Result<u32, Failure> {
    let _ = T::default();
    Ok(id)
}

/// `A` and `B` follow from the closures, and `C` from the iterator.
#[idempotent(key = "id", skip(first, second, all))]
pub async fn determined<A, B, C, F, G, I>(id: u32, first: F, second: G, all: I) -> Result<u32, Failure>
where
    F: Fn(A) -> B,
    G: Fn() -> A,
    I: IntoIterator<Item = C>,
    C: Into<u32>,
{
    let _ = first(second());
    Ok(all.into_iter().map(Into::into).sum::<u32>() + id)
}

pub struct Service<T>(pub T);

impl<T> Service<T> {
    /// A method of every `Service`.
    #[idempotent(name = "generics-of-impl", key = "id", skip(Self))]
    pub async fn shared(&self, id: u32) -> Result<u32, Failure> {
        Ok(id)
    }
}

pub trait Provided: Kind {
    #[allow(async_fn_in_trait)]
    #[idempotent(name = "generics-of-trait", key = (Self::NAME, id))]
    async fn provided(&self, id: u32) -> Result<u32, Failure> {
        Ok(id)
    }
}
