//! What the attributes of an item are called.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::statement::words;

/// Longer names would take room from the results: an item has 400 KB, names included.
const LONGEST: usize = 64;

/// The attributes of a record's item, for [`DynamoDbStoreBuilder::attribute`](super::DynamoDbStoreBuilder::attribute).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Attribute {
    /// The partition key, a string: the record's key. Default: `key`.
    Key,
    /// When DynamoDB may delete the item, in seconds since 1970: an hour after it has expired. Default: `ttl`.
    Ttl,
    /// The version of this layout, a number. Default: `v`.
    Version,
    /// The operation's name, a string. Default: `operation`.
    Operation,
    /// `running`, `completed`, `failed`, `not_retained` or `unknown`. Default: `state`.
    State,
    /// The token of the attempt that owns the record: 16 bytes. Default: `owner`.
    Owner,
    /// The version of the fingerprint, and its 32 bytes. Default: `fingerprint`.
    Fingerprint,
    /// How many attempts there have been. Default: `attempt`.
    Attempt,
    /// The fencing token. Default: `fence`.
    Fence,
    /// When the lease ends, in microseconds since 1970; only while running. Default: `lease`.
    Lease,
    /// How long the record is kept after its lease, in microseconds; only while running. Default: `grace`.
    Grace,
    /// Whether an effect may have happened; only while running. Default: `effects`.
    Effects,
    /// When the record expires, in microseconds since 1970. Default: `expires`.
    Expires,
    /// When the first attempt was granted, in microseconds since 1970. Default: `created`.
    Created,
    /// How many writes this generation of the record has seen. Default: `revision`.
    Revision,
    /// A map from each step's name to its result, or to null while it has only begun. Default: `steps`.
    Steps,
    /// A map from each step's name to the revision at which it began. Default: `places`.
    Places,
    /// The names of the steps that have begun and are not done, as a set; absent when there is none. Default: `begun`.
    Begun,
    /// The result, as the codec made it; only when completed or failed. Default: `result`.
    Result,
    /// The version of the result's type. Default: `result_version`.
    ResultVersion,
}

const ALL: [Attribute; 20] = [
    Attribute::Key,
    Attribute::Ttl,
    Attribute::Version,
    Attribute::Operation,
    Attribute::State,
    Attribute::Owner,
    Attribute::Fingerprint,
    Attribute::Attempt,
    Attribute::Fence,
    Attribute::Lease,
    Attribute::Grace,
    Attribute::Effects,
    Attribute::Expires,
    Attribute::Created,
    Attribute::Revision,
    Attribute::Steps,
    Attribute::Places,
    Attribute::Begun,
    Attribute::Result,
    Attribute::ResultVersion,
];

impl Attribute {
    /// What it stands under in the expressions, after a `#`; and its name, unless it is given another.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Key => ("key", "key"),
            Self::Ttl => ("ttl", "ttl"),
            Self::Version => ("version", "v"),
            Self::Operation => ("operation", "operation"),
            Self::State => ("state", "state"),
            Self::Owner => ("owner", "owner"),
            Self::Fingerprint => ("fingerprint", "fingerprint"),
            Self::Attempt => ("attempt", "attempt"),
            Self::Fence => ("fence", "fence"),
            Self::Lease => ("lease", "lease"),
            Self::Grace => ("grace", "grace"),
            Self::Effects => ("effects", "effects"),
            Self::Expires => ("expires", "expires"),
            Self::Created => ("created", "created"),
            Self::Revision => ("revision", "revision"),
            Self::Steps => ("steps", "steps"),
            Self::Places => ("places", "places"),
            Self::Begun => ("begun", "begun"),
            Self::Result => ("result", "result"),
            Self::ResultVersion => ("result_version", "result_version"),
        }
    }
}

/// The names that a store goes by.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    renamed: BTreeMap<Attribute, String>,
    /// The sort key, and what it is in every item of ours.
    pub(super) sort: Option<(String, String)>,
}

impl Names {
    pub(super) fn rename(&mut self, attribute: Attribute, name: String) {
        self.renamed.insert(attribute, name);
    }

    pub(super) fn of(&self, attribute: Attribute) -> &str {
        self.renamed.get(&attribute).map_or(attribute.names().1, String::as_str)
    }

    /// Why these names cannot work, if they cannot.
    pub(super) fn fault(&self) -> Option<String> {
        let sort = self.sort.iter().map(|(name, _)| name.as_str());
        let mut seen = BTreeSet::new();
        for name in ALL.iter().map(|attribute| self.of(*attribute)).chain(sort) {
            if name.is_empty() || name.len() > LONGEST {
                return Some(format!("the attribute name `{name}` does not have 1 to {LONGEST} bytes"));
            }
            if !seen.insert(name) {
                return Some(format!("two attributes are called `{name}`"));
            }
        }
        match &self.sort {
            Some((name, value)) if value.is_empty() => {
                Some(format!("the value of the sort key `{name}` is empty"))
            }
            _ => None,
        }
    }

    /// The names behind the placeholders of an expression: exactly those, or DynamoDB refuses it.
    pub(super) fn within(&self, expressions: &[&str]) -> HashMap<String, String> {
        let words = words(expressions, '#');
        let of_ours = ALL.iter().map(|attribute| (attribute.names().0, self.of(*attribute)));
        let sort = self.sort.iter().map(|(name, _)| ("sort", name.as_str()));
        of_ours
            .chain(sort)
            .filter(|(word, _)| words.contains(word))
            .map(|(word, name)| (format!("#{word}"), name.to_owned()))
            .collect()
    }
}

/// The name of a step as an attribute of the maps, where an empty one is not allowed.
pub(super) fn step_name(step: &str) -> String {
    if step.is_empty() || step.starts_with('~') { format!("~{step}") } else { step.to_owned() }
}

/// The step that [`step_name`] gave this name.
pub(super) fn step_of(name: &str) -> &str {
    name.strip_prefix('~').unwrap_or(name)
}
