//! Sending one statement with its values, in one round trip: prepared, or as plain text for proxies that know nothing of
//! prepared statements.

use std::fmt::Write;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{Arguments, AssertSqlSafe, Executor, PgConnection, SqlStr};

use super::fault::Fault;

/// A value of a statement.
#[derive(Clone, Debug)]
pub(super) enum Value<'v> {
    Text(&'v str),
    OptText(Option<&'v str>),
    Bytes(Option<&'v [u8]>),
    Int(Option<i64>),
    Bool(bool),
    Texts(Vec<&'v str>),
    BytesMany(Vec<Option<&'v [u8]>>),
    Ints(Vec<Option<i64>>),
    Bools(Vec<bool>),
}

impl<'v> Value<'v> {
    pub(super) fn bytes(bytes: &'v [u8]) -> Self {
        Self::Bytes(Some(bytes))
    }

    fn bind(self, arguments: &mut PgArguments) -> Result<(), Fault> {
        match self {
            Self::Text(text) => arguments.add(text),
            Self::OptText(text) => arguments.add(text),
            Self::Bytes(bytes) => arguments.add(bytes),
            Self::Int(int) => arguments.add(int),
            Self::Bool(bool) => arguments.add(bool),
            Self::Texts(texts) => arguments.add(texts),
            Self::BytesMany(many) => arguments.add(many),
            Self::Ints(ints) => arguments.add(ints),
            Self::Bools(bools) => arguments.add(bools),
        }
        .map_err(|error| Fault::Refused(format!("a value cannot be sent: {error}")))
    }

    /// The value as SQL. Its type is said by the statement.
    fn literal(&self) -> String {
        match self {
            Self::Text(text) | Self::OptText(Some(text)) => quoted(text),
            Self::Bytes(Some(bytes)) => hexadecimal(bytes),
            Self::Int(Some(int)) => format!("({int})"),
            Self::Bool(bool) => bool.to_string(),
            Self::OptText(None) | Self::Bytes(None) | Self::Int(None) => "NULL".into(),
            Self::Texts(texts) => array(texts.iter().map(|text| quoted(text))),
            Self::BytesMany(many) => {
                array(many.iter().map(|bytes| bytes.map_or_else(|| "NULL".into(), hexadecimal)))
            }
            Self::Ints(ints) => {
                array(ints.iter().map(|int| int.map_or_else(|| "NULL".into(), |int| int.to_string())))
            }
            Self::Bools(bools) => array(bools.iter().map(ToString::to_string)),
        }
    }

    /// The protocol of plain statements ends a text at its first zero.
    fn has_nul(&self) -> bool {
        match self {
            Self::Text(text) | Self::OptText(Some(text)) => text.contains('\0'),
            Self::Texts(texts) => texts.iter().any(|text| text.contains('\0')),
            _ => false,
        }
    }
}

/// With the escapes of `E''`, which mean the same under every setting of the server.
fn quoted(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2 + 6);
    text.push_str("E'\\\\x");
    for byte in bytes {
        // A `String` takes everything.
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\'');
    text
}

fn array(elements: impl Iterator<Item = String>) -> String {
    format!("ARRAY[{}]", elements.collect::<Vec<_>>().join(","))
}

/// How statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// Prepared once on each connection.
    Prepared,
    /// As text that holds the values, planned every time.
    Plain,
}

impl Sending {
    /// Runs a statement to its end and gives its rows.
    pub(super) async fn rows(
        self,
        connection: &mut PgConnection,
        statement: &SqlStr,
        values: Vec<Value<'_>>,
    ) -> Result<Vec<PgRow>, Fault> {
        if self == Self::Plain {
            let text = plain(statement.as_str(), &values)?;
            return Ok(connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(text))).await?);
        }
        Ok(connection.fetch_all(prepared(statement, values)?).await?)
    }

    /// Runs a statement and says how many rows it wrote.
    pub(super) async fn written(
        self,
        connection: &mut PgConnection,
        statement: &SqlStr,
        values: Vec<Value<'_>>,
    ) -> Result<u64, Fault> {
        let result = if self == Self::Plain {
            let text = plain(statement.as_str(), &values)?;
            connection.execute(sqlx::raw_sql(AssertSqlSafe(text))).await?
        } else {
            connection.execute(prepared(statement, values)?).await?
        };
        Ok(result.rows_affected())
    }
}

fn prepared(
    statement: &SqlStr,
    values: Vec<Value<'_>>,
) -> Result<sqlx::query::Query<'static, sqlx::Postgres, PgArguments>, Fault> {
    let mut arguments = PgArguments::default();
    for value in values {
        value.bind(&mut arguments)?;
    }
    Ok(sqlx::query_with(statement.clone(), arguments))
}

/// The statement with its values in place of `$1`, `$2` and so on.
fn plain(statement: &str, values: &[Value<'_>]) -> Result<String, Fault> {
    if values.iter().any(Value::has_nul) {
        return Err(Fault::Refused("a text with a zero character cannot be stored".into()));
    }
    let literals: Vec<String> = values.iter().map(Value::literal).collect();
    let mut parts = statement.split('$');
    let mut text = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = part.split_at(digits);
        let literal = number.parse::<usize>().ok().and_then(|number| literals.get(number.checked_sub(1)?));
        text.push_str(literal.map_or("NULL", |literal| literal));
        text.push_str(rest);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_so_that_nothing_gets_out_of_them() {
        let values = [
            Value::Text(r"a'b\'c"),
            Value::bytes(&[0, 255]),
            Value::Int(Some(-1)),
            Value::Texts(vec!["$1", "x"]),
            Value::BytesMany(vec![None, Some(&[1])]),
        ];
        let text = plain("$1 $2::bytea $3 $4::text[] $5 $1", &values).unwrap();
        assert_eq!(
            text,
            r"E'a''b\\''c' E'\\x00ff'::bytea (-1) ARRAY[E'$1',E'x']::text[] ARRAY[NULL,E'\\x01'] E'a''b\\''c'"
        );
        assert!(plain("$1", &[Value::Text("a\0b")]).is_err());
    }
}
