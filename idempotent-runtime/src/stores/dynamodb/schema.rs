//! Making the table.

use std::time::Duration;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TableDescription,
    TableStatus, TimeToLiveSpecification,
};
use tokio::time::{Instant, sleep};

use super::fault::{code, fault, refused, unavailable};
use super::names::Attribute;
use super::table::Table;
use crate::store::StoreResult;

/// How long a table may take to become active.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(250);

impl Table {
    /// The attributes of the primary key.
    pub(super) fn key_names(&self) -> Vec<(&str, KeyType)> {
        let sort = self.names.sort.as_ref().map(|(name, _)| (name.as_str(), KeyType::Range));
        [(self.names.of(Attribute::Key), KeyType::Hash)].into_iter().chain(sort).collect()
    }

    /// The table as the service describes it. `None`: there is none.
    pub(super) async fn describe(&self) -> StoreResult<Option<TableDescription>> {
        match self.client.describe_table().table_name(&self.name).send().await {
            Ok(output) => Ok(output.table),
            Err(error) if code(&error) == Some("ResourceNotFoundException") => Ok(None),
            Err(error) => Err(fault(&self.name, &error)),
        }
    }

    /// Makes the table if there is none, and waits until it can be used.
    pub(super) async fn create(&self) -> StoreResult<()> {
        let made = match self.describe().await? {
            Some(table) if is_active(&table) => return Ok(()),
            Some(_) => false,
            None => self.create_table().await?,
        };
        let deadline = Instant::now() + PATIENCE;
        while !self.describe().await?.as_ref().is_some_and(is_active) {
            if Instant::now() >= deadline {
                return Err(unavailable(format!("the table `{}` has not become active yet", self.name)));
            }
            sleep(PAUSE).await;
        }
        if made {
            self.enable_ttl().await;
        }
        Ok(())
    }

    /// Whether it was this call that made it.
    async fn create_table(&self) -> StoreResult<bool> {
        let mut request =
            self.client.create_table().table_name(&self.name).billing_mode(BillingMode::PayPerRequest);
        for (name, kind) in self.key_names() {
            let definition = AttributeDefinition::builder().attribute_name(name);
            let definition = definition.attribute_type(ScalarAttributeType::S).build();
            let element = KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
            request = request
                .attribute_definitions(definition.map_err(|error| refused(error.to_string()))?)
                .key_schema(element.map_err(|error| refused(error.to_string()))?);
        }
        match request.send().await {
            Ok(_) => Ok(true),
            // Another process was first.
            Err(error) if code(&error) == Some("ResourceInUseException") => Ok(false),
            Err(error) => Err(fault(&self.name, &error)),
        }
    }

    /// Lets DynamoDB delete what has expired. Nothing rests on it, so that it cannot is not a failure.
    async fn enable_ttl(&self) {
        let specification =
            TimeToLiveSpecification::builder().attribute_name(self.names.of(Attribute::Ttl)).enabled(true);
        let enabled = async {
            let specification = specification.build().map_err(|error| refused(error.to_string()))?;
            let request = self.client.update_time_to_live().table_name(&self.name);
            let sent = request.time_to_live_specification(specification).send().await;
            sent.map_err(|error| fault(&self.name, &error))
        };
        if let Err(error) = enabled.await {
            let reason = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            tracing::warn!(
                target: "idempotent",
                table = self.name,
                reason,
                "expired records of a new table will stay: no time to live"
            );
        }
    }
}

pub(super) fn is_active(table: &TableDescription) -> bool {
    // A table whose settings are changed works meanwhile.
    matches!(table.table_status(), Some(TableStatus::Active | TableStatus::Updating))
}
