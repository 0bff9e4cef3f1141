//! The URLs of one server, of sentinels, and of a cluster.

use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{Client, ErrorKind, IntoConnectionInfo, RedisError, RedisResult, TlsMode};

/// What a URL names.
pub(super) enum Address {
    Server(Box<Client>),
    Sentinel(Box<SentinelClient>),
    /// The URLs of some nodes.
    Cluster(Vec<String>),
}

/// Reads a URL. Errors do not show it, because it may hold a password.
pub(super) fn parse(url: &str) -> RedisResult<Address> {
    let (scheme, rest) =
        url.split_once("://").ok_or_else(|| wrong("a Redis URL begins with `redis://` or the like"))?;
    let (scheme, kind) = match scheme {
        "redis-sentinel" => ("redis", Kind::Sentinel),
        "rediss-sentinel" => ("rediss", Kind::Sentinel),
        "redis-cluster" => ("redis", Kind::Cluster),
        "rediss-cluster" => ("rediss", Kind::Cluster),
        "valkey" => ("redis", Kind::Server),
        "valkeys" => ("rediss", Kind::Server),
        scheme => (scheme, Kind::Server),
    };
    let tls = scheme == "rediss";
    if tls {
        tls_is_ready()?;
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
    let at = if user.is_empty() { "" } else { "@" };
    let hosts: Vec<&str> = hosts.split(',').map(str::trim).filter(|host| !host.is_empty()).collect();
    match kind {
        Kind::Server => Ok(Address::Server(Box::new(Client::open(format!("{scheme}://{rest}"))?))),
        Kind::Cluster if hosts.is_empty() => {
            Err(wrong("the URL of a cluster names nodes: `redis-cluster://one,two`"))
        }
        Kind::Cluster if !matches!(path, "" | "0") => {
            Err(wrong("a cluster has no databases to choose from: the URL ends after its nodes"))
        }
        Kind::Cluster => {
            Ok(Address::Cluster(hosts.iter().map(|host| format!("{scheme}://{user}{at}{host}/")).collect()))
        }
        Kind::Sentinel => {
            let (name, database) = path.split_once('/').unwrap_or((path, ""));
            if name.is_empty() || hosts.is_empty() {
                return Err(wrong(
                    "the URL of sentinels names them and the primary: `redis-sentinel://one,two/name`",
                ));
            }
            // The host does not matter here: the sentinels say it.
            let node = format!("{scheme}://{user}{at}localhost/{database}");
            let settings = node.into_connection_info()?.redis_settings().clone();
            let node = SentinelNodeConnectionInfo::default().set_redis_connection_info(settings);
            let node = if tls { node.set_tls_mode(TlsMode::Secure) } else { node };
            let sentinels = hosts.iter().map(|host| sentinel(scheme, host)).collect();
            let name = name.to_owned();
            let client = SentinelClient::build(sentinels, name, Some(node), SentinelServerType::Master)?;
            Ok(Address::Sentinel(Box::new(client)))
        }
    }
}

enum Kind {
    Server,
    Sentinel,
    Cluster,
}

/// The URL of a sentinel: they listen on a port of their own.
fn sentinel(scheme: &str, host: &str) -> String {
    let after_address = host.rsplit_once(']').map_or(host, |(_, after)| after);
    let port = if after_address.contains(':') { "" } else { ":26379" };
    format!("{scheme}://{host}{port}/")
}

fn wrong(words: &'static str) -> RedisError {
    RedisError::from((ErrorKind::InvalidClientConfig, words))
}

#[cfg(feature = "redis-tls-rustls")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature it fails")]
fn tls_is_ready() -> RedisResult<()> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error says that somebody else was quicker, and that is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    Ok(())
}

#[cfg(not(feature = "redis-tls-rustls"))]
fn tls_is_ready() -> RedisResult<()> {
    Err(wrong("TLS needs the feature `redis-tls-rustls` of idempotent-runtime"))
}
