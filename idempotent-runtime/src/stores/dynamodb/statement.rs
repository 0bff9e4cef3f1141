//! What is sent: conditions and updates, put together once.
//!
//! Every condition compares the expiry itself, because DynamoDB deletes expired items days later. An update adds one to
//! the revision, so that owner, fence and revision together name one content of one record: what was decided about it
//! holds as long as these three do.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;

use super::item::{VERSION, number, text};
use super::names::Names;

/// A condition and an update, with the names and values in both: exactly those, or DynamoDB refuses it.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) condition: String,
    /// Nothing for a deletion or a whole item.
    pub(super) update: Option<String>,
    names: HashMap<String, String>,
    constants: HashMap<String, AttributeValue>,
    variables: BTreeSet<&'static str>,
}

/// Values that are always the same.
fn constant(word: &str) -> Option<AttributeValue> {
    Some(match word {
        "version" => number(VERSION),
        "running" | "unknown" | "not_retained" => text(word),
        "zero" => number(0_u64),
        "one" => number(1_u64),
        "no" => AttributeValue::Bool(false),
        "yes" => AttributeValue::Bool(true),
        _ => return None,
    })
}

/// Values that a call gives.
const VARIABLES: &[&str] = &[
    ":attempt",
    ":expires",
    ":fence",
    ":grace",
    ":lease",
    ":name",
    ":names",
    ":next_fence",
    ":now",
    ":operation",
    ":owner",
    ":places",
    ":result",
    ":result_version",
    ":revision",
    ":seen",
    ":state",
    ":step",
    ":steps",
    ":ttl",
];

/// The words behind `mark` in expressions.
pub(super) fn words<'a>(expressions: &[&'a str], mark: char) -> BTreeSet<&'a str> {
    let rests = expressions.iter().flat_map(|text| text.split(mark).skip(1));
    rests
        .map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphabetic() && c != '_').unwrap_or(rest.len());
            rest.get(..end).unwrap_or(rest)
        })
        .collect()
}

impl Statement {
    pub(super) fn new(names: &Names, condition: String, update: Option<String>) -> Self {
        let expressions = [&*condition, update.as_deref().unwrap_or_default()];
        let words = words(&expressions, ':');
        let constants = words.iter().filter_map(|word| Some((format!(":{word}"), constant(word)?))).collect();
        let is_used = |variable: &&&str| variable.strip_prefix(':').is_some_and(|word| words.contains(word));
        let variables = VARIABLES.iter().filter(is_used).copied().collect();
        Self { names: names.within(&expressions), constants, variables, condition, update }
    }

    pub(super) fn names(&self) -> HashMap<String, String> {
        self.names.clone()
    }

    /// The values to send: those of `given` that are used, and the constants. Nothing, if there are none: an empty map
    /// would be refused.
    pub(super) fn values(&self, given: Values) -> Option<HashMap<String, AttributeValue>> {
        let used = given.into_iter().filter(|(variable, _)| self.variables.contains(variable));
        let mut values = self.constants.clone();
        values.extend(used.map(|(variable, value)| (variable.to_owned(), value)));
        (!values.is_empty()).then_some(values)
    }
}

/// What a call gives for the variables, and perhaps more.
pub(super) type Values = Vec<(&'static str, AttributeValue)>;

/// The owner's record, still running.
const OWNED: &str = "#version = :version AND #owner = :owner AND #state = :running AND #expires > :now";
/// What somebody may settle by hand.
const WAITING: &str = "#version = :version AND #owner = :seen AND #expires > :now AND \
     ((#state = :running AND #lease <= :now) OR #state IN (:unknown, :not_retained))";
/// No attempt is at work.
const IDLE: &str = "#version = :version AND #owner = :seen AND #expires > :now AND \
     (#state <> :running OR #lease <= :now)";
/// The record has not changed since it was seen.
const SAME: &str = "#owner = :seen AND #fence = :fence AND #revision = :revision";

const GRANT: &str = "SET #owner = :owner, #attempt = :attempt, #fence = :next_fence, #lease = :lease, \
     #grace = :grace, #expires = :expires, #ttl = :ttl, #revision = #revision + :one";
const RENEW: &str = "SET #lease = :lease, #grace = :grace, #expires = :expires, #ttl = :ttl, \
     #revision = #revision + :one";
const MARK: &str = ", #effects = :yes";
/// `if_not_exists`: a step keeps the place at which it began.
const STEP: &str = ", #steps.#step = :step, #places.#step = if_not_exists(#places.#step, #revision)";
const STEP_BEGUN: &str = " ADD #begun :names";
const STEP_DONE: &str = " DELETE #begun :names";
const STEP_OPEN: &str = " AND (attribute_not_exists(#steps.#step) OR contains(#begun, :name))";

const SETTLE: &str = "SET #state = :state, #owner = :owner, #expires = :expires, #ttl = :ttl, \
     #revision = #revision + :one";
const RESULT: &str = ", #result = :result, #result_version = :result_version";
const NOT_RUNNING: &str = " REMOVE #lease, #grace, #effects";
const NO_STEPS: &str = ", #steps, #places, #begun";

const ABANDON: &str = "SET #lease = :zero, #expires = #grace + :now, #revision = #revision + :one";
const RETURN: &str = "SET #owner = :owner, #attempt = :attempt, #lease = :lease, #expires = :expires, #ttl = :ttl, \
     #revision = #revision + :one";
const REOPEN: &str = "SET #state = :running, #owner = :owner, #attempt = :attempt, #lease = :lease, \
     #expires = :expires, #ttl = :ttl, #effects = :no, #steps = :steps, #places = :places, \
     #revision = #revision + :one REMOVE #begun";

/// All that is ever sent about one record.
#[derive(Debug)]
pub(super) struct Statements {
    /// Writes a record where there is none.
    pub(super) absent: Statement,
    /// Grants what was seen, or renews the lease of the same token.
    pub(super) grant: Statement,
    /// Writes a whole record over the expired one that was seen.
    pub(super) replace: Statement,
    /// Settles what was seen as unknown.
    pub(super) exhaust: Statement,
    pub(super) renew: Statement,
    pub(super) begin_effects: Statement,
    pub(super) step_begun: Statement,
    pub(super) step_done: Statement,
    pub(super) settle: Settling,
    pub(super) resolve: Settling,
    /// Deletes the owner's record, if it has no steps.
    pub(super) forget_own: Statement,
    /// The same, if it is also the first attempt.
    pub(super) forget_first: Statement,
    pub(super) abandon: Statement,
    /// Takes an unused attempt back.
    pub(super) return_unused: Statement,
    /// Ends the attempt that was seen, and keeps its finished steps.
    pub(super) reopen: Statement,
    /// Deletes what waits for an operator, if it has no steps.
    pub(super) undo: Statement,
    /// Deletes what no attempt is at work on.
    pub(super) forget: Statement,
    /// Deletes what was seen.
    pub(super) delete: Statement,
    /// Deletes what has expired.
    pub(super) purge: Statement,
    /// Never true: tries a permission without changing anything.
    pub(super) never: Statement,
    pub(super) never_update: Statement,
}

/// The ways to settle.
#[derive(Debug)]
pub(super) struct Settling {
    pub(super) with_result: Statement,
    pub(super) without_result: Statement,
    /// The steps stay: somebody may find out that it did not happen.
    pub(super) unknown: Statement,
}

impl Statements {
    pub(super) fn new(names: &Names) -> Self {
        let delete = |condition: String| Statement::new(names, condition, None);
        let update =
            |condition: String, parts: &[&str]| Statement::new(names, condition, Some(parts.concat()));
        let settling = |condition: &str| Settling {
            with_result: update(condition.into(), &[SETTLE, RESULT, NOT_RUNNING, NO_STEPS]),
            without_result: update(condition.into(), &[SETTLE, NOT_RUNNING, NO_STEPS]),
            unknown: update(condition.into(), &[SETTLE, NOT_RUNNING]),
        };
        Self {
            absent: delete("attribute_not_exists(#key)".into()),
            grant: update(SAME.into(), &[GRANT]),
            replace: delete(SAME.into()),
            exhaust: update(SAME.into(), &[SETTLE, NOT_RUNNING]),
            renew: update(OWNED.into(), &[RENEW]),
            begin_effects: update(OWNED.into(), &[RENEW, MARK]),
            step_begun: update(format!("{OWNED}{STEP_OPEN}"), &[RENEW, STEP, STEP_BEGUN]),
            step_done: update(format!("{OWNED}{STEP_OPEN}"), &[RENEW, STEP, STEP_DONE]),
            settle: settling(OWNED),
            resolve: settling(WAITING),
            forget_own: delete(format!("{OWNED} AND size(#steps) = :zero")),
            forget_first: delete(format!("{OWNED} AND size(#steps) = :zero AND #attempt <= :one")),
            abandon: update(format!("{OWNED} AND #lease > :now"), &[ABANDON]),
            return_unused: update(SAME.into(), &[RETURN]),
            reopen: update(SAME.into(), &[REOPEN]),
            undo: delete(format!("{WAITING} AND (attribute_not_exists(#steps) OR size(#steps) = :zero)")),
            forget: delete(IDLE.into()),
            delete: delete(SAME.into()),
            purge: delete("#version = :version AND #expires <= :now".into()),
            never: delete("attribute_exists(#key) AND attribute_not_exists(#key)".into()),
            never_update: update(
                "attribute_exists(#key) AND attribute_not_exists(#key)".into(),
                &["REMOVE #result"],
            ),
        }
    }
}
