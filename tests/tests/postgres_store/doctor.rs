//! What the doctor says about servers that are really set up wrongly.

use idempotent_runtime::store::Store;
use idempotent_runtime::stores::{ConnectError, PostgresStore, connect};
use idempotent_runtime::{Finding, Severity};
use tests::servers::free_port;
use tests::servers::postgres::{Postgres, shared};

use crate::support::*;

async fn findings(url: &str) -> Vec<Finding> {
    PostgresStore::new(pool(url)).examine().await.unwrap()
}

/// The one finding with these words; others may be there.
#[track_caller]
fn one(findings: &[Finding], words: &str, severity: Severity) {
    let with: Vec<_> = findings.iter().filter(|finding| finding.to_string().contains(words)).collect();
    assert!(with.len() == 1 && with[0].severity == severity, "{words}: {findings:?}");
}

fn set(url: &str, setting: &str) {
    let name = url.rsplit('/').next().unwrap();
    shared().psql(url, &format!("ALTER DATABASE {name} SET {setting}"));
}

#[tokio::test]
async fn a_good_server_is_only_told_that_it_does_not_wait_for_its_disk() {
    let url = shared().database();
    let store = PostgresStore::builder(pool(&url)).open().await.unwrap();
    let findings = store.examine().await.unwrap();
    one(&findings, "`fsync` is off", Severity::Weakens);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(connect(&url).await.unwrap().name(), "postgres");
    assert_eq!(connect(&url.replace("postgres://", "postgresql://")).await.unwrap().name(), "postgres");
}

#[tokio::test]
async fn weak_settings_are_named() {
    let url = shared().database();
    for (setting, words) in [
        ("synchronous_commit = off", "`synchronous_commit` is off"),
        ("default_transaction_isolation = 'serializable'", "`serializable` by default"),
    ] {
        set(&url, setting);
        one(&findings(&url).await, words, Severity::Weakens);
    }
    shared().psql("postgres", "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    one(&findings(&shared().url("latin")).await, "LATIN1", Severity::Weakens);
}

#[tokio::test]
async fn a_clock_that_is_off_is_named() {
    let url = shared().database();
    shared().psql(
        &url,
        "CREATE SCHEMA wrong; CREATE FUNCTION wrong.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS \
         'SELECT pg_catalog.clock_timestamp() - interval ''1 hour'''",
    );
    set(&url, "search_path = wrong, pg_catalog, public");
    one(&findings(&url).await, "seconds apart", Severity::Weakens);
}

#[tokio::test]
async fn what_is_wrong_with_the_table_is_named() {
    let url = shared().database();
    PostgresStore::builder(pool(&url)).open().await.unwrap();
    let cases = [
        ("ALTER TABLE idempotency SET UNLOGGED", "unlogged", Severity::Breaks),
        ("CREATE INDEX on_expiry ON idempotency (expires_at)", "on_expiry", Severity::Weakens),
        ("ALTER TABLE idempotency DROP CONSTRAINT idempotency_pkey", "keeps two records", Severity::Breaks),
        ("ALTER TABLE idempotency DROP COLUMN watched", "no column watched", Severity::Breaks),
        (
            "COMMENT ON TABLE idempotency IS 'idempotent-runtime: table version 7'",
            "version 7",
            Severity::Breaks,
        ),
    ];
    for (change, words, severity) in cases {
        shared().psql(&url, change);
        one(&findings(&url).await, words, severity);
    }
    let error = connect(&url).await.unwrap_err();
    assert!(matches!(error, ConnectError::Store(_)), "{error:?}");
}

#[tokio::test]
async fn missing_permissions_are_named() {
    let url = shared().database();
    let name = url.rsplit('/').next().unwrap();
    shared().psql(&url, "CREATE ROLE clerk LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    let clerks = shared().url_of("clerk", name);
    one(&findings(&clerks).await, "may not create it", Severity::Breaks);
    let error = PostgresStore::connect(&clerks).await.unwrap_err();
    assert!(words(&error).contains("permission denied"), "{}", words(&error));

    let store = PostgresStore::builder(pool(&url)).open().await.unwrap();
    shared().psql(&url, "GRANT SELECT, INSERT ON idempotency TO clerk");
    one(&findings(&clerks).await, "may not UPDATE, DELETE", Severity::Breaks);
    let error = connect(&clerks).await.unwrap_err();
    assert!(matches!(&error, ConnectError::Unsafe(_)) && error.to_string().contains("GRANT"), "{error}");

    shared().psql(
        &url,
        "GRANT UPDATE, DELETE ON idempotency TO clerk; ALTER TABLE idempotency ENABLE ROW LEVEL SECURITY",
    );
    one(&findings(&clerks).await, "row security", Severity::Breaks);
    drop(store);
    let without = PostgresStore::builder(pool(&url)).table("other").create_schema(false).build().unwrap();
    one(&without.examine().await.unwrap(), "not to create it", Severity::Breaks);
}

#[tokio::test]
async fn a_read_only_server_is_named() {
    let url = shared().database();
    PostgresStore::builder(pool(&url)).open().await.unwrap();
    set(&url, "default_transaction_read_only = on");
    one(&findings(&url).await, "read-only by default", Severity::Breaks);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_named() {
    let server = Postgres::start(&["-c", "fsync=off"]);
    PostgresStore::connect(&server.url("postgres")).await.unwrap();
    let folder = server.end("INT");
    std::fs::write(folder.path().join("data/standby.signal"), "").unwrap();
    let server = Postgres::resume(folder, free_port(), &["-c", "fsync=off"]);
    one(&findings(&server.url("postgres")).await, "standby", Severity::Breaks);
    let error = connect(&server.url("postgres")).await.unwrap_err();
    assert!(matches!(&error, ConnectError::Unsafe(_)), "{error:?}");
}

#[tokio::test]
async fn a_url_that_leads_nowhere_says_so_and_does_not_show_its_password() {
    for url in ["postgres://user:secret@127.0.0.1:1/db?sslmode=wrong", "postgres://user:secret@[/db"] {
        let error = PostgresStore::connect(url).await.unwrap_err();
        assert!(!format!("{error:?} {}", words(&error)).contains("secret"));
    }
}
