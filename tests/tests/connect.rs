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

/// Looking into a store makes none, so any text can be tried: what is not a URL is an error in words, and none shows the
/// password that may be in it.
#[cfg(all(feature = "sqlite", feature = "postgres", feature = "mysql", feature = "dynamodb"))]
#[test]
fn whatever_a_url_says_it_is_an_error_or_a_store_and_shows_no_password() {
    use std::error::Error;

    use idempotent_runtime::stores::open_existing;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    const PASSWORD: &str = "correct-horse-battery";
    let schemes =
        prop::sample::select(vec!["postgres", "postgresql", "mysql", "mariadb", "dynamodb", "sqlite"]);
    let before = prop::sample::select(vec![":", "://", ":///", "://shop@", ":/"]);
    let rest = prop_oneof![
        r"[a-z0-9:/@?&=%,.#~\[\]é🦀 -]{0,40}",
        r"[a-z]{1,8}(:[0-9]{0,7})?(/[a-z%0-9]{0,8})?(\?[a-z-]{1,16}=[a-z0-9%:/]{0,12}){0,2}",
        r"\PC{0,30}",
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 2_000, failure_persistence: None, ..Config::default() });
    let urls = (schemes, before, rest, any::<bool>());
    let tried = runner.run(&urls, |(scheme, before, rest, with_password)| {
        let user = if with_password { format!("shop:{PASSWORD}@") } else { String::new() };
        let url = format!("{scheme}{before}{user}{rest}");
        if let Err(error) = runtime.block_on(open_existing(&url)) {
            let causes = std::iter::successors(error.source(), |&cause| cause.source());
            let shown = causes
                .fold(format!("{error} {error:?}"), |shown, cause| format!("{shown} {cause} {cause:?}"));
            // The name of a file is shown, or nobody could find it; it has no password.
            prop_assert!(scheme == "sqlite" || !shown.contains(PASSWORD), "{url}: {shown}");
            prop_assert!(!error.to_string().is_empty());
        }
        Ok(())
    });
    tried.unwrap();
}
