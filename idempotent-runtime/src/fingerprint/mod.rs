//! Fingerprints: SHA-256 over a canonical form of the arguments.
//!
//! A call that comes a second time under its key must come with the arguments of the first. The fingerprint is how
//! that is seen without keeping them. Its canonical form is typed and length-prefixed, so different arguments never
//! look alike, and it depends on values alone: not on the width of an integer, the order of a map, hash seeds,
//! positions of enum variants, names of structs, or `serde_json`'s features.
//!
//! It outlives deploys, too. A new field or argument that is `None`, an `Option` around an existing type, and a
//! newtype around it all leave the fingerprint as it was. `docs/fingerprint.md` in the repository describes every
//! byte and lists what is equal and what is not.
//!
//! ```
//! use idempotent_runtime::fingerprint::Fingerprinter;
//! use serde::Serialize;
//!
//! #[derive(Serialize)]
//! struct Order {
//!     id: u32,
//!     coupon: Option<String>,
//!     requested_at: u64,
//! }
//!
//! #[derive(Serialize)]
//! struct OldOrder {
//!     id: u64,
//! }
//!
//! let mut new = Fingerprinter::new();
//! new.argument_without("order", &Order { id: 7, coupon: None, requested_at: 1_700_000_000 }, &[&["requested_at"]]);
//! let mut old = Fingerprinter::new();
//! old.argument("order", &OldOrder { id: 7 });
//! assert_eq!(new.finish()?, old.finish()?);
//! # Ok::<(), idempotent_runtime::fingerprint::ArgumentError>(())
//! ```

mod compound;
mod display;
mod encoder;
mod number;
mod sink;
mod skip;
mod tag;

pub use crate::diagnostics::Argument;
use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::Sha256;

use encoder::Encoder;
use sink::Sink;

pub(crate) use number::{JSON_NUMBER, JsonNumber, Number};

pub use skip::Skip;

/// The digest of a call's arguments, with the version of the canonical form that made it.
///
/// It displays as the digest in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    version: u8,
    digest: [u8; 32],
}

/// An argument that could not be serialized.
#[derive(Clone, Debug)]
pub struct ArgumentError {
    /// Its name.
    pub argument: String,
    /// The serializer's reason.
    pub reason: String,
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "argument `{}` could not be serialized: {}", self.argument, self.reason)
    }
}

impl std::error::Error for ArgumentError {}

impl Fingerprint {
    /// The version of the canonical form that this crate writes.
    pub const VERSION: u8 = 1;

    /// The fingerprint with these parts, as a store kept it.
    pub const fn from_parts(version: u8, digest: [u8; 32]) -> Self {
        Self { version, digest }
    }

    /// The version of the canonical form.
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// The digest.
    pub const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// This digest under a secret: HMAC-SHA-256, so that whoever reads the store cannot try out likely arguments.
    ///
    /// ```
    /// # use idempotent_runtime::fingerprint::Fingerprinter;
    /// let mut arguments = Fingerprinter::new();
    /// arguments.argument("pin", "0000");
    /// let plain = arguments.finish()?;
    /// assert_ne!(plain.keyed(b"secret"), plain);
    /// assert_ne!(plain.keyed(b"secret"), plain.keyed(b"another"));
    /// # Ok::<(), idempotent_runtime::fingerprint::ArgumentError>(())
    /// ```
    #[must_use]
    #[expect(
        clippy::expect_used,
        clippy::missing_panics_doc,
        reason = "RFC 2104 takes secrets of every length"
    )]
    pub fn keyed(&self, secret: &[u8]) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a secret of any length");
        mac.update(&[self.version]);
        mac.update(&self.digest);
        Self { version: self.version, digest: mac.finalize().into_bytes().into() }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.digest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Takes the arguments of one call, one after the other.
///
/// The arguments are hashed as if they were the fields of a struct: by name, in the given order, and one that is
/// `None` is left out.
pub struct Fingerprinter {
    sink: Sink,
    error: Option<ArgumentError>,
}

impl Fingerprinter {
    /// No arguments yet.
    pub fn new() -> Self {
        Self { sink: Sink::new(*b"idem-fp\x01"), error: None }
    }

    /// Adds an argument. An error is kept until [`finish`](Self::finish).
    pub fn argument<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        self.argument_without(name, value, &[]);
    }

    /// Adds an argument without the values at the paths in `skip`. A path that leads nowhere does nothing.
    pub fn argument_without<T: Serialize + ?Sized>(&mut self, name: &str, value: &T, skip: Skip) {
        if self.error.is_some() || skip.iter().any(|path| path.is_empty()) {
            return;
        }
        if let Err(error) = Encoder::write(&mut self.sink, Some(name), value, skip) {
            self.error = Some(ArgumentError { argument: name.to_owned(), reason: error.to_string() });
        }
    }

    /// The fingerprint.
    ///
    /// # Errors
    /// The first argument that could not be serialized.
    pub fn finish(mut self) -> Result<Fingerprint, ArgumentError> {
        self.finish_in_place()
    }

    /// As [`finish`](Self::finish), for a call that is in its box already.
    pub(crate) fn finish_in_place(&mut self) -> Result<Fingerprint, ArgumentError> {
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(Fingerprint { version: Fingerprint::VERSION, digest: self.sink.finish() }),
        }
    }
}

impl Default for Fingerprinter {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows no argument, neither a name nor a value.
impl fmt::Debug for Fingerprinter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fingerprinter").field("failed", &self.error.is_some()).finish_non_exhaustive()
    }
}

/// The digest of one value by itself, and whether there is more in it than nulls. `domain` keeps digests for different
/// uses apart.
pub(crate) fn digest_of<T: Serialize + ?Sized>(
    domain: [u8; 8],
    value: &T,
) -> Result<([u8; 32], bool), encoder::Error> {
    let mut sink = Sink::new(domain);
    let present = Encoder::write(&mut sink, None, value, &[])?;
    Ok((sink.finish(), present))
}
