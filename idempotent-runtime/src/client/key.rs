//! The key of one request.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::error::ClientError;
use crate::downstream;

/// The key of one logical request: chosen before the first try, the same for every one of them.
///
/// Give it to a request with `with_extension`. Keep it with what it is for, if a retry may come from another process. It
/// should say nothing about a person, since servers log it. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestKey(Arc<str>);

impl RequestKey {
    /// A key of the application's own: 1 to 255 bytes of visible ASCII without quotes, commas, semicolons and backslashes.
    ///
    /// # Errors
    /// [`ClientError::InvalidKey`] for another text.
    pub fn new(key: impl Into<Arc<str>>) -> Result<Self, ClientError> {
        let key = key.into();
        let allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\');
        if (1..=255).contains(&key.len()) && key.bytes().all(allowed) {
            Ok(Self(key))
        } else {
            Err(ClientError::InvalidKey)
        }
    }

    /// A random UUID of version 4: 36 characters.
    pub fn random() -> Self {
        Self(downstream::uuid_v4().into())
    }

    /// A random UUID without hyphens, for servers that take 32 characters.
    pub fn random_short() -> Self {
        Self(downstream::uuid_v4().replace('-', "").into())
    }

    /// A key that follows from what the request is about, such as an order's id: the same after a restart. Never from the
    /// time or the number of the try.
    pub fn derived<'p>(parts: impl IntoIterator<Item = &'p str>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part);
        }
        let mut half = [0; 16];
        half.copy_from_slice(hash.finalize().split_at(16).0);
        Self(format!("{:032x}", u128::from_be_bytes(half)).into())
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestKey(..)")
    }
}
