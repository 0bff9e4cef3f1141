//! Statements that are prepared in SQL, so that others can go with them in one message.

use sha2::{Digest, Sha256};
use sqlx::SqlStr;

use super::ask::{Sending, Value, plain};
use super::fault::Fault;
use super::text::Statements;

/// The two statements of a call in a transaction of the caller's.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) fresh: PreparedStatement,
    pub(super) complete: PreparedStatement,
}

impl Prepared {
    pub(super) fn new(statements: &Statements, sending: Sending) -> Self {
        let prepared = |statement| PreparedStatement::new(statement, sending);
        Self { fresh: prepared(&statements.fresh), complete: prepared(&statements.complete) }
    }

    /// Makes both known to a connection. It asks for the first one first, so a connection that knows that one knows both.
    pub(super) fn prepare(&self) -> String {
        format!("{}; {}", self.complete.prepare(), self.fresh.prepare())
    }
}

#[derive(Debug)]
pub(super) struct PreparedStatement {
    text: SqlStr,
    /// The same for the same statement only. `None`: values are written into the text, for proxies that give each transaction
    /// another connection.
    name: Option<String>,
}

impl PreparedStatement {
    fn new(text: &SqlStr, sending: Sending) -> Self {
        let digest = Sha256::digest(text.as_str());
        let number = digest.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let name = (sending == Sending::Prepared).then(|| format!("idempotent_{number:016x}"));
        Self { text: text.clone(), name }
    }

    fn prepare(&self) -> String {
        self.name
            .as_ref()
            .map_or_else(String::new, |name| format!("PREPARE {name} AS {}", self.text.as_str()))
    }

    /// The statement with its values, as text.
    pub(super) fn with(&self, values: &[Value<'_>]) -> Result<String, Fault> {
        let Some(name) = &self.name else { return plain(self.text.as_str(), values) };
        let numbered: Vec<String> = (1..=values.len()).map(|number| format!("${number}")).collect();
        plain(&format!("EXECUTE {name}({})", numbered.join(", ")), values)
    }
}
