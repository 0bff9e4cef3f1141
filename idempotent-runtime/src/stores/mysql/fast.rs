//! The shortest way for what nearly every call does: to reserve a key that is free or taken, to renew, to complete.
//!
//! A block pays for every variable that it declares, also for those that it does not need. So each of these is first tried
//! as one statement, or two, without any: it either does the whole operation, or changes nothing; then the block of
//! [`routine`](super::routine) decides, which is one round trip more.
//!
//! These statements commit by themselves, so they are for sessions in which statements do.

use std::sync::Arc;
use std::time::Duration;

use sqlx::mysql::MySqlArguments;

use super::fault::Fault;
use super::routine::{NOW, common};
use super::row::{Said, token};
use super::session::{ask, bind, tell};
use super::{MySqlStore, bind_settled};
use crate::key::RecordKey;
use crate::store::{Lease, OwnerToken, Record, Reserve, Reserved, Settled, State};
use crate::stores::sql::{Names, micros};

/// Now, but after the wait for a lock, if there was one. Local times are good enough for a difference; it is bounded, should
/// the clocks be put forward for the summer meanwhile. Where `SYSDATE` is the time of the statement, it is zero, and a lease
/// is shorter by the wait.
const LATER: &str = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) \
    + LEAST(GREATEST(TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)), 0), 60000000))";

/// What is only applied to a sound, running record of an owner.
const MINE: &str = "WHERE {key} = ? AND {owner} = ? AND {version} = 1 AND {state} = 'running' AND {lease_until} \
    IS NOT NULL AND {fence} >= 0 AND {expires_at} > __now";

/// The texts, made once for a store.
#[derive(Debug)]
pub(super) struct FastTexts {
    /// Shows the record that is there, or else adds one; no row if somebody else has added one at the same time. Only where
    /// blocks are prepared.
    pub(super) reserve: Option<Arc<str>>,
    /// One row is matched, or the block has to decide; so for the next.
    pub(super) renew: Arc<str>,
    pub(super) complete: Arc<str>,
}

impl FastTexts {
    pub(super) fn new(names: &Names, blocks: bool) -> Self {
        let render = |text: &str| -> Arc<str> {
            names.render(&common(&text.replace("__now", NOW).replace("{LATER}", LATER))).into()
        };
        let reserve = format!("BEGIN NOT ATOMIC\n{}END", common(include_str!("routines/reserve_fast.sql")));
        Self {
            reserve: blocks.then(|| render(&reserve)),
            renew: render(&format!(
                "UPDATE {{table}} SET {{lease_until}} = {{LATER}} + ?, {{expires_at}} = {{LATER}} + ?, \
                 {{effects_begun}} = {{effects_begun}} OR ? {MINE}"
            )),
            complete: render(&format!(
                "UPDATE {{table}} SET {{steps}} = IF(? = 'unknown', {{steps}}, NULL), {{state}} = ?, \
                 {{result_version}} = ?, {{result}} = ?, {{lease_until}} = NULL, {{expires_at}} = {{LATER}} + ? {MINE}"
            )),
        }
    }
}

impl MySqlStore {
    /// Reserves a key that is free, or shows the record that is in the way. `None`: this needs a closer look.
    pub(super) async fn reserve_fast(&self, request: &Reserve<'_>) -> Result<Option<Reserved>, Fault> {
        let familiar = self.familiar().await?;
        let Some(text) = familiar.fast.as_ref().and_then(|fast| fast.reserve.as_ref()) else {
            return Ok(None);
        };
        let key = request.key.as_str().as_bytes();
        let (lease, silence) = (micros(request.lease.duration), micros(request.lease.unknown_ttl));
        let mut arguments = MySqlArguments::default();
        bind(&mut arguments, key)?;
        bind(&mut arguments, key)?;
        bind(&mut arguments, request.key.operation().as_str().as_bytes())?;
        bind(&mut arguments, token(&request.owner))?;
        bind(&mut arguments, request.fingerprint.version())?;
        bind(&mut arguments, request.fingerprint.digest().as_slice())?;
        bind(&mut arguments, lease)?;
        bind(&mut arguments, lease.saturating_add(silence))?;
        let rows = ask(&self.0.pool, text, &arguments).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        Ok(match Said::decode(&rows, request.key)? {
            Said::Granted(grant) => Some(Reserved::Granted(grant)),
            Said::Record(record) if stands(&record, request) => Some(Reserved::Held(*record)),
            _ => None,
        })
    }

    /// Whether a sound, running record of the owner was found and renewed.
    pub(super) async fn extend_fast(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        lease: Lease,
        mark: bool,
    ) -> Result<bool, Fault> {
        let Some(fast) = &self.familiar().await?.fast else { return Ok(false) };
        let (lease, silence) = (micros(lease.duration), micros(lease.unknown_ttl));
        let mut arguments = MySqlArguments::default();
        bind(&mut arguments, lease)?;
        bind(&mut arguments, lease.saturating_add(silence))?;
        bind(&mut arguments, i64::from(mark))?;
        bind(&mut arguments, key.as_str().as_bytes())?;
        bind(&mut arguments, token(&owner))?;
        Ok(tell(&self.0.pool, &fast.renew, &arguments).await? == 1)
    }

    /// Whether a sound, running record of the owner was found and settled.
    pub(super) async fn complete_fast(
        &self,
        key: &RecordKey,
        owner: OwnerToken,
        settled: &Settled,
        keep: Duration,
    ) -> Result<bool, Fault> {
        let Some(fast) = &self.familiar().await?.fast else { return Ok(false) };
        let mut arguments = MySqlArguments::default();
        bind(&mut arguments, settled.name().as_str())?;
        bind_settled(&mut arguments, Some(settled))?;
        bind(&mut arguments, micros(keep))?;
        bind(&mut arguments, key.as_str().as_bytes())?;
        bind(&mut arguments, token(&owner))?;
        Ok(tell(&self.0.pool, &fast.complete, &arguments).await? == 1)
    }
}

/// Whether a record is in the way of a request for certain. One that is not, now or any more, is looked at again under its
/// lock.
fn stands(record: &Record, request: &Reserve<'_>) -> bool {
    if record.expires_in.is_zero() {
        return false;
    }
    let State::Running { lease_left, effects_begun } = record.state else { return true };
    record.owner != request.owner
        && (!lease_left.is_zero()
            || record.fingerprint != request.fingerprint
            || !request.take_over.allows(effects_begun, &record.steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_filled() {
        let texts = FastTexts::new(&Names::new('`'), true);
        for text in [texts.reserve.as_ref().unwrap(), &texts.renew, &texts.complete] {
            assert!(!text.contains(['{', '}']) && !text.contains("__"), "{text}");
        }
        assert!(FastTexts::new(&Names::new('`'), false).reserve.is_none());
        for text in [&texts.renew, &texts.complete] {
            assert!(!text.contains("RETURNING"), "MySQL takes it too: {text}");
        }
    }
}
