//! Records and findings, for people and for programs.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::time::UNIX_EPOCH;

use idempotent_runtime::store::{Record, State};
use idempotent_runtime::{Finding, Severity};
use serde_json::{Value, json};

/// Prints a line.
macro_rules! say {
    ($($line:tt)*) => { $crate::show::line(format_args!($($line)*)) };
}
pub(crate) use say;

/// A reader that has seen enough, such as `head`, is no failure, and what is done is done. An output that takes nothing for
/// another reason is one.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    if let Err(error) = writeln!(io::stdout().lock(), "{text}")
        && error.kind() != ErrorKind::BrokenPipe
    {
        eprintln!("idempotent: the output cannot be written: {error}");
        std::process::exit(2);
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Format {
    Text,
    Json,
}

/// One record. Of its result only the size is shown: it may be somebody's secret.
pub(crate) fn show_record(record: &Record, format: Format) {
    match format {
        Format::Json => say!("{}", as_json(record)),
        Format::Text => say!("{}", as_text(record)),
    }
}

pub(crate) fn show_finding(finding: &Finding, format: Format) {
    match format {
        Format::Text => say!("{finding}"),
        Format::Json => {
            let severity = match finding.severity {
                Severity::Weakens => "weakens",
                Severity::Breaks => "breaks",
            };
            say!("{}", json!({"severity": severity, "problem": finding.problem, "remedy": finding.remedy}));
        }
    }
}

fn as_text(record: &Record) -> String {
    let more = match &record.state {
        State::Running { lease_left, .. } if lease_left.is_zero() => "lease over".to_owned(),
        State::Running { lease_left, .. } => format!("lease {}s", lease_left.as_secs()),
        State::Settled(settled) => {
            settled.stored().map_or_else(String::new, |stored| format!("{} bytes", stored.bytes.len()))
        }
    };
    let expires = record.expires_in.as_secs();
    let (key, state, attempt, owner) =
        (record.key.as_str(), record.state.name(), record.attempt, record.owner);
    format!("{key}  {state}  {more}  attempt {attempt}  expires in {expires}s  owner {owner}")
}

fn as_json(record: &Record) -> Value {
    let created = record.created_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (lease_left, effects_begun) = match &record.state {
        State::Running { lease_left, effects_begun } => (Some(lease_left.as_secs_f64()), *effects_begun),
        State::Settled(_) => (None, false),
    };
    let stored = match &record.state {
        State::Settled(settled) => settled.stored(),
        State::Running { .. } => None,
    };
    json!({
        "key": record.key.as_str(),
        "operation": record.key.operation().as_str(),
        "state": record.state.name().as_str(),
        "lease_left": lease_left,
        "effects_begun": effects_begun,
        "attempt": record.attempt,
        "fence": record.fence,
        "owner": record.owner.to_string(),
        "created_at": created.as_secs_f64(),
        "expires_in": record.expires_in.as_secs_f64(),
        "result_bytes": stored.map(|stored| stored.bytes.len()),
        "result_version": stored.map(|stored| stored.version),
        "steps": record.steps.iter().map(|step| step.name.as_ref()).collect::<Vec<_>>(),
    })
}
