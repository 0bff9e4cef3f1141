//! What is asked about records, and by those who look after them.

use std::sync::PoisonError;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use tokio::task::JoinSet;

use super::attempt::settling;
use super::fault::{fault, refused, unavailable};
use super::item::{Item, Row, number, owner, text};
use super::names::Attribute;
use super::statement::Statement;
use super::table::{TRIES, Table, Written, expiry};
use super::time::Micros;
use crate::key::RecordKey;
use crate::store::{Compared, ListQuery, OwnerToken, Page, Record, Resolution, StoreErrorKind, StoreResult};

/// So many requests, of up to 1 MB of records each, are made for one page of a list, so that one that finds little ends
/// in time; the page is then a short one.
const SCANS: usize = 8;
/// So many records are deleted at the same time.
const DELETED_AT_ONCE: usize = 16;

impl Table {
    /// [`load`](crate::store::Store::load).
    pub(super) async fn load(&self, key: &RecordKey) -> StoreResult<Option<Record>> {
        let item = self.get(key).await?;
        let now = self.now();
        let row = self.current(item.as_ref(), now)?;
        Ok(row.map(|row| row.into_record(key.clone(), now)))
    }

    /// [`resolve`](crate::store::Store::resolve).
    pub(super) async fn resolve(
        &self,
        key: &RecordKey,
        expected: OwnerToken,
        replacement: OwnerToken,
        resolution: &Resolution,
    ) -> StoreResult<Compared> {
        let now = self.now();
        let mut values = vec![(":now", number(now)), (":seen", owner(expected))];
        let written = match resolution {
            Resolution::Done { settled, keep } => {
                let (statement, settled) = settling(&self.statements.resolve, settled);
                values.extend(settled);
                values.extend(expiry(self.kept_until(*keep, now)));
                values.push((":owner", owner(replacement)));
                self.update(key, statement, values, ReturnValue::None).await?
            }
            Resolution::NotDone => self.delete(self.key(key), &self.statements.undo, values).await?,
        };
        let Written::Refused(mut item) = written else { return Ok(Compared::Changed) };
        for _ in 0..TRIES {
            let now = self.now();
            let row = match self.current(item.as_ref(), now)? {
                Some(row) if row.owner == replacement => return Ok(Compared::Changed),
                Some(row) if row.owner == expected && row.waits_for_somebody(now) => row,
                row => return Ok(differs(key, row, now)),
            };
            // Refused for its steps only.
            if *resolution != Resolution::NotDone {
                return Ok(differs(key, Some(row), now));
            }
            match self.reopen(key, &row, (replacement, 0), now).await? {
                Written::Done(_) => return Ok(Compared::Changed),
                Written::Refused(changed) => item = changed,
            }
        }
        Err(unavailable("the record changed all the time"))
    }

    /// [`forget`](crate::store::Store::forget).
    pub(super) async fn forget(&self, key: &RecordKey, expected: OwnerToken) -> StoreResult<Compared> {
        let now = self.now();
        let values = vec![(":now", number(now)), (":seen", owner(expected))];
        match self.delete(self.key(key), &self.statements.forget, values).await? {
            Written::Done(_) => Ok(Compared::Changed),
            Written::Refused(item) => Ok(differs(key, self.current(item.as_ref(), now)?, now)),
        }
    }

    /// [`list`](crate::store::Store::list), in no order. The cursor is the primary key at which the page ended.
    pub(super) async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        let mut start = query.after.as_deref().map(|after| self.parse_cursor(after)).transpose()?;
        let now = self.now();
        let (mut page, mut unreadable) = (Page::default(), 0_u32);
        let scan = self.listing(query, now);
        for _ in 0..SCANS {
            let output = self.scan(&scan, true, start.take()).await?;
            let mut items = output.items.into_iter().flatten().peekable();
            while let Some(item) = items.next() {
                match self.listed(&item, now) {
                    Ok(Some(record)) if query.matches(&record) => page.records.push(record),
                    Ok(_) => continue,
                    // One of them must not hide the others from the one who came to look.
                    Err(error) if error.kind() == StoreErrorKind::Unreadable => {
                        unreadable += 1;
                        continue;
                    }
                    Err(error) => return Err(error),
                }
                if page.records.len() >= query.page_size() && items.peek().is_some() {
                    page.next = self.cursor(&item);
                    break;
                }
            }
            start = output.last_evaluated_key;
            if page.next.is_some() || start.is_none() || page.records.len() >= query.page_size() {
                break;
            }
        }
        if unreadable > 0 {
            tracing::warn!(target: "idempotent", unreadable, "the DynamoDB store left records out of a list that it cannot read");
        }
        page.next = page.next.or_else(|| start.as_ref().and_then(|key| self.cursor(key)));
        Ok(page)
    }

    fn listed(&self, item: &Item, now: Micros) -> StoreResult<Option<Record>> {
        let key = Row::key(item, &self.names)?;
        Ok(self.current(Some(item), now)?.map(|row| row.into_record(key, now)))
    }

    /// What is worth being sent for a list. Also what this version cannot read, so that it is counted.
    fn listing(&self, query: &ListQuery, now: Micros) -> Scan {
        let mut filter = String::from("attribute_exists(#version) AND #expires > :now");
        let mut values = vec![(":now", number(now))];
        if let Some(operation) = &query.operation {
            filter.push_str(" AND #operation = :operation");
            values.push((":operation", text(operation.as_str())));
        }
        if let Some(state) = query.state {
            filter.push_str(" AND #state = :state");
            values.push((":state", text(state.as_str())));
        }
        if query.stuck {
            filter.push_str(" AND (#state = :unknown OR (#state = :running AND #lease <= :now))");
        }
        Scan { statement: Statement::new(&self.names, filter, None), values, projection: None }
    }

    async fn scan(&self, scan: &Scan, consistent: bool, start: Option<Item>) -> StoreResult<Scanned> {
        let sent = self
            .client
            .scan()
            .table_name(&self.name)
            .consistent_read(consistent)
            .filter_expression(&scan.statement.condition)
            .set_projection_expression(scan.projection.clone())
            .set_expression_attribute_names(Some(scan.statement.names()))
            .set_expression_attribute_values(scan.statement.values(scan.values.clone()))
            .set_exclusive_start_key(start)
            .send()
            .await;
        let output = sent.map_err(|error| fault(&self.name, &error))?;
        Ok(Scanned {
            items: output.items,
            last_evaluated_key: output.last_evaluated_key.filter(|key| !key.is_empty()),
        })
    }

    /// The primary key of an item, as a cursor: the length of the key, the key, and what the sort key is.
    fn cursor(&self, item: &Item) -> Option<String> {
        let of = |name: &str| item.get(name).and_then(|value| value.as_s().ok());
        let key = of(self.names.of(Attribute::Key))?;
        let sort = self.names.sort.as_ref().and_then(|(name, _)| of(name));
        Some(format!("{}:{key}{}", key.len(), sort.map_or("", String::as_str)))
    }

    fn parse_cursor(&self, cursor: &str) -> StoreResult<Item> {
        let parse = || {
            let (length, rest) = cursor.split_once(':')?;
            let (key, sort) = rest.split_at_checked(length.parse().ok()?)?;
            let mut item = Item::new();
            item.insert(self.names.of(Attribute::Key).to_owned(), text(key));
            match &self.names.sort {
                Some((name, _)) => {
                    item.insert(name.clone(), text(sort));
                }
                None if !sort.is_empty() => return None,
                None => {}
            }
            Some(item)
        };
        parse().ok_or_else(|| refused("the `after` of a list is not one that this store has given out"))
    }

    /// The primary key alone of an item.
    fn primary_key(&self, mut item: Item) -> Item {
        let sort = self.names.sort.as_ref().map(|(name, _)| name.as_str());
        item.retain(|name, _| name == self.names.of(Attribute::Key) || Some(name.as_str()) == sort);
        item
    }

    /// Deletes what has expired and DynamoDB has not deleted yet. Goes on where the last one stopped, and once around.
    pub(super) async fn purge(&self, limit: usize) -> StoreResult<usize> {
        if limit == 0 {
            return Ok(0);
        }
        let now = self.now();
        let filter = &self.statements.purge;
        let keys = if self.names.sort.is_some() { "#key, #sort" } else { "#key" };
        let statement = Statement::new(&self.names, filter.condition.clone(), Some(keys.to_owned()));
        let scan = Scan { statement, values: vec![(":now", number(now))], projection: Some(keys.to_owned()) };

        let first = self.purged.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut wrapped = first.is_none();
        let mut start = first;
        let mut purged = 0;
        loop {
            let output = self.scan(&scan, false, start.take()).await?;
            let mut found: Vec<Item> = output.items.into_iter().flatten().collect();
            let is_more = found.len() > limit - purged;
            found.truncate(limit - purged);
            let last = found.last().cloned();
            purged += self.delete_expired(found, now).await?;
            if is_more || purged >= limit {
                // From the last one that was looked at.
                let stopped = last.filter(|_| is_more).or(output.last_evaluated_key);
                *self.purged.lock().unwrap_or_else(PoisonError::into_inner) =
                    stopped.map(|item| self.primary_key(item));
                return Ok(purged);
            }
            start = output.last_evaluated_key;
            if start.is_none() {
                if wrapped {
                    return Ok(purged);
                }
                wrapped = true;
            }
        }
    }

    /// Deletes these records, as far as they are still expired.
    async fn delete_expired(&self, items: Vec<Item>, now: Micros) -> StoreResult<usize> {
        let mut purged = 0;
        let (mut items, mut deleting) = (items.into_iter(), JoinSet::new());
        loop {
            while deleting.len() < DELETED_AT_ONCE
                && let Some(item) = items.next()
            {
                let request = self.deletion(
                    self.primary_key(item),
                    &self.statements.purge,
                    vec![(":now", number(now))],
                );
                deleting.spawn(request.send());
            }
            match deleting.join_next().await {
                None => return Ok(purged),
                Some(Ok(Ok(_))) => purged += 1,
                // Somebody has deleted it, or begun it anew.
                Some(Ok(Err(error))) if is_refused(&error) => {}
                Some(Ok(Err(error))) => return Err(fault(&self.name, &error)),
                Some(Err(error)) => return Err(unavailable(error.to_string())),
            }
        }
    }
}

fn is_refused(error: &SdkError<DeleteItemError, HttpResponse>) -> bool {
    error.as_service_error().is_some_and(DeleteItemError::is_conditional_check_failed_exception)
}

fn differs(key: &RecordKey, row: Option<Row>, now: Micros) -> Compared {
    Compared::Differs(row.map(|row| Box::new(row.into_record(key.clone(), now))))
}

/// A scan of the whole table.
struct Scan {
    statement: Statement,
    values: Vec<(&'static str, AttributeValue)>,
    projection: Option<String>,
}

struct Scanned {
    items: Option<Vec<Item>>,
    last_evaluated_key: Option<Item>,
}
