//! A store by its URL.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region, SharedHttpClient};

use super::DynamoDbStore;
use super::address::{Address, invalid};
use crate::stores::ConnectError;

impl DynamoDbStore {
    /// Opens the table that `dynamodb://table?region=…&endpoint=…` names, with the defaults.
    ///
    /// Region and endpoint may come from `AWS_REGION` and `AWS_ENDPOINT_URL_DYNAMODB`, as the AWS tools know them. The
    /// credentials come from `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, once: for profiles, roles
    /// and whatever else has to be renewed, load a client with `aws-config` and give it to [`builder`](Self::builder).
    /// An `https:` endpoint, which AWS's own are, needs the feature `dynamodb-tls`.
    ///
    /// # Errors
    /// Says what is missing in the URL or the environment, or what the service answered.
    pub async fn connect(url: &str) -> Result<Self, ConnectError> {
        Self::from_url(url, true).await
    }

    pub(crate) async fn from_url(url: &str, create: bool) -> Result<Self, ConnectError> {
        let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let address = Address::parse(url, environment)?;
        let credentials = (environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY"));
        let (Some(id), Some(secret)) = credentials else {
            return invalid(
                "a DynamoDB URL needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment; for other \
                 credentials load a client with aws-config and give it to DynamoDbStore::builder",
            );
        };
        let token = environment("AWS_SESSION_TOKEN");
        let is_plain = address.endpoint.as_deref().is_some_and(|endpoint| endpoint.starts_with("http://"));
        let mut config = Config::builder();
        config.set_endpoint_url(address.endpoint);
        let config = config
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(address.region))
            .credentials_provider(Credentials::new(id, secret, token, None, "environment"))
            .http_client(http_client(is_plain)?)
            .retry_config(RetryConfig::standard())
            .timeout_config(
                TimeoutConfig::builder()
                    .connect_timeout(Duration::from_secs(1))
                    .operation_attempt_timeout(Duration::from_secs(3))
                    .build(),
            )
            .build();
        let store = Self::builder(Client::from_conf(config)).table(address.table);
        Ok(store.create_table(create).open().await?)
    }
}

#[cfg(feature = "dynamodb-tls")]
#[expect(clippy::unnecessary_wraps, reason = "without TLS it may fail")]
fn http_client(is_plain: bool) -> Result<SharedHttpClient, ConnectError> {
    use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};

    let builder = aws_smithy_http_client::Builder::new();
    Ok(if is_plain {
        builder.build_http()
    } else {
        builder.tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https()
    })
}

#[cfg(not(feature = "dynamodb-tls"))]
fn http_client(is_plain: bool) -> Result<SharedHttpClient, ConnectError> {
    if is_plain {
        Ok(aws_smithy_http_client::Builder::new().build_http())
    } else {
        Err(ConnectError::FeatureMissing { feature: "dynamodb-tls" })
    }
}
