//! What the layer publishes, and what it refuses to be.

use std::time::Duration;

use axum::http::{HeaderName, Method};
use idempotent_runtime::http::{IdempotencyLayer, Keep, Principal, Responses};

use crate::support::{idempotency, layer};

#[test]
fn the_policy_is_what_the_layer_does() {
    let set = layer(|builder| {
        let alias = HeaderName::from_static("x-idempotency-key");
        builder.required().ttl(Duration::from_secs(3600)).methods([Method::POST, Method::GET]).alias(alias)
    });
    let policy = serde_json::to_value(set.policy()).unwrap();
    assert_eq!(policy["header"], "idempotency-key");
    assert_eq!(policy["alias"], "x-idempotency-key");
    assert_eq!(policy["required"], true);
    assert_eq!(policy["methods"], serde_json::json!(["POST"]));
    assert_eq!((&policy["min_key_bytes"], &policy["max_key_bytes"]), (&1.into(), &255.into()));
    assert_eq!(policy["ttl_seconds"], 3600);
    assert_eq!(policy["compared"], serde_json::json!(["method", "path", "query", "media type", "content"]));
    let stored = ["200-303", "305-399", "402", "404", "409-410", "500-502", "504-599"];
    assert_eq!(policy["stored_statuses"], serde_json::json!(stored));
    let codes: Vec<_> =
        policy["problems"].as_array().unwrap().iter().map(|problem| problem["code"].clone()).collect();
    for code in
        ["missing-key", "invalid-key", "key-reused", "in-progress", "outcome-unknown", "store-unavailable"]
    {
        assert_eq!(codes.iter().filter(|&listed| listed == code).count(), 1, "{code}");
    }
    let text = set.policy().to_markdown();
    assert!(text.contains("| Stored | 200-303, 305-399, 402, 404, 409-410, 500-502, 504-599 |"), "{text}");
    assert!(text.contains("| `key-reused` | 422 | Idempotency-Key is already used | no |"), "{text}");
}

#[test]
fn a_rule_of_the_applications_own_publishes_no_statuses() {
    let set = layer(|builder| builder.responses(Responses::by(|_| Keep::Store)));
    assert!(set.policy().stored_statuses.is_none());
}

#[test]
fn settings_that_contradict_each_other_are_refused_with_the_reason() {
    let idempotency = idempotency();
    let builder = || IdempotencyLayer::builder(&idempotency, Principal::single_tenant());
    let second = Duration::from_secs(1);
    let empty = std::ops::RangeInclusive::new(5, 4);
    let header = HeaderName::from_static("idempotency-key");
    for (refused, reason) in [
        (builder().ttl(second).lease(second).build(), "`ttl` must be longer than `lease`"),
        (builder().ttl(Duration::ZERO).build(), "at least a millisecond"),
        (builder().key_length(0..=10).build(), "1 to 1024"),
        (builder().key_length(empty).build(), "1 to 1024"),
        (builder().operation("").build(), "name is empty"),
        (builder().operation("x".repeat(181)).build(), "longer than the 180 bytes"),
        (builder().alias(header).build(), "already"),
        (builder().docs_url("https://a.example/\n").build(), "cannot stand in a header"),
        (builder().max_request_bytes(0).build(), "zero"),
    ] {
        let error = refused.expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
    }
    for ttl in [Duration::from_secs(30 * 24 * 3600), Duration::MAX] {
        builder().ttl(ttl).build().unwrap();
    }
}

/// The guide names a test for each line.
#[test]
fn the_tests_that_the_guide_names_are_there() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let guide = std::fs::read_to_string(format!("{root}/docs/http.md")).unwrap();
    let mut named = 0;
    for quoted in guide.split('`').skip(1).step_by(2) {
        let Some((module, test)) = quoted.split_once("::") else { continue };
        if !module.chars().all(char::is_lowercase) || !test.contains('_') || module.contains('_') {
            continue;
        }
        let source =
            std::fs::read_to_string(format!("{root}/tests/tests/http/{module}.rs")).unwrap_or_default();
        assert!(source.contains(&format!("fn {test}()")), "{quoted}");
        named += 1;
    }
    assert!(named > 40, "{named}");
}
