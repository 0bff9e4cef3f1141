//! The table, and one request to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::delete_item::builders::DeleteItemFluentBuilder;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};

use super::fault::fault;
use super::item::{Item, Row, number, text};
use super::names::{Attribute, Names};
use super::statement::{Statement, Statements, Values};
use super::time::{Micros, OVER, micros, ttl};
use crate::key::RecordKey;
use crate::store::{Lease, StoreResult};
use crate::stores::Clock;

/// How often a record may change between a look at it and the write that follows. Each time somebody else has got on.
pub(super) const TRIES: usize = 16;

/// What all handles share.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) client: Client,
    pub(super) name: String,
    pub(super) names: Names,
    pub(super) statements: Statements,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) clock_skew: Duration,
    pub(super) single_region_writes: bool,
    /// Where the last purge stopped.
    pub(super) purged: Mutex<Option<Item>>,
}

/// What a conditional write came to.
#[derive(Debug)]
pub(super) enum Written {
    /// Done. The item as it is now, if that was asked for.
    Done(Item),
    /// The condition did not hold, and nothing was changed. The item as it is, unless there is none.
    Refused(Option<Item>),
}

impl Table {
    pub(super) fn now(&self) -> Micros {
        micros(self.clock.now())
    }

    /// When a lease ends that begins now, and when the record expires if nothing more is heard. Both are late by as much
    /// as the clocks may disagree, so that nobody whose clock is fast finds a lease over that is not. A lease of zero is
    /// ended on purpose, which holds by every clock.
    pub(super) fn ends(&self, lease: Lease, now: Micros) -> (Micros, Micros) {
        let grace = micros(lease.unknown_ttl);
        if lease.duration.is_zero() {
            return (OVER, now.saturating_add(grace));
        }
        let until = self.kept_until(lease.duration, now);
        (until, until.saturating_add(grace))
    }

    /// When something expires that is kept for `keep` from now on.
    pub(super) fn kept_until(&self, keep: Duration, now: Micros) -> Micros {
        now.saturating_add(micros(keep)).saturating_add(micros(self.clock_skew))
    }

    /// The values of a lease that begins now.
    pub(super) fn lease(&self, lease: Lease, now: Micros) -> Values {
        let (until, expires) = self.ends(lease, now);
        let mut values = expiry(expires);
        values.extend([
            (":now", number(now)),
            (":lease", number(until)),
            (":grace", number(micros(lease.unknown_ttl))),
        ]);
        values
    }

    pub(super) fn decode(&self, item: &Item) -> StoreResult<Row> {
        Row::decode(item, &self.names)
    }

    /// The record in a refused write's item, unless it has expired.
    pub(super) fn current(&self, item: Option<&Item>, now: Micros) -> StoreResult<Option<Row>> {
        let row = item.map(|item| self.decode(item)).transpose()?;
        Ok(row.filter(|row| !row.is_expired(now)))
    }

    /// The primary key of a record's item.
    pub(super) fn key(&self, key: &RecordKey) -> Item {
        let mut item = HashMap::with_capacity(2);
        item.insert(self.names.of(Attribute::Key).to_owned(), text(key.as_str()));
        if let Some((name, value)) = &self.names.sort {
            item.insert(name.clone(), text(value));
        }
        item
    }

    pub(super) async fn update(
        &self,
        key: &RecordKey,
        statement: &Statement,
        values: Values,
        answer: ReturnValue,
    ) -> StoreResult<Written> {
        self.update_step(key, statement, values, answer, None).await
    }

    /// As [`update`](Self::update); `step` is the name of the step that the statement speaks of.
    pub(super) async fn update_step(
        &self,
        key: &RecordKey,
        statement: &Statement,
        values: Values,
        answer: ReturnValue,
        step: Option<String>,
    ) -> StoreResult<Written> {
        let mut names = statement.names();
        names.extend(step.map(|step| ("#step".to_owned(), step)));
        let sent = self
            .client
            .update_item()
            .table_name(&self.name)
            .set_key(Some(self.key(key)))
            .condition_expression(&statement.condition)
            .set_update_expression(statement.update.clone())
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(statement.values(values))
            .return_values(answer)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match sent {
            Ok(output) => Ok(Written::Done(output.attributes.unwrap_or_default())),
            Err(SdkError::ServiceError(answer)) if answer.err().is_conditional_check_failed_exception() => {
                Ok(Written::Refused(match answer.into_err() {
                    UpdateItemError::ConditionalCheckFailedException(refused) => {
                        refused.item.filter(is_there)
                    }
                    _ => None,
                }))
            }
            Err(error) => Err(fault(&self.name, &error)),
        }
    }

    pub(super) async fn delete(
        &self,
        key: Item,
        statement: &Statement,
        values: Values,
    ) -> StoreResult<Written> {
        let sent = self.deletion(key, statement, values).send().await;
        match sent {
            Ok(_) => Ok(Written::Done(Item::new())),
            Err(SdkError::ServiceError(answer)) if answer.err().is_conditional_check_failed_exception() => {
                Ok(Written::Refused(match answer.into_err() {
                    DeleteItemError::ConditionalCheckFailedException(refused) => {
                        refused.item.filter(is_there)
                    }
                    _ => None,
                }))
            }
            Err(error) => Err(fault(&self.name, &error)),
        }
    }

    /// A deletion that has not been sent yet.
    pub(super) fn deletion(
        &self,
        key: Item,
        statement: &Statement,
        values: Values,
    ) -> DeleteItemFluentBuilder {
        self.client
            .delete_item()
            .table_name(&self.name)
            .set_key(Some(key))
            .condition_expression(&statement.condition)
            .set_expression_attribute_names(Some(statement.names()))
            .set_expression_attribute_values(statement.values(values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }

    pub(super) async fn put(
        &self,
        item: Item,
        statement: &Statement,
        values: Values,
    ) -> StoreResult<Written> {
        let sent = self
            .client
            .put_item()
            .table_name(&self.name)
            .set_item(Some(item))
            .condition_expression(&statement.condition)
            .set_expression_attribute_names(Some(statement.names()))
            .set_expression_attribute_values(statement.values(values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match sent {
            Ok(_) => Ok(Written::Done(Item::new())),
            Err(SdkError::ServiceError(answer)) if answer.err().is_conditional_check_failed_exception() => {
                Ok(Written::Refused(match answer.into_err() {
                    PutItemError::ConditionalCheckFailedException(refused) => refused.item.filter(is_there),
                    _ => None,
                }))
            }
            Err(error) => Err(fault(&self.name, &error)),
        }
    }

    pub(super) async fn get(&self, key: &RecordKey) -> StoreResult<Option<Item>> {
        let sent = self
            .client
            .get_item()
            .table_name(&self.name)
            .set_key(Some(self.key(key)))
            .consistent_read(true)
            .send()
            .await;
        sent.map(|output| output.item.filter(is_there)).map_err(|error| fault(&self.name, &error))
    }
}

/// Some servers say with an empty item that there is none.
fn is_there(item: &Item) -> bool {
    !item.is_empty()
}

/// The values of an expiry.
pub(super) fn expiry(expires: Micros) -> Values {
    vec![(":expires", number(expires)), (":ttl", number(ttl(expires)))]
}

/// The values by which a statement recognises what was seen.
pub(super) fn seen(row: &Row) -> Values {
    vec![
        (":seen", super::item::owner(row.owner)),
        (":fence", number(row.fence)),
        (":revision", number(row.revision)),
    ]
}
