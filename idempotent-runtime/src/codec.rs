//! What happens to results between the serializer and the store: encryption, compression.

use std::error::Error;
use std::fmt;

use crate::key::RecordKey;

/// Changes the bytes of results, stored errors and steps before a store sees them, and back.
///
/// Set it with [`IdempotencyBuilder::codec`](crate::IdempotencyBuilder::codec). The key is given so that an encryption
/// can bind a result to its record. Bytes that an older codec wrote must stay readable for as long as records live.
pub trait Codec: fmt::Debug + Send + Sync + 'static {
    /// The bytes to store.
    ///
    /// # Errors
    /// The body has run by then, so the record says "ran, result not kept", and the caller gets its value.
    fn encode(&self, key: &RecordKey, plain: Vec<u8>) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>>;

    /// The bytes that [`encode`](Self::encode) was given.
    ///
    /// # Errors
    /// The duplicate gets [`Unreadable`](crate::Error::Unreadable); the body does not run.
    fn decode(&self, key: &RecordKey, stored: &[u8]) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>>;
}
