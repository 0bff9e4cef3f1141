//! Choosing a store by its URL.

use idempotent_runtime::Idempotency;
use idempotent_runtime::stores::{ConnectError, connect};

#[tokio::test]
async fn a_url_names_a_store() {
    assert_eq!(connect("memory:").await.unwrap().name(), "memory");
    let idempotency = Idempotency::connect("memory:").await.unwrap();
    let call = idempotency.operation("charge").key("o-1");
    assert_eq!(call.run(|_| async { Ok::<_, idempotent_runtime::Error>(1) }).await.unwrap(), 1);
}

#[tokio::test]
async fn a_url_that_names_no_store_says_which_there_are_and_does_not_show_itself() {
    for url in ["mongodb://user:secret@host", "", "secret", "://secret"] {
        let error = connect(url).await.unwrap_err();
        assert!(matches!(error, ConnectError::UnknownScheme { .. }), "{error:?}");
        assert!(error.to_string().contains("`sqlite:`"), "{error}");
        assert!(url == "secret" || !format!("{error} {error:?}").contains("secret"), "{error}");
    }
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_sqlite_url_names_a_file() {
    let folder = std::env::temp_dir().join(format!("idempotent-connect-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for form in ["sqlite:", "sqlite://"] {
        let url = format!("{form}{}", folder.join("records.db").display());
        assert_eq!(connect(&url).await.unwrap().name(), "sqlite");
    }
    for url in ["sqlite:", "sqlite://", "sqlite::memory:"] {
        assert!(matches!(connect(url).await.unwrap_err(), ConnectError::Invalid { .. }));
    }
    let missing = format!("sqlite:{}", folder.join("no/such/folder/records.db").display());
    let error = connect(&missing).await.unwrap_err();
    assert!(matches!(error, ConnectError::Store(_)));
    // What `{error}` prints is all that many programs show, so it says which file, and what is wrong with it.
    let said = error.to_string();
    assert!(said.contains("no/such/folder does not exist; create it first"), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}
