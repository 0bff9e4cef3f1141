//! The table that a URL names.

#[path = "../../../idempotent-runtime/src/stores/dynamodb/address.rs"]
mod address;

use address::Address;

pub(super) fn read(text: &str) {
    let region = |name: &str| (name == "AWS_REGION").then(|| "eu-west-1".to_owned());
    if let Ok(address) = Address::parse(text, region) {
        assert!(!address.table.is_empty() && !address.region.is_empty());
    }
    // With nothing in the environment it has to say all by itself.
    let alone = Address::parse(text, |_| None);
    assert!(alone.is_err() || text.contains("region="));
}
