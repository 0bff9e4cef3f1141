//! What is wrong with the table, in words.

use std::time::Duration;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use aws_sdk_dynamodb::types::{
    MultiRegionConsistency, ReturnValuesOnConditionCheckFailure, ScalarAttributeType, TableDescription,
    TimeToLiveStatus,
};

use super::fault::{code, fault};
use super::names::Attribute;
use super::schema::is_active;
use super::table::Table;
use super::time::micros;
use crate::doctor::Finding;
use crate::key::RecordKey;
use crate::store::StoreResult;

/// The `Date` of an answer has whole seconds, and the answer takes its time.
const IMPRECISE: Duration = Duration::from_secs(2);

impl Table {
    pub(super) async fn examine(&self) -> StoreResult<Vec<Finding>> {
        let mut findings = Vec::new();
        match self.client.describe_table().table_name(&self.name).send().await {
            Ok(output) => {
                let table = output.table.unwrap_or_else(|| TableDescription::builder().build());
                self.examine_table(&table, &mut findings);
                self.examine_ttl(&mut findings).await?;
            }
            Err(error) if code(&error) == Some("ResourceNotFoundException") => {
                return Ok(vec![Finding::breaks(
                    format!("the table `{}` does not exist", self.name),
                    "create it, let the store do it (`create_table`), or put the name or the region right",
                )]);
            }
            Err(error) if is_denied(&error) => findings.push(Finding::weakens(
                "the credentials may not describe the table, so its key, its time to live and its replicas were not \
                 looked at",
                "allow dynamodb:DescribeTable and dynamodb:DescribeTimeToLive, at least once",
            )),
            Err(error) => return Err(fault(&self.name, &error)),
        }
        // A table with another key, or that is not ready, refuses everything.
        if findings.iter().all(|finding| finding.severity != crate::doctor::Severity::Breaks) {
            self.examine_rights(&mut findings).await?;
        }
        Ok(findings)
    }

    fn examine_table(&self, table: &TableDescription, findings: &mut Vec<Finding>) {
        if !is_active(table) {
            let status = table.table_status().map_or("unknown", |status| status.as_str());
            findings.push(Finding::breaks(
                format!("the table `{}` has the status {status}", self.name),
                "wait until it is active, or restore it",
            ));
        }
        let has = |(name, kind): &(&str, aws_sdk_dynamodb::types::KeyType)| {
            let is_key =
                table.key_schema().iter().any(|key| key.attribute_name() == *name && key.key_type() == kind);
            let is_text = table.attribute_definitions().iter().any(|attribute| {
                attribute.attribute_name() == *name && *attribute.attribute_type() == ScalarAttributeType::S
            });
            is_key && is_text
        };
        let wanted = self.key_names();
        if wanted.len() != table.key_schema().len() || !wanted.iter().all(has) {
            let names = |parts: Vec<(&str, &str)>| {
                parts
                    .into_iter()
                    .map(|(name, kind)| format!("`{name}` ({kind})"))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let there = table.key_schema().iter().map(|key| (key.attribute_name(), key.key_type().as_str()));
            let needed = wanted.iter().map(|(name, kind)| (*name, kind.as_str()));
            findings.push(Finding::breaks(
                format!(
                    "the primary key of the table `{}` is {}, and the store needs strings called {}",
                    self.name,
                    names(there.collect()),
                    names(needed.collect())
                ),
                "name its attributes (`attribute`, `sort_key`), or use a table of its own",
            ));
        }
        let replicated = !table.replicas().is_empty();
        let strong = table.multi_region_consistency() == Some(&MultiRegionConsistency::Strong);
        if replicated && !strong && !self.single_region_writes {
            findings.push(Finding::breaks(
                format!(
                    "the table `{}` is a global table that replicates eventually: each region judges reservations by \
                     itself, and two of them may both run",
                    self.name
                ),
                "write records in one region only and say so (`single_region_writes`), make the table strongly \
                 consistent (`MultiRegionConsistency: STRONG`), or use a table without replicas",
            ));
        }
    }

    async fn examine_ttl(&self, findings: &mut Vec<Finding>) -> StoreResult<()> {
        let name = self.names.of(Attribute::Ttl);
        let there = match self.client.describe_time_to_live().table_name(&self.name).send().await {
            Ok(output) => output.time_to_live_description,
            Err(error) if is_denied(&error) => {
                findings.push(Finding::weakens(
                    "the credentials may not ask for the table's time to live",
                    "allow dynamodb:DescribeTimeToLive, at least once",
                ));
                return Ok(());
            }
            Err(error) => return Err(fault(&self.name, &error)),
        };
        let on = |status: &TimeToLiveStatus| {
            matches!(status, TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)
        };
        match there {
            Some(there) if there.time_to_live_status().is_some_and(on) => {
                let other = there.attribute_name().unwrap_or_default();
                if other != name {
                    findings.push(Finding::weakens(
                        format!(
                            "the time to live of the table `{}` goes by the attribute `{other}`, and the store writes \
                             `{name}`: expired records stay and cost storage",
                            self.name
                        ),
                        format!("call the attribute `{other}` (`attribute(Attribute::Ttl, …)`), or purge"),
                    ));
                }
            }
            _ => findings.push(Finding::weakens(
                format!(
                    "the table `{}` has no time to live: expired records stay and cost storage",
                    self.name
                ),
                format!("enable it on the attribute `{name}`, or purge"),
            )),
        }
        Ok(())
    }

    /// Tries every request on a record that nobody has, on a condition that never holds; and compares the clocks by the
    /// date of an answer.
    async fn examine_rights(&self, findings: &mut Vec<Finding>) -> StoreResult<()> {
        let key = RecordKey::new("", format!("\0{}", crate::store::OwnerToken::random()));
        let statements = &self.statements;
        let (never, on_failure) = (&statements.never, ReturnValuesOnConditionCheckFailure::AllOld);
        let mut denied = Vec::new();

        let before = self.now();
        let update = self
            .client
            .update_item()
            .table_name(&self.name)
            .set_key(Some(self.key(&key)))
            .condition_expression(&statements.never_update.condition)
            .set_update_expression(statements.never_update.update.clone())
            .set_expression_attribute_names(Some(statements.never_update.names()))
            .return_values_on_condition_check_failure(on_failure.clone())
            .send()
            .await;
        let after = self.now();
        if let Err(SdkError::ServiceError(answer)) = &update {
            let date = answer.raw().headers().get("date");
            let middle = before + after.saturating_sub(before) / 2;
            findings.extend(date.and_then(|date| self.examine_clock(date, middle)));
        }
        self.tried("UpdateItem", update, &mut denied)?;
        let delete = self.deletion(self.key(&key), never, Vec::new()).send().await;
        self.tried("DeleteItem", delete, &mut denied)?;
        let put = self.client.put_item().table_name(&self.name).set_item(Some(self.key(&key)));
        let put = put
            .condition_expression(&never.condition)
            .set_expression_attribute_names(Some(never.names()))
            .send()
            .await;
        self.tried("PutItem", put, &mut denied)?;
        let get = self.client.get_item().table_name(&self.name).set_key(Some(self.key(&key)));
        self.tried("GetItem", get.send().await, &mut denied)?;
        if !denied.is_empty() {
            findings.push(Finding::breaks(
                format!("the credentials may not {} in the table `{}`", denied.join(", "), self.name),
                "allow dynamodb:GetItem, PutItem, UpdateItem and DeleteItem on it",
            ));
        }
        let mut denied = Vec::new();
        let scan = self.client.scan().table_name(&self.name).limit(1).send().await;
        self.tried("Scan", scan, &mut denied)?;
        if !denied.is_empty() {
            findings.push(Finding::weakens(
                format!(
                    "the credentials may not scan the table `{}`: `list` and `purge` do not work",
                    self.name
                ),
                "allow dynamodb:Scan to whoever looks after the records",
            ));
        }
        Ok(())
    }

    fn examine_clock(&self, date: &str, now: u64) -> Option<Finding> {
        let date = DateTime::from_str(date, DateTimeFormat::HttpDate).ok()?;
        let server = u64::try_from(date.as_nanos() / 1000).ok()?;
        let (apart, word) = match now.checked_sub(server) {
            Some(ahead) => (ahead, "ahead of"),
            None => (server - now, "behind"),
        };
        (apart > micros(self.clock_skew + IMPRECISE)).then(|| {
            Finding::breaks(
                format!(
                    "this machine's clock is about {} s {word} the server's, and the store allows for {} s: a living \
                     attempt may be taken for a dead one",
                    apart / 1_000_000,
                    self.clock_skew.as_secs_f64()
                ),
                "set the clocks by a time service, or allow for more (`clock_skew`)",
            )
        })
    }

    /// Notes the action if it is denied; a condition that did not hold is what was wanted.
    fn tried<T, E>(
        &self,
        action: &'static str,
        sent: Result<T, SdkError<E, HttpResponse>>,
        denied: &mut Vec<&'static str>,
    ) -> StoreResult<()>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        match sent {
            Ok(_) => {}
            Err(error) if code(&error) == Some("ConditionalCheckFailedException") => {}
            Err(error) if is_denied(&error) => denied.push(action),
            Err(error) => return Err(fault(&self.name, &error)),
        }
        Ok(())
    }
}

fn is_denied<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    code(error) == Some("AccessDeniedException")
}
