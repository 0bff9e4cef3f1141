//! Granting the right to run, or showing what stands in the way.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};

use super::fault::{refused, unavailable};
use super::item::{Item, Row, RowState, VERSION, fingerprint, number, owner, text};
use super::names::Attribute;
use super::table::{TRIES, Table, Written, expiry, seen};
use super::time::{Micros, micros, ttl};
use crate::store::{Grant, OwnerToken, Reserve, Reserved, StoreResult};

/// What a request makes of the record that it finds.
enum Verdict {
    /// It stands in the way, and stays as it is.
    Held,
    /// It has expired: a new one takes its place.
    Replace,
    /// It is this attempt's own already.
    Again,
    /// The attempt before is given up, and this one follows it.
    TakeOver,
    /// There have been enough attempts.
    Exhausted,
}

fn judge(request: &Reserve<'_>, row: &Row, now: Micros) -> Verdict {
    if row.is_expired(now) {
        return Verdict::Replace;
    }
    let RowState::Running { lease, effects } = row.state else { return Verdict::Held };
    if row.owner == request.owner {
        Verdict::Again
    } else if lease > now
        || row.fingerprint != request.fingerprint
        || !request.take_over.allows(effects, &row.plain_steps())
    {
        Verdict::Held
    } else if row.attempt >= request.max_attempts {
        Verdict::Exhausted
    } else {
        Verdict::TakeOver
    }
}

/// The grant of a new record.
fn new(fence: u64) -> Reserved {
    Reserved::Granted(Grant { attempt: 1, fence, steps: Vec::new() })
}

fn granted(row: &Row) -> Reserved {
    Reserved::Granted(Grant { attempt: row.attempt, fence: row.fence, steps: row.plain_steps() })
}

impl Table {
    /// One request reserves what is absent; refused, it shows what is there, and that answers every duplicate. A second
    /// one follows only where the record that was seen is granted or ended: it has expired, is this token's own, or its
    /// lease is over. Its condition is that nothing has changed.
    pub(super) async fn reserve(&self, request: &Reserve<'_>) -> StoreResult<Reserved> {
        // When the last request was put together that would have given this token its lease.
        let mut asked = 0;
        let mut found = None;
        for _ in 0..TRIES {
            let written = match found.take() {
                None => {
                    asked = self.now();
                    match self.reserve_new(request, asked).await? {
                        Ok(granted) => return Ok(granted),
                        Err(refused) => refused,
                    }
                }
                Some(item) => {
                    let row = self.decode(&item)?;
                    let (before, now) = (asked, self.now());
                    asked = now;
                    match judge(request, &row, now) {
                        Verdict::Held => {
                            return Ok(Reserved::Held(row.into_record(request.key.clone(), now)));
                        }
                        // The SDK had repeated this very request, and its first try had come through.
                        Verdict::Again if is_that_of(&row, self.ends(request.lease, before)) => {
                            return Ok(granted(&row));
                        }
                        Verdict::Again => {
                            self.grant(request, &row, (row.attempt.max(1), row.fence), now).await?
                        }
                        Verdict::TakeOver => {
                            let next = (row.attempt.saturating_add(1), next_fence(row.fence, now));
                            self.grant(request, &row, next, now).await?
                        }
                        Verdict::Replace => match self.replace(request, &row, now).await? {
                            Ok(granted) => return Ok(granted),
                            Err(refused) => refused,
                        },
                        Verdict::Exhausted => match self.exhaust(request, &row, now).await? {
                            Ok(held) => return Ok(held),
                            Err(refused) => refused,
                        },
                    }
                }
            };
            match written {
                Written::Done(item) => return Ok(granted(&self.decode(&item)?)),
                Written::Refused(item) => found = item,
            }
        }
        Err(unavailable("the record changed all the time"))
    }

    async fn reserve_new(
        &self,
        request: &Reserve<'_>,
        now: Micros,
    ) -> StoreResult<Result<Reserved, Written>> {
        let fresh = self.fresh(request, now, now);
        match self.put(fresh, &self.statements.absent, Vec::new()).await? {
            Written::Done(_) => Ok(Ok(new(now))),
            // The condition holds where there is no item.
            Written::Refused(None) => Err(refused(
                "the server refused a condition without saying what is there: it does not know \
                 ReturnValuesOnConditionCheckFailure",
            )),
            written @ Written::Refused(_) => Ok(Err(written)),
        }
    }

    /// Grants the record that was seen, under this attempt and fence.
    async fn grant(
        &self,
        request: &Reserve<'_>,
        row: &Row,
        (attempt, fence): (u32, u64),
        now: Micros,
    ) -> StoreResult<Written> {
        let mut values = self.lease(request.lease, now);
        values.extend(seen(row));
        values.extend([
            (":owner", owner(request.owner)),
            (":attempt", number(attempt)),
            (":next_fence", number(fence)),
        ]);
        self.update(request.key, &self.statements.grant, values, ReturnValue::AllNew).await
    }

    /// Writes a record of a new generation over the expired one that was seen.
    async fn replace(
        &self,
        request: &Reserve<'_>,
        old: &Row,
        now: Micros,
    ) -> StoreResult<Result<Reserved, Written>> {
        let fence = next_fence(old.fence, now);
        let fresh = self.fresh(request, fence, now);
        Ok(match self.put(fresh, &self.statements.replace, seen(old)).await? {
            Written::Done(_) => Ok(new(fence)),
            refused @ Written::Refused(_) => Err(refused),
        })
    }

    /// The item of a new record.
    fn fresh(&self, request: &Reserve<'_>, fence: u64, now: Micros) -> Item {
        let (lease, expires) = self.ends(request.lease, now);
        let mut item = self.key(request.key);
        let attributes = [
            (Attribute::Version, number(VERSION)),
            (Attribute::Operation, text(request.key.operation().as_str())),
            (Attribute::State, text("running")),
            (Attribute::Owner, owner(request.owner)),
            (Attribute::Fingerprint, fingerprint(&request.fingerprint)),
            (Attribute::Attempt, number(1_u64)),
            (Attribute::Fence, number(fence)),
            (Attribute::Lease, number(lease)),
            (Attribute::Grace, number(micros(request.lease.unknown_ttl))),
            (Attribute::Expires, number(expires)),
            (Attribute::Ttl, number(ttl(expires))),
            (Attribute::Created, number(now)),
            (Attribute::Effects, AttributeValue::Bool(false)),
            (Attribute::Steps, AttributeValue::M(HashMap::new())),
            (Attribute::Places, AttributeValue::M(HashMap::new())),
            (Attribute::Revision, number(1_u64)),
        ];
        item.extend(attributes.map(|(attribute, value)| (self.names.of(attribute).to_owned(), value)));
        item
    }

    /// Settles the record that was seen as unknown, under nobody's token.
    async fn exhaust(
        &self,
        request: &Reserve<'_>,
        row: &Row,
        now: Micros,
    ) -> StoreResult<Result<Reserved, Written>> {
        let mut values = expiry(self.kept_until(request.lease.unknown_ttl, now));
        values.extend(seen(row));
        values.extend([(":owner", owner(OwnerToken::NOBODY)), (":state", text("unknown"))]);
        Ok(match self.update(request.key, &self.statements.exhaust, values, ReturnValue::AllNew).await? {
            Written::Done(item) => {
                let row = self.decode(&item)?;
                Ok(Reserved::Held(row.into_record(request.key.clone(), now)))
            }
            refused @ Written::Refused(_) => Err(refused),
        })
    }
}

/// Whether the record has exactly this lease, and expires exactly then.
fn is_that_of(row: &Row, (until, expires): (Micros, Micros)) -> bool {
    let has_lease = matches!(row.state, RowState::Running { lease, .. } if lease == until);
    row.attempt > 0 && has_lease && row.expires == expires
}

fn next_fence(last: u64, now: Micros) -> u64 {
    last.saturating_add(1).max(now)
}
