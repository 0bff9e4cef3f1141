//! What went wrong, in the words of the contract.

use std::error::Error;
use std::fmt::Write as _;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use super::NAME;
use crate::store::{StoreError, StoreErrorKind};

/// Somebody has to put something right.
pub(super) fn refused(why: impl Into<String>) -> StoreError {
    StoreError::new(NAME, StoreErrorKind::Refused, why.into())
}

/// It may go better later.
pub(super) fn unavailable(why: impl Into<String>) -> StoreError {
    StoreError::new(NAME, StoreErrorKind::Unavailable, why.into())
}

/// There is an item that is not a record of this version.
pub(super) fn unreadable(why: impl Into<String>) -> StoreError {
    StoreError::new(NAME, StoreErrorKind::Unreadable, why.into())
}

/// The code of a service's answer.
pub(super) fn code<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Option<&str> {
    error.as_service_error().and_then(ProvideErrorMetadata::code)
}

/// The error of a request. Never with what was sent or stored in it.
pub(super) fn fault<E>(table: &str, error: &SdkError<E, HttpResponse>) -> StoreError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    match error {
        SdkError::ServiceError(answer) => {
            let status = answer.raw().status().as_u16();
            let (code, message) = (answer.err().code(), answer.err().message());
            let said = format!("{} {}", code.unwrap_or("no code"), message.unwrap_or("and no message"));
            StoreError::new(NAME, kind(code, status), format!("{said} (table `{table}`){}", advice(code)))
        }
        // It could not be put together, so nothing was sent.
        SdkError::ConstructionFailure(_) => refused(chain(error)),
        // Sent or not, the answer is not there.
        _ => unavailable(chain(error)),
    }
}

fn kind(code: Option<&str>, status: u16) -> StoreErrorKind {
    match code {
        Some("ItemCollectionSizeLimitExceededException") => StoreErrorKind::Full,
        // Throttled, in somebody's transaction, or with credentials that are about to be renewed.
        Some(
            "ProvisionedThroughputExceededException"
            | "RequestLimitExceeded"
            | "ThrottlingException"
            | "LimitExceededException"
            | "TransactionConflictException"
            | "TransactionInProgressException"
            | "ReplicatedWriteConflictException"
            | "InternalServerError"
            | "ServiceUnavailable"
            | "ExpiredTokenException",
        ) => StoreErrorKind::Unavailable,
        Some(code) if code.contains("Throttl") => StoreErrorKind::Unavailable,
        _ if status == 429 || status >= 500 => StoreErrorKind::Unavailable,
        _ => StoreErrorKind::Refused,
    }
}

fn advice(code: Option<&str>) -> &'static str {
    match code {
        Some("ResourceNotFoundException") => {
            ": create the table, or let the store do it (DynamoDbStoreBuilder::create_table)"
        }
        Some("AccessDeniedException") => {
            ": the store needs dynamodb:GetItem, PutItem, UpdateItem and DeleteItem on the table, and Scan for its \
             administration; opening needs DescribeTable too, unless the table is made elsewhere (create_table(false))"
        }
        Some("RequestExpired" | "InvalidSignatureException" | "RequestTimeTooSkewed") => {
            ": are the credentials and this machine's clock right?"
        }
        _ => "",
    }
}

/// What an error says, and what is said underneath.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        // Writing to a string does not fail.
        let _ = write!(text, ": {error}");
        next = error.source();
    }
    text
}
