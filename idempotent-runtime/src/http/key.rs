//! The `Idempotency-Key` field: which values name a key, and which are refused.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Serialize, Serializer};
use sfv::{BareItem, Item, Parser};

/// The key of a request as its client chose it: without the quotes and escapes of the field.
///
/// The layer puts it into the extensions of the request; with the feature `axum` it is an extractor. It serializes as a
/// string, so that it can be the key of an annotated function below the handler. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(Arc<str>);

impl IdempotencyKey {
    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for IdempotencyKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey(..)")
    }
}

/// Which values of the field are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    /// A string in quotes as RFC 9651 has it, or the bare key that most clients send: visible ASCII without quotes, commas,
    /// semicolons and backslashes. `"k"` and `k` are one key.
    #[default]
    Lenient,
    /// Only the string in quotes, as the Internet-Draft has it.
    Strict,
}

/// Where a key stands in a request, and what it may look like.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: HeaderName,
    pub(super) alias: Option<HeaderName>,
    pub(super) syntax: Syntax,
    /// In bytes, without quotes and escapes.
    pub(super) length: RangeInclusive<usize>,
}

/// A value that names no key. It is refused: to ignore it would run the request unprotected, while the client believes
/// itself safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Field {
    /// Whether the request says anything about a key.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(&self.name)
            || self.alias.as_ref().is_some_and(|alias| headers.contains_key(alias))
    }

    /// The key of a request.
    pub(super) fn key(&self, headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Malformed> {
        let own = self.only(headers, &self.name)?;
        let Some(alias) = &self.alias else { return Ok(own) };
        match (own, self.only(headers, alias)?) {
            (Some(own), Some(other)) if own != other => Err(Malformed),
            (own, other) => Ok(own.or(other)),
        }
    }

    /// The key in the one line of this name. Two lines are malformed even if they are equal: who sent the second?
    fn only(&self, headers: &HeaderMap, name: &HeaderName) -> Result<Option<IdempotencyKey>, Malformed> {
        let mut lines = headers.get_all(name).iter();
        match (lines.next(), lines.next()) {
            (None, _) => Ok(None),
            (Some(line), None) => self.parse(line).map(Some),
            (Some(_), Some(_)) => Err(Malformed),
        }
    }

    fn parse(&self, value: &HeaderValue) -> Result<IdempotencyKey, Malformed> {
        let value = trimmed(value.as_bytes());
        // Before anything is looked at: the longest key, all of it escaped, and its parameters.
        if value.len() > 2 * self.length.end() + 256 {
            return Err(Malformed);
        }
        let key = match (value.first(), self.syntax) {
            (Some(b'"'), _) => quoted(value)?,
            (Some(_), Syntax::Lenient) => bare(value)?,
            _ => return Err(Malformed),
        };
        // Nothing but spaces is as good as nothing.
        if !self.length.contains(&key.len()) || key.trim().is_empty() {
            return Err(Malformed);
        }
        Ok(IdempotencyKey(key))
    }
}

fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// An item of type string, whose parameters mean nothing here.
fn quoted(value: &[u8]) -> Result<Arc<str>, Malformed> {
    let item: Item = Parser::new(value).parse().map_err(|_| Malformed)?;
    match item.bare_item {
        BareItem::String(key) => Ok(key.as_str().into()),
        _ => Err(Malformed),
    }
}

/// Not decided by what a parser of structured fields makes of it: that would take a UUID that begins with a letter for a
/// token, and refuse one that begins with a digit.
fn bare(value: &[u8]) -> Result<Arc<str>, Malformed> {
    let allowed = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\');
    if !value.iter().all(allowed) {
        return Err(Malformed);
    }
    std::str::from_utf8(value).map(Into::into).map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(syntax: Syntax, value: &str) -> Option<String> {
        let name = HeaderName::from_static("idempotency-key");
        let field = Field { name, alias: None, syntax, length: 1..=255 };
        let value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
        field.parse(&value).ok().map(|key| key.as_str().to_owned())
    }

    #[test]
    fn what_lenient_and_strict_take() {
        let uuid = "8e03978e-40d5-43e8-bc93-6894a57f9324";
        let letter = "ab03978e-40d5-43e8-bc93-6894a57f9324";
        let cases: &[(&str, Option<&str>, Option<&str>)] = &[
            // value, lenient, strict
            (&format!("\"{uuid}\""), Some(uuid), Some(uuid)),
            (uuid, Some(uuid), None),
            (letter, Some(letter), None),
            ("\"\"", None, None),
            ("", None, None),
            ("\"  \"", None, None),
            ("a, b", None, None),
            ("\"abc\";v=1", Some("abc"), Some("abc")),
            ("\"abc\";V=1", None, None),
            ("abc;v=1", None, None),
            (r#""a\"b""#, Some("a\"b"), Some("a\"b")),
            (r#""a\\b""#, Some("a\\b"), Some("a\\b")),
            (r#""a\nb""#, None, None),
            ("\"abc", None, None),
            ("\"abc\\", None, None),
            ("\"abc\"x", None, None),
            ("(\"a\")", None, None),
            ("%\"f%c3%bc\"", None, None),
            ("'abc'", Some("'abc'"), None),
            (":YWJj:", Some(":YWJj:"), None),
            ("?1", Some("?1"), None),
            ("@1659578233", Some("@1659578233"), None),
            ("123", Some("123"), None),
            ("1.5", Some("1.5"), None),
            ("  \"k\" \t", Some("k"), Some("k")),
            ("\t k ", Some("k"), None),
            ("\"a\tb\"", None, None),
            ("\"a b\"", Some("a b"), Some("a b")),
            ("a b", None, None),
            ("ABC", Some("ABC"), None),
            ("ü", None, None),
            ("\"ü\"", None, None),
        ];
        for (value, lenient, strict) in cases {
            assert_eq!(parse(Syntax::Lenient, value).as_deref(), *lenient, "lenient: {value:?}");
            assert_eq!(parse(Syntax::Strict, value).as_deref(), *strict, "strict: {value:?}");
        }
    }

    #[test]
    fn the_length_counts_what_the_client_chose() {
        let long = "a".repeat(255);
        assert_eq!(parse(Syntax::Strict, &format!("\"{long}\"")).as_deref(), Some(long.as_str()));
        assert_eq!(parse(Syntax::Lenient, &format!("{long}a")), None);
        let escaped = "\\\"".repeat(255);
        assert_eq!(parse(Syntax::Strict, &format!("\"{escaped}\"")), Some("\"".repeat(255)));
        assert_eq!(parse(Syntax::Strict, &format!("\"{escaped}\\\"\"")), None);
    }

    /// Whatever is taken without quotes is the same key within them, and whatever the bytes are, they are a key or none.
    #[test]
    fn a_bare_key_and_its_quoted_form_are_one() {
        use rand::RngExt;
        let mut chance = rand::rng();
        let mut taken = 0;
        for _ in 0..20_000 {
            let length = chance.random_range(1..40);
            let bytes: Vec<u8> = (0..length).map(|_| chance.random_range(0x20..=0xff_u8)).collect();
            let text = String::from_utf8_lossy(&bytes);
            let visible: String = text.chars().filter(char::is_ascii_graphic).collect();
            for value in [&*text, &visible] {
                if let Some(key) = parse(Syntax::Lenient, value).filter(|_| !value.contains('"')) {
                    assert_eq!(parse(Syntax::Strict, &format!("\"{key}\"")), Some(key.clone()), "{value:?}");
                    assert_eq!(parse(Syntax::Lenient, &key), Some(key));
                    taken += 1;
                }
            }
        }
        assert!(taken > 1_000, "{taken}");
    }
}
