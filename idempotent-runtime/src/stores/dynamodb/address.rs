//! What a URL says of a table.

use crate::stores::ConnectError;

/// What `dynamodb://table?region=…&endpoint=…` says; the rest comes from the environment.
pub(super) struct Address {
    pub(super) table: String,
    pub(super) region: String,
    pub(super) endpoint: Option<String>,
}

pub(super) fn invalid<T>(reason: &'static str) -> Result<T, ConnectError> {
    Err(ConnectError::Invalid { reason })
}

impl Address {
    pub(super) fn parse(
        url: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConnectError> {
        let rest = url.strip_prefix("dynamodb:").unwrap_or(url).trim_start_matches("//");
        let (table, query) = rest.split_once('?').unwrap_or((rest, ""));
        let table = decoded(table.trim_end_matches('/'));
        let (mut region, mut endpoint) = (None, None);
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("region", value)) => region = Some(said(value)?),
                Some(("endpoint", value)) => endpoint = Some(said(value)?),
                _ => return invalid("a DynamoDB URL has the options `region` and `endpoint`, and no others"),
            }
        }
        let region =
            region.or_else(|| environment("AWS_REGION")).or_else(|| environment("AWS_DEFAULT_REGION"));
        let endpoint = endpoint
            .or_else(|| environment("AWS_ENDPOINT_URL_DYNAMODB"))
            .or_else(|| environment("AWS_ENDPOINT_URL"));
        match (table.filter(|table| !table.is_empty()), region) {
            (None, _) => invalid("a DynamoDB URL names a table, for example `dynamodb://idempotency`"),
            (_, None) => invalid(
                "a DynamoDB URL needs a region: `?region=eu-west-1`, or AWS_REGION in the environment",
            ),
            (Some(table), Some(region)) => Ok(Self { table, region, endpoint }),
        }
    }
}

/// The value of an option. One that is not understood, or left empty, must not come to mean another one.
fn said(value: &str) -> Result<String, ConnectError> {
    match decoded(value).filter(|value| !value.is_empty()) {
        Some(value) => Ok(value),
        None => invalid(
            "an option of a DynamoDB URL is empty, or has a `%` without two hexadecimal digits after it",
        ),
    }
}

/// With `%` and two hexadecimal digits as the byte that they mean; `None` if that is no text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Option<(String, String, Option<String>)> {
        let environment = |name: &str| (name == "AWS_REGION").then(|| "eu-west-1".to_owned());
        let address = Address::parse(url, environment).ok()?;
        Some((address.table, address.region, address.endpoint))
    }

    #[test]
    fn what_the_url_says_counts_before_what_the_environment_says() {
        let here = || ("t".to_owned(), "eu-west-1".to_owned(), None);
        assert_eq!(read("dynamodb://t"), Some(here()));
        assert_eq!(read("dynamodb:t/"), Some(here()));
        let there = ("t".to_owned(), "us east".to_owned(), Some("http://h:1".to_owned()));
        assert_eq!(read("dynamodb://t?region=us%20east&endpoint=http://h:1"), Some(there));
    }

    #[test]
    fn what_cannot_be_understood_is_not_replaced_by_something_else() {
        for url in [
            "dynamodb://t?region=",
            "dynamodb://t?endpoint=%zz",
            "dynamodb://t?region=%f",
            "dynamodb://",
            "dynamodb://t?x=1",
        ] {
            assert_eq!(read(url), None, "{url}");
        }
    }
}
