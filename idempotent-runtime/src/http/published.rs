//! What clients have to know, as the Internet-Draft asks a server to publish it.

use std::fmt::Write;

use http::StatusCode;
use serde::Serialize;

use super::config::{Config, KeyScope, Omitted};
use super::key::Syntax;
use super::problem::Problem;
use super::responses::Keep;

/// The policy of a layer. It serializes to JSON, for an `OpenAPI` document or a page of its own, and writes itself as
/// Markdown.
///
/// ```
/// # use idempotent_runtime::{Idempotency, stores::MemoryStore};
/// # use idempotent_runtime::http::{IdempotencyLayer, Principal};
/// # let idempotency = Idempotency::new(MemoryStore::new());
/// # let layer = IdempotencyLayer::builder(&idempotency, Principal::single_tenant()).build().unwrap();
/// let policy = layer.policy();
/// assert_eq!(serde_json::to_value(&policy).unwrap()["ttl_seconds"], 86_400);
/// assert!(policy.to_markdown().contains("| Kept for | 86400 s |"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PublishedPolicy {
    /// The header that has the key.
    pub header: String,
    /// Another header that may have it.
    pub alias: Option<String>,
    /// Whether a request without a key is refused.
    pub required: bool,
    /// The methods whose requests are protected.
    pub methods: Vec<String>,
    /// What a key looks like.
    pub syntax: &'static str,
    /// How many bytes a key has at least.
    pub min_key_bytes: usize,
    /// How many bytes a key has at most.
    pub max_key_bytes: usize,
    /// Where the same key means the same request.
    pub scope: String,
    /// What has to be the same in a retry.
    pub compared: Vec<String>,
    /// How long a response is kept, in seconds, counted from when it was stored.
    pub ttl_seconds: u64,
    /// The statuses whose responses are stored, as ranges; `None`: the application decides for each response.
    pub stored_statuses: Option<Vec<String>>,
    /// The largest content of a request, in bytes.
    pub max_request_bytes: usize,
    /// The largest content of a response that is replayed, in bytes.
    pub max_response_bytes: usize,
    /// What a retry gets in place of a larger one.
    pub omitted: &'static str,
    /// The header of a replay.
    pub replay_marker: String,
    /// What the layer answers itself.
    pub problems: Vec<PublishedProblem>,
}

/// A problem that the layer answers with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PublishedProblem {
    /// The member `code`.
    pub code: &'static str,
    /// The member `type`.
    pub r#type: String,
    /// The status.
    pub status: u16,
    /// The member `title`.
    pub title: &'static str,
    /// Whether the same request may have another answer later.
    pub retryable: bool,
}

impl PublishedPolicy {
    pub(super) fn of(config: &Config) -> Self {
        let (settings, field) = (&config.idempotency.core().settings, &config.field);
        let scope = match config.scope {
            KeyScope::Operation => "one method and path",
            KeyScope::Principal => "the whole API",
        };
        let mut problems: Vec<_> = Problem::ALL.iter().map(|problem| config.published(*problem)).collect();
        problems.dedup_by(|problem, before| problem.code == before.code);
        Self {
            header: field.name.to_string(),
            alias: field.alias.as_ref().map(ToString::to_string),
            required: config.required,
            methods: config.methods.iter().map(ToString::to_string).collect(),
            syntax: match field.syntax {
                Syntax::Strict => "a string in quotes (RFC 9651)",
                Syntax::Lenient => {
                    "a string in quotes (RFC 9651), or visible ASCII without quotes, commas, semicolons and backslashes"
                }
            },
            min_key_bytes: *field.length.start(),
            max_key_bytes: *field.length.end(),
            scope: format!("{scope}; {}", config.principal.described()),
            compared: config.compared.described(),
            ttl_seconds: config.policies.ttl.unwrap_or(settings.ttl).as_secs(),
            stored_statuses: stored(config),
            max_request_bytes: config.max_request,
            max_response_bytes: config.max_response,
            omitted: match config.omitted {
                Omitted::Head => {
                    "status and headers of the first response, with `idempotent-replay: omitted`"
                }
                Omitted::Problem => "the problem `result-not-retained`",
            },
            replay_marker: format!("{}: true", config.marker),
            problems,
        }
    }

    /// A table of the policy and one of the problems.
    pub fn to_markdown(&self) -> String {
        let mut rows = vec![
            ("Header", format!("`{}`", self.header)),
            ("Required", if self.required { "yes" } else { "no" }.to_owned()),
            ("Methods", self.methods.join(", ")),
            ("Key", format!("{}; {} to {} bytes", self.syntax, self.min_key_bytes, self.max_key_bytes)),
            ("A key belongs to", self.scope.clone()),
            ("Must be the same in a retry", self.compared.join(", ")),
            ("Kept for", format!("{} s", self.ttl_seconds)),
            (
                "Stored",
                self.stored_statuses.as_ref().map_or("as decided for each".to_owned(), |all| all.join(", ")),
            ),
            ("Largest request", format!("{} bytes", self.max_request_bytes)),
            ("Largest stored response", format!("{} bytes; else {}", self.max_response_bytes, self.omitted)),
            ("Replays have", format!("`{}`", self.replay_marker)),
        ];
        if let Some(alias) = &self.alias {
            rows.insert(1, ("Or", format!("`{alias}`")));
        }
        let mut text = String::from("| | |\n| --- | --- |\n");
        for (name, value) in rows {
            let _ = writeln!(text, "| {name} | {value} |");
        }
        text.push_str("\n| Problem | Status | Title | Retry |\n| --- | --- | --- | --- |\n");
        for PublishedProblem { code, status, title, retryable, .. } in &self.problems {
            let _ = writeln!(
                text,
                "| `{code}` | {status} | {title} | {} |",
                if *retryable { "yes" } else { "no" }
            );
        }
        text
    }
}

impl Config {
    fn published(&self, problem: Problem) -> PublishedProblem {
        PublishedProblem {
            code: problem.code,
            r#type: format!("{}{}", self.types, problem.code),
            status: problem.status().as_u16(),
            title: problem.title(),
            retryable: problem.is_retryable(),
        }
    }
}

/// The stored statuses from 200 to 599, neighbours as one range.
fn stored(config: &Config) -> Option<Vec<String>> {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for status in 200..600 {
        let keep = config.responses.of_status(StatusCode::from_u16(status).ok()?)?;
        match (keep, ranges.last_mut()) {
            (Keep::Release, _) => {}
            (Keep::Store, Some((_, last))) if *last + 1 == status => *last = status,
            (Keep::Store, _) => ranges.push((status, status)),
        }
    }
    let text =
        |(first, last): (u16, u16)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    Some(ranges.into_iter().map(text).collect())
}
