//! Choosing a store by its URL.

use std::fmt;
use std::sync::Arc;

use crate::doctor::{Finding, Severity};
use crate::store::{Store, StoreError};

/// The schemes, and the feature that each needs.
const SCHEMES: &[(&str, &str)] = &[
    ("memory", "memory"),
    ("sqlite", "sqlite"),
    ("redis", "redis"),
    ("redis+unix", "redis"),
    ("redis-sentinel", "redis"),
    ("redis-cluster", "redis"),
    ("valkey", "redis"),
    ("rediss", "redis-tls-rustls"),
    ("rediss-sentinel", "redis-tls-rustls"),
    ("rediss-cluster", "redis-tls-rustls"),
    ("valkeys", "redis-tls-rustls"),
    ("dynamodb", "dynamodb"),
    ("postgresql", "postgres"),
    ("postgres", "postgres"),
    ("mysql", "mysql"),
    ("mariadb", "mysql"),
];

/// Connects to the store that `url` names, creates its schema if it is missing, and examines it.
///
/// | URL | store |
/// | --- | --- |
/// | `memory:` | `MemoryStore` |
/// | `sqlite:path/to/file` | `SqliteStore` |
/// | `redis://…`, `rediss://…`, `redis-sentinel://one,two/name`, `redis-cluster://one,two` | `RedisStore` |
/// | `dynamodb://table?region=eu-west-1` | `DynamoDbStore`, with credentials from the environment |
/// | `postgres://user@host/database` | `PostgresStore` |
/// | `mysql://user:password@host/database`, `mariadb://…` | `MySqlStore` |
///
/// Each store is compiled with the feature of its name; [`stores`](crate::stores) has them.
///
/// What only weakens the promise is a warning in the log.
///
/// # Errors
/// Says what is wrong with the URL, which feature is missing, what the store answered, or what about it breaks the
/// promise.
pub async fn connect(url: &str) -> Result<Arc<dyn Store>, ConnectError> {
    let store = open(url).await?;
    let findings = store.examine().await?;
    for finding in &findings {
        tracing::warn!(target: "idempotent", store = store.name(), "{finding}");
    }
    if findings.iter().any(|finding| finding.severity == Severity::Breaks) {
        return Err(ConnectError::Unsafe(findings));
    }
    Ok(store)
}

/// As [`connect`], without examining the store.
///
/// # Errors
/// Says what is wrong with the URL, which feature is missing, or what the store answered.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, ConnectError> {
    open_or_create(url, true).await
}

/// As [`open`], without creating anything: for tools that look into a store which is there, and have to work on one that is
/// not in order. A mistyped name shall not become an empty store, in which all is well.
///
/// # Errors
/// Those of [`open`]. A file that is missing is an error here; a missing table is one of the store's operations, and a
/// finding of [`Store::examine`].
pub async fn open_existing(url: &str) -> Result<Arc<dyn Store>, ConnectError> {
    open_or_create(url, false).await
}

#[allow(
    clippy::unused_async,
    unused_variables,
    reason = "the memory store alone has nothing to wait for or to create"
)]
async fn open_or_create(url: &str, create: bool) -> Result<Arc<dyn Store>, ConnectError> {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    match scheme {
        #[cfg(feature = "memory")]
        "memory" => Ok(Arc::new(crate::stores::MemoryStore::new())),
        #[cfg(feature = "sqlite-unbundled")]
        "sqlite" => {
            let store = crate::stores::SqliteStore::builder(crate::stores::sqlite::file_of(url)?);
            Ok(Arc::new(store.create_schema(create).open().await?))
        }
        #[cfg(feature = "redis")]
        "redis" | "redis+unix" | "redis-sentinel" | "redis-cluster" | "valkey" => {
            Ok(Arc::new(crate::stores::RedisStore::open(url).await?))
        }
        #[cfg(feature = "redis-tls-rustls")]
        "rediss" | "rediss-sentinel" | "rediss-cluster" | "valkeys" => {
            Ok(Arc::new(crate::stores::RedisStore::open(url).await?))
        }
        #[cfg(feature = "dynamodb")]
        "dynamodb" => Ok(Arc::new(crate::stores::DynamoDbStore::from_url(url, create).await?)),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => {
            use crate::stores::PostgresStore;
            let store = PostgresStore::builder(PostgresStore::pool_for(url)?).create_schema(create);
            Ok(Arc::new(if create { store.open().await? } else { store.build()? }))
        }
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => {
            use crate::stores::MySqlStore;
            let store = MySqlStore::builder(MySqlStore::pool_for(url)?).create_schema(create);
            Ok(Arc::new(if create { store.open().await? } else { store.build()? }))
        }
        scheme => Err(unknown(scheme)),
    }
}

/// The error for a scheme that no compiled store has.
fn unknown(scheme: &str) -> ConnectError {
    match SCHEMES.iter().find(|(known, _)| *known == scheme) {
        Some((_, feature)) => ConnectError::FeatureMissing { feature },
        None => ConnectError::UnknownScheme { scheme: scheme.chars().take(40).collect() },
    }
}

/// Why a URL gave no store. The URL itself is not in it, because it may hold a password.
///
/// `Display` says the store's cause as well, so the source begins after that.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// No store has this scheme.
    UnknownScheme {
        /// What stands before the first colon.
        scheme: String,
    },
    /// The store is not compiled in.
    FeatureMissing {
        /// The feature of this crate that it needs.
        feature: &'static str,
    },
    /// The rest of the URL does not say what the store needs to know.
    Invalid {
        /// What is missing or wrong.
        reason: &'static str,
    },
    /// The store could not be reached, or refused.
    Store(StoreError),
    /// The store works, and would break the promise.
    Unsafe(Vec<Finding>),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownScheme { scheme } => {
                write!(f, "there is no store with the URL scheme `{scheme}`; there are")?;
                SCHEMES.iter().try_for_each(|(known, _)| write!(f, " `{known}:`"))
            }
            Self::FeatureMissing { feature } => {
                write!(f, "this store needs the feature `{feature}` of idempotent-runtime")
            }
            Self::Invalid { reason } => f.write_str(reason),
            Self::Store(error) => fmt::Display::fmt(error, f),
            Self::Unsafe(findings) => {
                f.write_str("the store is not safe to use")?;
                findings.iter().try_for_each(|finding| write!(f, "\n- {finding}"))
            }
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => error.source().and_then(std::error::Error::source),
            _ => None,
        }
    }
}

impl From<StoreError> for ConnectError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
