//! What is wrong with a table, in words.

use std::time::Duration;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TimeToLiveSpecification,
};
use idempotent_runtime::store::{Store, StoreErrorKind};
use idempotent_runtime::stores::{DynamoDbAttribute, DynamoDbStore, DynamoDbStoreBuilder, SystemClock};
use idempotent_runtime::testing::ManualClock;
use idempotent_runtime::{Finding, Severity};
use tests::servers::dynamodb::client;

use crate::fakes::{error, service};
use crate::support::*;

async fn findings(builder: DynamoDbStoreBuilder) -> Vec<Finding> {
    builder.create_table(false).open().await.unwrap().examine().await.unwrap()
}

/// The only finding, which has these words in it.
fn only(findings: &[Finding], severity: Severity, expected: &[&str]) {
    let [finding] = findings else { panic!("one was expected: {findings:?}") };
    assert_eq!(finding.severity, severity);
    for word in expected {
        assert!(finding.to_string().contains(word), "{word} is not in: {finding}");
    }
}

#[tokio::test]
async fn nothing_is_wrong_with_a_table_of_its_own() {
    let store = DynamoDbStore::builder(direct()).table(table()).open().await.unwrap();
    assert_eq!(store.examine().await.unwrap(), vec![]);
    // Nothing was changed: nothing is there.
    let scan = direct().scan().table_name(store.table()).send().await.unwrap();
    assert_eq!(scan.count, 0);
    let shared = builder().attribute(DynamoDbAttribute::Key, "PK").sort_key("SK", "idempotency");
    assert_eq!(
        shared.clock_skew(Duration::from_secs(5)).open().await.unwrap().examine().await.unwrap(),
        vec![]
    );
}

#[tokio::test]
async fn a_missing_table() {
    let found = findings(DynamoDbStore::builder(direct()).table("nowhere")).await;
    only(&found, Severity::Breaks, &["`nowhere` does not exist"]);
}

async fn create(keys: &[(&str, ScalarAttributeType)]) -> String {
    let name = table();
    let mut request = direct().create_table().table_name(&name).billing_mode(BillingMode::PayPerRequest);
    for ((attribute, kind), role) in keys.iter().zip([KeyType::Hash, KeyType::Range]) {
        let element = KeySchemaElement::builder().attribute_name(*attribute).key_type(role);
        let definition =
            AttributeDefinition::builder().attribute_name(*attribute).attribute_type(kind.clone());
        request =
            request.key_schema(element.build().unwrap()).attribute_definitions(definition.build().unwrap());
    }
    request.send().await.unwrap();
    name
}

async fn with_ttl(table: &str, attribute: &str) {
    let ttl = TimeToLiveSpecification::builder().attribute_name(attribute).enabled(true).build().unwrap();
    let update = direct().update_time_to_live().table_name(table).time_to_live_specification(ttl);
    update.send().await.unwrap();
}

#[tokio::test]
async fn a_table_with_another_key() {
    use ScalarAttributeType::{N, S};
    let cases: [&[(&str, ScalarAttributeType)]; 3] =
        [&[("id", S)], &[("key", N)], &[("key", S), ("other", S)]];
    for keys in cases {
        let name = create(keys).await;
        with_ttl(&name, "ttl").await;
        let found = findings(DynamoDbStore::builder(direct()).table(name)).await;
        only(&found, Severity::Breaks, &["primary key", keys[0].0, "`key` (HASH)"]);
    }
}

#[tokio::test]
async fn a_table_without_or_with_another_time_to_live() {
    let name = create(&[("key", ScalarAttributeType::S)]).await;
    let builder = DynamoDbStore::builder(direct()).table(&name);
    only(&findings(builder.clone()).await, Severity::Weakens, &["no time to live", "`ttl`"]);
    with_ttl(&name, "expiry").await;
    only(&findings(builder.clone()).await, Severity::Weakens, &["`expiry`", "`ttl`"]);
    assert_eq!(findings(builder.attribute(DynamoDbAttribute::Ttl, "expiry")).await, vec![]);
}

#[tokio::test]
async fn a_clock_that_is_wrong() {
    let store = DynamoDbStore::builder(direct()).table(table()).open().await.unwrap();
    let builder = DynamoDbStore::builder(direct()).table(store.table());
    // Of the year's first second, which the server's is not.
    let found = findings(builder.clone().clock(ManualClock::default())).await;
    only(&found, Severity::Breaks, &["behind", "clock_skew"]);
    let ahead = ManualClock::default();
    ahead.advance(Duration::from_secs(100 * 365 * 24 * 3600));
    let found = findings(builder.clone().clock(ahead)).await;
    only(&found, Severity::Breaks, &["ahead of", "clock_skew"]);
    assert_eq!(findings(builder.clock(SystemClock::default())).await, vec![]);
}

/// What a service says of a table of ours.
fn described(more: &str) -> String {
    format!(
        r#"{{"Table":{{"TableName":"idempotency","TableStatus":"ACTIVE",
        "KeySchema":[{{"AttributeName":"key","KeyType":"HASH"}}],
        "AttributeDefinitions":[{{"AttributeName":"key","AttributeType":"S"}}]{more}}}}}"#
    )
}

/// A service with a table that works, but for what `differs` says.
async fn fake(
    more: &'static str,
    differs: impl Fn(&str) -> Option<(u16, String)> + Send + Sync + 'static,
) -> DynamoDbStoreBuilder {
    let endpoint = service(move |action| {
        differs(action).unwrap_or_else(|| match action {
            "DescribeTable" => (200, described(more)),
            "DescribeTimeToLive" => {
                let ttl = r#"{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"ttl"}}"#;
                (200, ttl.to_owned())
            }
            "GetItem" | "Scan" => (200, "{}".to_owned()),
            _ => (400, error("ConditionalCheckFailedException", "as wanted")),
        })
    })
    .await;
    DynamoDbStore::builder(client(&endpoint))
}

#[tokio::test]
async fn a_global_table() {
    assert_eq!(findings(fake("", |_| None).await).await, vec![]);
    let builder = fake(r#","Replicas":[{"RegionName":"eu-west-1"}]"#, |_| None).await;
    only(&findings(builder.clone()).await, Severity::Breaks, &["global table", "single_region_writes"]);
    assert_eq!(findings(builder.single_region_writes(true)).await, vec![]);
    let strong = r#","MultiRegionConsistency":"STRONG","Replicas":[{"RegionName":"eu-west-1"}]"#;
    assert_eq!(findings(fake(strong, |_| None).await).await, vec![]);
}

#[tokio::test]
async fn a_table_that_is_not_there_any_more() {
    let archived = |action: &str| {
        (action == "DescribeTable").then(|| (200, described("").replace("ACTIVE", "ARCHIVED")))
    };
    only(&findings(fake("", archived).await).await, Severity::Breaks, &["ARCHIVED"]);
}

#[tokio::test]
async fn rights_that_are_missing() {
    let denied = |missing: &'static [&'static str]| {
        move |action: &str| {
            missing.contains(&action).then(|| (400, error("AccessDeniedException", "not allowed")))
        }
    };
    let found = findings(fake("", denied(&["DeleteItem", "PutItem"])).await).await;
    only(&found, Severity::Breaks, &["may not DeleteItem, PutItem"]);
    let found = findings(fake("", denied(&["UpdateItem", "GetItem"])).await).await;
    only(&found, Severity::Breaks, &["may not UpdateItem, GetItem"]);
    only(&findings(fake("", denied(&["Scan"])).await).await, Severity::Weakens, &["scan"]);
    only(&findings(fake("", denied(&["DescribeTable"])).await).await, Severity::Weakens, &["describe"]);
    only(
        &findings(fake("", denied(&["DescribeTimeToLive"])).await).await,
        Severity::Weakens,
        &["time to live"],
    );
    let error = fake("", denied(&["DescribeTable"])).await.open().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused);
}
