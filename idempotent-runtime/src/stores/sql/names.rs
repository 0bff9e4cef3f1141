//! The names of the table and its columns, and statements written with them.

/// A column of the records table, by what is in it.
///
/// Every column can be given another name; the default is the variant's, in lower case and with underscores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SqlColumn {
    /// The key: the primary key of the table.
    Key,
    /// The operation, in clear.
    Operation,
    /// `running`, `completed`, `failed`, `not_retained` or `unknown`.
    State,
    /// The token of the attempt that may change the record: 16 bytes.
    Owner,
    /// How many attempts there have been in this generation.
    Attempt,
    /// The fencing token of the latest attempt.
    Fence,
    /// The version of the canonical form of the arguments.
    FingerprintVersion,
    /// The digest of the arguments: 32 bytes.
    Fingerprint,
    /// Whether the attempt has said that an effect may have happened.
    EffectsBegun,
    /// When the lease of a running record is over.
    LeaseUntil,
    /// When the first attempt of this generation was granted.
    CreatedAt,
    /// When the record expires.
    ExpiresAt,
    /// The version of the type of the result.
    ResultVersion,
    /// The result, as the codec made it.
    Result,
    /// The names of the steps, in the order in which they were first written.
    StepNames,
    /// The results of the steps, in the same order; null where a step has begun and is not done.
    StepResults,
    /// The steps, where the database has no arrays.
    Steps,
    /// Whether somebody waits for the record to change and is to be notified.
    Watched,
    /// The version of the record's own form.
    Version,
}

impl SqlColumn {
    const ALL: [(Self, &'static str); 19] = [
        (Self::Key, "key"),
        (Self::Operation, "operation"),
        (Self::State, "state"),
        (Self::Owner, "owner"),
        (Self::Attempt, "attempt"),
        (Self::Fence, "fence"),
        (Self::FingerprintVersion, "fingerprint_version"),
        (Self::Fingerprint, "fingerprint"),
        (Self::EffectsBegun, "effects_begun"),
        (Self::LeaseUntil, "lease_until"),
        (Self::CreatedAt, "created_at"),
        (Self::ExpiresAt, "expires_at"),
        (Self::ResultVersion, "result_version"),
        (Self::Result, "result"),
        (Self::StepNames, "step_names"),
        (Self::StepResults, "step_results"),
        (Self::Steps, "steps"),
        (Self::Watched, "watched"),
        (Self::Version, "version"),
    ];
}

/// What the table and its columns are called. Statements are templates: `{table}` and `{lease_until}` stand for the
/// quoted names, and `{by_operation}` for that of the index.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    table: String,
    columns: Vec<(SqlColumn, &'static str, String)>,
    quote: char,
}

impl Names {
    /// The default names, quoted by `quote`: `"` in standard SQL, a backtick in MySQL.
    pub(crate) fn new(quote: char) -> Self {
        let columns = SqlColumn::ALL.map(|(column, name)| (column, name, name.to_owned()));
        Self { table: "idempotency".into(), columns: columns.into(), quote }
    }

    pub(crate) fn set_table(&mut self, table: String) {
        self.table = table;
    }

    /// The name of the table, as it was given.
    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    /// The name of the table without that of its schema.
    pub(crate) fn bare_table(&self) -> &str {
        self.table.rsplit_once('.').map_or(&*self.table, |(_, table)| table)
    }

    pub(crate) fn set_column(&mut self, column: SqlColumn, name: String) {
        if let Some(entry) = self.columns.iter_mut().find(|entry| entry.0 == column) {
            entry.2 = name;
        }
    }

    /// The name of a column.
    #[cfg(feature = "postgres")]
    pub(crate) fn column(&self, column: SqlColumn) -> &str {
        self.columns.iter().find(|entry| entry.0 == column).map_or("", |entry| &entry.2)
    }

    /// Whether a column has a name that begins with `prefix`.
    #[cfg(feature = "mysql")]
    pub(crate) fn has_prefix(&self, prefix: &str) -> bool {
        self.columns.iter().any(|(_, _, name)| name.starts_with(prefix))
    }

    /// Whether the names can name tables and columns: identifiers that need no thought anywhere, at most `longest` bytes
    /// with the ending of the index. The error says which does not.
    pub(crate) fn check(&self, longest: usize) -> Result<(), String> {
        let mut parts = self.table.split('.');
        let named = parts.by_ref().take(2).all(|part| fits(part, longest - INDEX_ENDING.len()));
        if !named || parts.next().is_some() {
            return Err(format!(
                "the table name must be letters, digits and underscores, begin with no digit, and have at most {} of \
                 them; the name of a schema and a point may come before it",
                longest - INDEX_ENDING.len()
            ));
        }
        for (column, _, name) in &self.columns {
            if !fits(name, longest) {
                return Err(format!(
                    "the name of the column {column:?} must be 1 to {longest} letters, digits and underscores, and begin \
                     with no digit"
                ));
            }
            if self.columns.iter().filter(|(_, _, other)| other.eq_ignore_ascii_case(name)).count() > 1 {
                return Err(format!("the column {column:?} has the same name as another"));
            }
        }
        Ok(())
    }

    /// `name` in quotes; a part at a time where there is a schema's before it.
    pub(crate) fn quoted(&self, name: &str) -> String {
        let quote = self.quote;
        let parts: Vec<String> = name.split('.').map(|part| format!("{quote}{part}{quote}")).collect();
        parts.join(".")
    }

    /// The statement that `template` says. What no name belongs to stays as it is.
    pub(crate) fn render(&self, template: &str) -> String {
        let mut text = template.replace("{table}", &self.quoted(&self.table));
        text = text.replace("{by_operation}", &self.quoted(&format!("{}{INDEX_ENDING}", self.bare_table())));
        for (_, placeholder, name) in &self.columns {
            text = text.replace(&format!("{{{placeholder}}}"), &self.quoted(name));
        }
        text
    }
}

const INDEX_ENDING: &str = "_by_operation";

fn fits(name: &str, longest: usize) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.len() <= longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_take_the_names_that_were_given() {
        let mut names = Names::new('"');
        names.set_table("shop.Calls".into());
        names.set_column(SqlColumn::Owner, "who".into());
        names.check(63).unwrap();
        let text = names.render("SELECT {owner}, i.{key}, '{}' FROM {table} -- {by_operation}");
        assert_eq!(text, r#"SELECT "who", i."key", '{}' FROM "shop"."Calls" -- "Calls_by_operation""#);
        assert_eq!(names.bare_table(), "Calls");
    }

    #[test]
    fn names_that_need_thought_are_refused() {
        for table in ["", "1a", "a b", "a\"", "a.b.c", "a.", ".a", "ä", &"a".repeat(51)] {
            let mut names = Names::new('"');
            names.set_table(table.into());
            assert!(names.check(63).is_err(), "{table}");
        }
        let mut names = Names::new('"');
        names.set_column(SqlColumn::Key, "a`b".into());
        assert!(names.check(63).is_err());
        names.set_column(SqlColumn::Key, "Owner".into());
        assert!(names.check(63).unwrap_err().contains("same name"));
    }

    #[test]
    fn every_column_has_a_name() {
        let names = Names::new('`');
        for (column, name) in SqlColumn::ALL {
            assert_eq!(names.column(column), name);
        }
    }
}
