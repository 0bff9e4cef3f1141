//! Records as items, and items as records.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;

use super::fault::unreadable;
use super::names::{Attribute, Names, step_of};
use super::time::{Micros, OVER, until};
use crate::fingerprint::Fingerprint;
use crate::key::RecordKey;
use crate::store::{OwnerToken, Record, Settled, State, Step, StepState, StoreError, StoreResult, Stored};

pub(super) type Item = HashMap<String, AttributeValue>;

/// The version of the layout. An item of another one is left alone.
pub(super) const VERSION: u64 = 1;

/// A record as it lies in the table.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) owner: OwnerToken,
    pub(super) attempt: u32,
    pub(super) fence: u64,
    pub(super) fingerprint: Fingerprint,
    pub(super) state: RowState,
    pub(super) created: Micros,
    pub(super) expires: Micros,
    pub(super) revision: u64,
    /// In the order in which they began, each with its place in it.
    pub(super) steps: Vec<(u64, Step)>,
}

#[derive(Clone, Debug)]
pub(super) enum RowState {
    Running { lease: Micros, effects: bool },
    Settled(Settled),
}

pub(super) fn number(n: impl Into<u64>) -> AttributeValue {
    AttributeValue::N(n.into().to_string())
}

pub(super) fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(super) fn bytes(bytes: impl Into<Vec<u8>>) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}

pub(super) fn owner(token: OwnerToken) -> AttributeValue {
    bytes(*token.as_bytes())
}

pub(super) fn fingerprint(fingerprint: &Fingerprint) -> AttributeValue {
    let mut all = Vec::with_capacity(33);
    all.push(fingerprint.version());
    all.extend_from_slice(fingerprint.digest());
    bytes(all)
}

/// The value of a step: its result, or null.
pub(super) fn step(state: &StepState) -> AttributeValue {
    match state {
        StepState::Begun => AttributeValue::Null(true),
        StepState::Done(result) => bytes(&**result),
    }
}

/// An item whose attributes are asked for by what they mean.
struct Reader<'a> {
    item: &'a Item,
    names: &'a Names,
}

impl<'a> Reader<'a> {
    fn get(&self, attribute: Attribute) -> Option<&'a AttributeValue> {
        self.item.get(self.names.of(attribute))
    }

    /// The attribute, read by `read`.
    fn read<T>(
        &self,
        attribute: Attribute,
        read: impl FnOnce(&'a AttributeValue) -> Option<T>,
    ) -> StoreResult<T> {
        self.get(attribute).and_then(read).ok_or_else(|| self.wrong(attribute))
    }

    fn wrong(&self, attribute: Attribute) -> StoreError {
        let name = self.names.of(attribute);
        unreadable(format!("the attribute `{name}` of an item is missing, or is not what the store writes"))
    }

    fn number<T: TryFrom<u64>>(&self, attribute: Attribute) -> StoreResult<T> {
        self.read(attribute, |value| T::try_from(as_number(value)?).ok())
    }

    fn text(&self, attribute: Attribute) -> StoreResult<&'a str> {
        self.read(attribute, |value| value.as_s().ok()).map(String::as_str)
    }

    fn bytes(&self, attribute: Attribute) -> StoreResult<&'a [u8]> {
        self.read(attribute, |value| value.as_b().ok()).map(AsRef::as_ref)
    }

    fn stored(&self) -> StoreResult<Stored> {
        Ok(Stored {
            version: self.number(Attribute::ResultVersion)?,
            bytes: self.bytes(Attribute::Result)?.into(),
        })
    }

    fn state(&self) -> StoreResult<RowState> {
        Ok(RowState::Settled(match self.text(Attribute::State)? {
            "running" => {
                return Ok(RowState::Running {
                    lease: self.number(Attribute::Lease)?,
                    effects: self.read(Attribute::Effects, |value| value.as_bool().ok().copied())?,
                });
            }
            "completed" => Settled::Completed(self.stored()?),
            "failed" => Settled::Failed(self.stored()?),
            "not_retained" => Settled::NotRetained,
            "unknown" => Settled::Unknown,
            _ => return Err(self.wrong(Attribute::State)),
        }))
    }

    fn steps(&self) -> StoreResult<Vec<(u64, Step)>> {
        let Some(steps) = self.get(Attribute::Steps) else { return Ok(Vec::new()) };
        let steps = steps.as_m().map_err(|_| self.wrong(Attribute::Steps))?;
        let places = self.read(Attribute::Places, |value| value.as_m().ok())?;
        let mut all = Vec::with_capacity(steps.len());
        for (name, value) in steps {
            let state = match value {
                AttributeValue::Null(true) => StepState::Begun,
                AttributeValue::B(result) => StepState::Done(result.as_ref().into()),
                _ => return Err(self.wrong(Attribute::Steps)),
            };
            let place = places.get(name).and_then(as_number).ok_or_else(|| self.wrong(Attribute::Places))?;
            all.push((place, Step { name: step_of(name).into(), state }));
        }
        all.sort_by_key(|(place, _)| *place);
        Ok(all)
    }
}

fn as_number(value: &AttributeValue) -> Option<u64> {
    value.as_n().ok()?.parse().ok()
}

impl Row {
    /// The record in an item, or which attribute this version cannot read.
    pub(super) fn decode(item: &Item, names: &Names) -> StoreResult<Self> {
        let reader = Reader { item, names };
        let version: u64 = reader.number(Attribute::Version)?;
        if version != VERSION {
            return Err(unreadable(format!(
                "an item has version {version}; this store knows version {VERSION}"
            )));
        }
        let token = reader.bytes(Attribute::Owner)?;
        let token = token.try_into().map_err(|_| reader.wrong(Attribute::Owner))?;
        let fingerprint = match reader.bytes(Attribute::Fingerprint)? {
            [version, digest @ ..] => digest.try_into().ok().map(|digest| (*version, digest)),
            [] => None,
        };
        let (of, digest) = fingerprint.ok_or_else(|| reader.wrong(Attribute::Fingerprint))?;
        Ok(Self {
            owner: OwnerToken::from_bytes(token),
            attempt: reader.number(Attribute::Attempt)?,
            fence: reader.number(Attribute::Fence)?,
            fingerprint: Fingerprint::from_parts(of, digest),
            state: reader.state()?,
            created: reader.number(Attribute::Created)?,
            expires: reader.number(Attribute::Expires)?,
            revision: reader.number(Attribute::Revision)?,
            steps: reader.steps()?,
        })
    }

    /// The key that the item itself names.
    pub(super) fn key(item: &Item, names: &Names) -> StoreResult<RecordKey> {
        let reader = Reader { item, names };
        Ok(RecordKey::new(reader.text(Attribute::Operation)?.to_owned(), reader.text(Attribute::Key)?))
    }

    pub(super) fn is_expired(&self, now: Micros) -> bool {
        self.expires <= now
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, RowState::Running { .. })
    }

    /// Whether an operator may settle it: nobody else will.
    pub(super) fn waits_for_somebody(&self, now: Micros) -> bool {
        match &self.state {
            RowState::Running { lease, .. } => *lease <= now,
            RowState::Settled(settled) => matches!(settled, Settled::Unknown | Settled::NotRetained),
        }
    }

    /// Whether it is as an attempt leaves it that is forgotten after some steps: ended, and nothing in doubt.
    pub(super) fn is_reopened(&self) -> bool {
        let is_over = matches!(self.state, RowState::Running { lease: OVER, effects: false });
        is_over && !self.steps.is_empty() && self.done_steps().count() == self.steps.len()
    }

    pub(super) fn plain_steps(&self) -> Vec<Step> {
        self.steps.iter().map(|(_, step)| step.clone()).collect()
    }

    /// Without the steps that have only begun: what is left when an attempt is forgotten.
    pub(super) fn done_steps(&self) -> impl Iterator<Item = &(u64, Step)> {
        self.steps.iter().filter(|(_, step)| matches!(step.state, StepState::Done(_)))
    }

    /// What a finished step gave.
    pub(super) fn result_of(&self, name: &str) -> Option<Arc<[u8]>> {
        self.steps.iter().find_map(|(_, step)| match &step.state {
            StepState::Done(result) if *step.name == *name => Some(Arc::clone(result)),
            _ => None,
        })
    }

    /// The record as callers see it.
    pub(super) fn into_record(self, key: RecordKey, now: Micros) -> Record {
        Record {
            key,
            owner: self.owner,
            attempt: self.attempt,
            fence: self.fence,
            fingerprint: self.fingerprint,
            state: match self.state {
                RowState::Running { lease, effects } => {
                    State::Running { lease_left: until(lease, now), effects_begun: effects }
                }
                RowState::Settled(settled) => State::Settled(settled),
            },
            steps: self.steps.into_iter().map(|(_, step)| step).collect(),
            created_at: UNIX_EPOCH + until(self.created, 0),
            expires_in: until(self.expires, now),
        }
    }
}
