//! Keys: what makes two calls the same, as readable text that no two different keys share.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;

use crate::fingerprint::Fingerprint;

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
#[derive(Debug, Default)]
pub struct KeyParts {}

/// A key part that could not be serialized.
#[derive(Clone, Debug)]
pub struct PartError {
    /// The selector.
    pub selector: &'static str,
    /// The serializer's reason.
    pub reason: String,
}

impl KeyParts {
    /// No parts yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the value that `selector` chose.
    pub fn part<T: Serialize + ?Sized>(&mut self, selector: &'static str, value: &T) {
        let _ = (selector, value);
        todo!()
    }

    /// Adds the fingerprint of all arguments as the one part: `key = "*"`.
    pub fn whole(&mut self, fingerprint: &Fingerprint) {
        let _ = fingerprint;
        todo!()
    }

    /// The selector of the first part that is null or empty, or `Some("key")` when there is no part at all.
    pub fn missing(&self) -> Option<&'static str> {
        todo!()
    }

    /// The record's key under a checked `namespace` and `operation`; `template` is the literal text around the parts.
    ///
    /// # Errors
    /// When a part could not be serialized.
    pub fn into_key(
        self,
        namespace: &str,
        operation: &OperationName,
        template: Option<&str>,
    ) -> Result<RecordKey, PartError> {
        let _ = (namespace, operation, template);
        todo!()
    }
}

/// Whether `namespace` and `operation` leave room for a key: at most 180 bytes in all, once escaped.
pub fn names_fit(namespace: &str, operation: &str) -> bool {
    let _ = (namespace, operation);
    todo!()
}
