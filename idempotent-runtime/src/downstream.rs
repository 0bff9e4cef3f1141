//! Keys for calls to other APIs.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// The key that belongs to a record and a purpose.
pub(crate) fn key(record: &str, purpose: &str) -> String {
    let mut hash = Sha256::new();
    // The lengths keep the two apart.
    for part in ["idempotent downstream 1", record, purpose] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(digest.split_at(16).0);
    uuid(bytes, 8)
}

/// A key that nobody has.
pub(crate) fn random() -> String {
    uuid(rand::random(), 8)
}

/// A UUID of random bits.
#[cfg(feature = "client")]
pub(crate) fn uuid_v4() -> String {
    uuid(rand::random(), 4)
}

/// The form of a UUID (RFC 9562) of this version. In version 8 (section 5.8) all other bits are free, in version 4 random.
fn uuid(bytes: [u8; 16], version: u128) -> String {
    let bits = u128::from_be_bytes(bytes) & !(0xF << 76) & !(0b11 << 62) | (version << 76) | (0b10 << 62);
    let mut text = String::with_capacity(36);
    // Writing to a string cannot fail.
    let _ = write!(text, "{bits:032x}");
    for at in [8, 13, 18, 23] {
        text.insert(at, '-');
    }
    text
}
