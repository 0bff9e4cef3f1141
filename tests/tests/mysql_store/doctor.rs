//! What the store says about a server that is not as it should be.

use idempotent_runtime::store::{OwnerToken, Store, StoreErrorKind};
use idempotent_runtime::stores::{ConnectError, MySqlStore, connect};
use idempotent_runtime::{Finding, Severity};
use tests::servers::mariadb::MariaDb;

use crate::support::*;

fn found(findings: &[Finding], severity: Severity, words: &str) {
    let hit = findings.iter().any(|finding| finding.severity == severity && finding.problem.contains(words));
    assert!(hit, "{words} is not among {findings:#?}");
}

#[tokio::test]
async fn a_sound_server_has_no_findings() {
    let sound = MariaDb::start_with(&["--log-bin", "--binlog-format=ROW", "--sync-binlog=1"]);
    for procedures in [false, true] {
        let store = builder(&sound.database("t")).procedures(procedures).open().await.unwrap();
        assert_eq!(store.examine().await.unwrap(), []);
    }

    // A user with the rights on the table only.
    sound.sql(
        "CREATE USER app; GRANT SELECT, INSERT, UPDATE, DELETE ON t.idempotency TO app; \
         CREATE USER reader; GRANT SELECT, UPDATE ON t.idempotency TO reader",
    );
    let store = MySqlStore::connect(&sound.url("app", "t")).await.unwrap();
    assert_eq!(store.examine().await.unwrap(), []);
    grant(&store, &key("1"), OwnerToken::random()).await;
    let reader = MySqlStore::connect(&sound.url("reader", "t")).await.unwrap();
    found(&reader.examine().await.unwrap(), Severity::Breaks, "may not INSERT");
    let error = reader.reserve(request(&key("2"), OwnerToken::random())).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{}", words(&error));

    sound.sql("ALTER TABLE t.idempotency ENGINE = MyISAM");
    found(&store.examine().await.unwrap(), Severity::Breaks, "no transactions");
    sound.sql("DROP TABLE t.idempotency");
    let root = MySqlStore::connect(&sound.database("t")).await.unwrap();
    sound.sql("DROP TABLE t.idempotency");
    found(&root.examine().await.unwrap(), Severity::Breaks, "no table");
    let error = root.reserve(request(&key("1"), OwnerToken::random())).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused);
    assert!(words(&error).contains("create what is missing"), "{}", words(&error));
}

#[tokio::test]
async fn everything_that_is_wrong_is_said() {
    let server = MariaDb::start_with(&[
        "--log-bin",
        "--server-id=2",
        "--binlog-format=STATEMENT",
        "--sync-binlog=0",
        "--innodb-flush-log-at-trx-commit=2",
        "--skip-innodb-doublewrite",
        "--max-allowed-packet=65536",
        "--init-connect=SET timestamp = 1000000000",
    ]);
    let url = server.database("t");
    let store = MySqlStore::connect(&url).await.unwrap();
    let findings = store.examine().await.unwrap();
    found(&findings, Severity::Weakens, "innodb_flush_log_at_trx_commit = 2");
    found(&findings, Severity::Weakens, "sync_binlog = 0");
    found(&findings, Severity::Weakens, "innodb_doublewrite");
    found(&findings, Severity::Weakens, "packets of 65536 bytes");
    found(&findings, Severity::Breaks, "binlog_format = STATEMENT");
    let error = store.reserve(request(&key("1"), OwnerToken::random())).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused);
    assert!(words(&error).contains("binlog_format"), "{}", words(&error));
    assert!(matches!(connect(&url).await.unwrap_err(), ConnectError::Unsafe(_)));
    assert_eq!(store.max_result_bytes(), Some(65536 - 16 * 1024));

    // Whom init_connect is for: a user without all rights.
    server.sql("CREATE USER app; GRANT ALL ON t.* TO app");
    let app = MySqlStore::connect(&server.url("app", "t")).await.unwrap();
    found(&app.examine().await.unwrap(), Severity::Weakens, "seconds apart");

    server.sql("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_USER = 'nobody'");
    found(&store.examine().await.unwrap(), Severity::Breaks, "replica of another");
    server.sql("SET GLOBAL read_only = ON");
    found(&store.examine().await.unwrap(), Severity::Breaks, "read-only");
}
