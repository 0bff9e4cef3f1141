//! Keys: what makes two calls the same, as readable text that no two different keys share.

pub use crate::diagnostics::KeyPart;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::fingerprint::{Fingerprint, digest_of};

mod part;
mod text;

use part::{Found, Scalar};
use text::escaped;

/// Longer keys have their parts replaced by a digest. Every store takes keys of this many bytes.
const MAX_KEY: usize = 255;

/// Namespace and operation, so that two separators and a digest of 65 bytes fit into [`MAX_KEY`].
const MAX_NAMES: usize = 180;

/// Room enough for most keys.
const TYPICAL_KEY: usize = 128;

/// The stable name of an operation: what an annotated function is called in the store.
#[derive(Clone)]
pub struct OperationName(Name);

#[derive(Clone)]
enum Name {
    Static(&'static str),
    Shared(Arc<str>),
}

impl OperationName {
    /// A name that is part of the program; cloning it costs nothing.
    pub const fn from_static(name: &'static str) -> Self {
        Self(Name::Static(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Name::Static(name) => name,
            Name::Shared(name) => name,
        }
    }
}

impl Deref for OperationName {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for OperationName {
    fn from(name: &str) -> Self {
        Self(Name::Shared(name.into()))
    }
}

impl From<String> for OperationName {
    fn from(name: String) -> Self {
        Self(Name::Shared(name.into()))
    }
}

impl From<Arc<str>> for OperationName {
    fn from(name: Arc<str>) -> Self {
        Self(Name::Shared(name))
    }
}

impl PartialEq for OperationName {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for OperationName {}

impl fmt::Debug for OperationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for OperationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a record is kept, and the operation that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordKey {
    text: Arc<str>,
    operation: OperationName,
}

impl RecordKey {
    /// The key with this text. Stores use it to show what they hold; calls make theirs with [`KeyParts`].
    pub fn new(operation: impl Into<OperationName>, text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), operation: operation.into() }
    }

    /// The whole text: at most 255 bytes.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text, shared.
    pub fn shared(&self) -> &Arc<str> {
        &self.text
    }

    /// The operation, in clear.
    pub fn operation(&self) -> &OperationName {
        &self.operation
    }
}

/// The parts of a call's key, escaped one by one.
///
/// ```
/// use idempotent_runtime::key::{KeyParts, OperationName};
///
/// let mut parts = KeyParts::new();
/// parts.part("tenant.id", "acme/eu");
/// parts.part("order.id", &42);
/// let key = parts.into_key("shop", &OperationName::from_static("charge"), None)?;
/// assert_eq!(key.as_str(), "shop/charge/acme%2Feu/42");
/// # Ok::<(), idempotent_runtime::key::PartError>(())
/// ```
#[derive(Default)]
pub struct KeyParts {
    /// A `/` and the escaped text, for each part.
    text: String,
    count: usize,
    missing: Option<&'static str>,
    error: Option<PartError>,
}

/// A key part that could not be serialized.
#[derive(Clone, Debug)]
pub struct PartError {
    /// The selector.
    pub selector: &'static str,
    /// The serializer's reason.
    pub reason: String,
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key part `{}` could not be serialized: {}", self.selector, self.reason)
    }
}

impl std::error::Error for PartError {}

impl KeyParts {
    /// No parts yet.
    pub fn new() -> Self {
        Self { text: String::with_capacity(TYPICAL_KEY), ..Self::default() }
    }

    /// Adds the value that `selector` chose.
    ///
    /// Strings, characters, integers, booleans and variants without data are readable; everything else is the digest
    /// of its canonical form.
    pub fn part<T: Serialize + ?Sized>(&mut self, selector: &'static str, value: &T) {
        self.add(selector, value, false);
    }

    /// Adds a value that is the whole key: of a tuple each element as a part of its own, else as [`part`](Self::part).
    ///
    /// ```
    /// # use idempotent_runtime::key::{KeyParts, OperationName};
    /// let mut parts = KeyParts::new();
    /// parts.parts("key", &("a:b", "c"));
    /// let key = parts.into_key("shop", &OperationName::from_static("charge"), None)?;
    /// assert_eq!(key.as_str(), "shop/charge/a:b/c");
    /// # Ok::<(), idempotent_runtime::key::PartError>(())
    /// ```
    pub fn parts<T: Serialize + ?Sized>(&mut self, selector: &'static str, value: &T) {
        self.add(selector, value, true);
    }

    /// Adds the fingerprint of all arguments as the one part: `key = "*"`.
    pub fn whole(&mut self, fingerprint: &Fingerprint) {
        self.count += 1;
        self.text.push('/');
        text::digest(&mut self.text, fingerprint.digest());
    }

    fn add<T: Serialize + ?Sized>(&mut self, selector: &'static str, value: &T, spread: bool) {
        let start = self.text.len();
        self.text.push('/');
        let mut scalar = Scalar { parts: self, selector, spread, found: Found::Scalar };
        let written = value.serialize(&mut scalar);
        let found = scalar.found;
        let present = match (written, found) {
            (_, Found::Composite) => {
                self.text.truncate(start + 1);
                match digest_of(*b"idem-kp\x01", value) {
                    Ok((digest, present)) => {
                        text::digest(&mut self.text, &digest);
                        present
                    }
                    Err(error) => self.fail(selector, error.to_string()),
                }
            }
            (Err(error), _) => self.fail(selector, error.into_reason()),
            (Ok(()), Found::Parts) => return,
            (Ok(()), Found::Nothing) => false,
            (Ok(()), Found::Scalar) => true,
        };
        self.count += 1;
        if !present {
            self.missing.get_or_insert(selector);
        }
    }

    /// Keeps the first error. The part is not missing: it is wrong.
    fn fail(&mut self, selector: &'static str, reason: String) -> bool {
        self.error.get_or_insert(PartError { selector, reason });
        true
    }

    /// The selector of the first part that is null or empty, or `Some("key")` when there is no part at all.
    ///
    /// Missing are: null, a string with nothing but whitespace in it, and a sequence, map or struct with nothing but
    /// nulls in it, or nothing at all. `0`, `false` and `[0]` are there.
    pub fn missing(&self) -> Option<&'static str> {
        if self.count == 0 { Some("key") } else { self.missing }
    }

    /// The record's key under a checked `namespace` and `operation`; `template` is the literal text around the parts.
    ///
    /// The checks are [`names_fit`] and [`missing`](Self::missing).
    ///
    /// # Errors
    /// When a part could not be serialized.
    pub fn into_key(
        self,
        namespace: &str,
        operation: &OperationName,
        template: Option<&str>,
    ) -> Result<RecordKey, PartError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let (space, name) = (escaped(namespace), escaped(operation));
        let names = space.len() + "/".len() + name.len();
        let mut text = self.text;
        if let Some(literal) = template {
            text.insert_str(0, &escaped(literal));
            text.insert(0, '!');
        }
        if names + text.len() > MAX_KEY {
            // Escaped text is unambiguous, so its digest is.
            let digest = Sha256::new().chain_update(b"idem-kl\x01").chain_update(&text).finalize();
            text.clear();
            text.push('/');
            text::digest(&mut text, &digest.into());
        }
        // In front of the parts, in the memory that is there already.
        text.reserve(names);
        text.insert_str(0, &name);
        text.insert(0, '/');
        text.insert_str(0, &space);
        Ok(RecordKey::new(operation.clone(), text))
    }
}

/// Shows no part, since parts are values of arguments.
impl fmt::Debug for KeyParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyParts")
            .field("count", &self.count)
            .field("missing", &self.missing())
            .field("failed", &self.error.is_some())
            .finish_non_exhaustive()
    }
}

/// Whether `namespace` and `operation` leave room for a key: at most 180 bytes in all, once escaped.
pub fn names_fit(namespace: &str, operation: &str) -> bool {
    escaped(namespace).len() + escaped(operation).len() <= MAX_NAMES
}
