//! The table: made on demand, known by its version, or made by somebody else.

use idempotent_runtime::store::{OwnerToken, Store, StoreErrorKind};
use idempotent_runtime::stores::{ConnectError, MySqlStore, SqlColumn, connect};

use crate::support::*;

#[tokio::test]
async fn a_missing_table_is_made_only_if_that_is_wished() {
    let url = server().database("wished");
    let error = builder(&url).create_schema(false).open().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused);
    assert!(words(&error).contains("no table `idempotency`"), "{}", words(&error));

    let builder = builder(&url).create_schema(false).procedures(true);
    server().sql(&format!("USE wished; {}", builder.schema().unwrap()));
    let error = builder.clone().open().await.unwrap_err();
    assert!(words(&error).contains("no procedure `idempotency_load_v1`"), "{}", words(&error));
    for procedure in builder.schema_of_procedures().unwrap() {
        server().sql(&format!("USE wished\nDELIMITER //\n{procedure} //"));
    }
    let store = builder.open().await.unwrap();
    grant(&store, &key("1"), OwnerToken::random()).await;
}

#[tokio::test]
async fn many_may_make_the_table_at_once() {
    let url = server().database("at_once");
    let opening = |_| {
        let url = url.clone();
        tokio::spawn(async move { builder(&url).procedures(true).open().await })
    };
    let all: Vec<_> = (0..6).map(opening).collect();
    for one in all {
        grant(&one.await.unwrap().unwrap(), &key(&format!("{:?}", OwnerToken::random())), OwnerToken::NOBODY)
            .await;
    }
}

#[tokio::test]
async fn a_table_of_a_newer_version_or_of_somebody_else_is_refused() {
    let url = server().database("versions");
    let store = MySqlStore::connect(&url).await.unwrap();
    server().sql("ALTER TABLE versions.idempotency COMMENT 'idempotent-rs records, version 2'");
    let error = MySqlStore::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused);
    assert!(words(&error).contains("of version 2"), "{}", words(&error));
    let findings = store.examine().await.unwrap();
    assert!(findings.iter().any(|finding| finding.problem.contains("of version 2")), "{findings:?}");
    assert!(matches!(connect(&url).await.unwrap_err(), ConnectError::Store(_)));

    server().sql("CREATE TABLE versions.orders (id INT)");
    let error = builder(&url).table("orders").open().await.unwrap_err();
    assert!(words(&error).contains("not this store's"), "{}", words(&error));
}

#[tokio::test]
async fn names_that_need_thought_are_refused() {
    let url = server().database("names");
    for builder in [
        builder(&url).table("a`b"),
        builder(&url).table("x".repeat(60)),
        builder(&url).column(SqlColumn::Owner, "__owner"),
        builder(&url).column(SqlColumn::Owner, "state"),
    ] {
        assert_eq!(builder.schema().unwrap_err().kind(), StoreErrorKind::Refused);
        assert_eq!(builder.open().await.unwrap_err().kind(), StoreErrorKind::Refused);
    }
}

#[tokio::test]
async fn a_url_names_the_store() {
    let url = server().database("urls");
    assert_eq!(connect(&url).await.unwrap().name(), "mysql");
    assert_eq!(connect(&url.replace("mysql:", "mariadb:")).await.unwrap().name(), "mysql");
    let nowhere = format!("mysql://root@127.0.0.1:{}", server().port());
    let ConnectError::Store(error) = connect(&nowhere).await.unwrap_err() else { panic!() };
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{}", words(&error));
    assert!(words(&error).contains("name a database"), "{}", words(&error));
    let wrong = format!("mysql://nobody:secret@127.0.0.1:{}/urls", server().port());
    let error = connect(&wrong).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    let nothing = format!("mysql://root@127.0.0.1:{}/urls", tests::servers::free_port());
    let ConnectError::Store(error) = connect(&nothing).await.unwrap_err() else { panic!() };
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{}", words(&error));
}

#[tokio::test]
async fn the_documentation_shows_the_table_as_it_is() {
    let schema =
        MySqlStore::builder(MySqlStore::pool_for("mysql://root@localhost/t").unwrap()).schema().unwrap();
    assert!(include_str!("../../../docs/stores.md").contains(&schema), "docs/stores.md needs\n{schema}");
}
