//! What is left of the meters without the feature `metrics`: nothing.

use tokio::time::Instant;

use super::Incident;
use crate::store::StoreResult;

pub(crate) fn describe_metrics() {}

pub(crate) fn called(_operation: &str, _outcome: &'static str, _started: Option<Instant>) {}

pub(crate) fn happened(_operation: &str, _incident: Incident) {}

pub(crate) fn purged(_records: usize) {}

pub(crate) fn purge_failed(_outcome: &'static str) {}

#[derive(Debug)]
pub(crate) struct StoreCall;

impl StoreCall {
    pub(crate) fn begin(_call: &'static str) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the other one ends by it")]
    pub(crate) fn answered<T>(self, _answer: &StoreResult<T>) {}
}

#[derive(Debug)]
pub(crate) struct Body;

impl Body {
    pub(crate) fn new() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the other one notes the time")]
    pub(crate) fn polling(&mut self) {}

    #[expect(clippy::unused_self, reason = "the other one knows the time")]
    pub(crate) fn over(&self, _operation: &str, _outcome: &'static str) {}
}

#[derive(Debug)]
pub(crate) struct BackgroundTask;

impl BackgroundTask {
    pub(crate) fn begin() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the other one ends by it")]
    pub(crate) fn end(self) {}
}

#[derive(Debug)]
pub(crate) struct Wait;

impl Wait {
    pub(crate) fn begin(_operation: &str) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the other one ends by it")]
    pub(crate) fn over(self, _outcome: &'static str) {}
}
