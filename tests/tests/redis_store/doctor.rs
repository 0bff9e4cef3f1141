//! Servers that are set up badly, and what is said about them.

use std::time::Duration;

use idempotent_runtime::store::{OwnerToken, Store};
use idempotent_runtime::stores::{ConnectError, RedisStore, connect};
use idempotent_runtime::{Finding, Severity};
use tests::servers::redis::{Cluster, Redis, wait_until};

use crate::support::*;

const SAFE: [&str; 6] = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];

async fn examine(server: &Redis) -> Vec<Finding> {
    RedisStore::open(server.url(0)).await.unwrap().examine().await.unwrap()
}

/// Exactly one finding, of this severity, that says this.
fn only(found: &[Finding], severity: Severity, says: &str) {
    let [finding] = found else { panic!("one finding was expected: {found:?}") };
    assert_eq!(finding.severity, severity, "{finding}");
    assert!(finding.to_string().contains(says), "{finding}");
}

fn has(found: &[Finding], severity: Severity, says: &str) {
    let has = found.iter().any(|finding| finding.severity == severity && finding.to_string().contains(says));
    assert!(has, "{says} was expected: {found:?}");
}

#[tokio::test]
async fn settings() {
    let server = Redis::with(&SAFE);
    assert_eq!(examine(&server).await, []);
    assert_eq!(server.ask(&["dbsize"]), "0", "looking changes nothing");

    server.ask(&["config", "set", "maxmemory-policy", "volatile-lru"]);
    only(&examine(&server).await, Severity::Weakens, "volatile-lru");
    server.ask(&["config", "set", "maxmemory", "100mb"]);
    only(&examine(&server).await, Severity::Breaks, "drops records");
    assert!(matches!(connect(&server.url(0)).await.unwrap_err(), ConnectError::Unsafe(_)));
    server.ask(&["config", "set", "maxmemory-policy", "noeviction"]);
    assert_eq!(examine(&server).await, []);
    assert_eq!(connect(&server.url(0)).await.unwrap().name(), "redis");

    server.ask(&["config", "set", "maxmemory", "1"]);
    only(&examine(&server).await, Severity::Breaks, "used up its memory");
    server.ask(&["config", "set", "maxmemory", "0"]);

    server.ask(&["config", "set", "appendfsync", "everysec"]);
    only(&examine(&server).await, Severity::Weakens, "appendfsync everysec");
    server.ask(&["config", "set", "appendonly", "no"]);
    only(&examine(&server).await, Severity::Breaks, "every call runs again");
    server.ask(&["config", "set", "save", "60 1"]);
    only(&examine(&server).await, Severity::Weakens, "snapshots");
}

#[tokio::test]
async fn replicas() {
    let server = Redis::with(&SAFE);
    server.ask(&["config", "set", "min-replicas-to-write", "1"]);
    has(&examine(&server).await, Severity::Breaks, "min-replicas-to-write");
    server.ask(&["config", "set", "min-replicas-to-write", "0"]);
    let store = RedisStore::builder(server.url(0)).wait_replicas(1, Duration::from_millis(10));
    let found = store.open().await.unwrap().examine().await.unwrap();
    only(&found, Severity::Weakens, "min-replicas-to-write 0");

    let of = format!("127.0.0.1 {}", server.port());
    let replica = Redis::with(&[&SAFE[..], &["--replicaof", &of]].concat());
    wait_until("the replica is in step", || replica.ask(&["info", "replication"]).contains("link_status:up"));
    let found = examine(&replica).await;
    has(&found, Severity::Breaks, "this server is a replica");
    has(&found, Severity::Breaks, "read-only replica");
}

#[tokio::test]
async fn permissions() {
    let server = Redis::with(&SAFE);
    let user = |rights: &[&str]| {
        let command = [&["acl", "setuser", "shop", "reset", "on", ">pw"], rights].concat();
        assert_eq!(server.ask(&command), "OK");
        RedisStore::open(format!("redis://shop:pw@127.0.0.1:{}/0", server.port()))
    };
    // Enough for the store, and not for the doctor.
    let enough = [
        "~idempotent:*",
        "&idempotent:*",
        "+ping",
        "+client",
        "+select",
        "+eval",
        "+evalsha",
        "+get",
        "+set",
        "+setrange",
        "+getrange",
        "+pttl",
        "+pexpiretime",
        "+time",
        "+publish",
        "+subscribe",
    ];
    let store = user(&enough).await.unwrap();
    grant(&store, &key("1"), OwnerToken::random()).await;
    let found = store.examine().await.unwrap();
    has(&found, Severity::Weakens, "`CONFIG GET` is forbidden");
    has(&found, Severity::Weakens, "`INFO` is forbidden");
    assert_eq!(found.len(), 2, "{found:?}");

    let without = |right: &str| enough.into_iter().filter(|given| *given != right).collect::<Vec<_>>();
    for (right, severity) in [
        ("+set", Severity::Breaks),
        ("+evalsha", Severity::Breaks),
        ("+get", Severity::Breaks),
        ("~idempotent:*", Severity::Breaks),
        ("+publish", Severity::Weakens),
        ("&idempotent:*", Severity::Weakens),
    ] {
        let found = user(&without(right)).await.unwrap().examine().await.unwrap();
        let extra = found.iter().filter(|finding| !finding.problem.contains("is forbidden"));
        assert!(extra.clone().any(|finding| finding.severity == severity), "without {right}: {found:?}");
    }
    // What only the plain commands need may be forbidden: then the scripts do it all.
    for right in ["+pexpiretime", "+time"] {
        let store = user(&without(right)).await.unwrap();
        for n in ["first", "second"] {
            let (k, owner) = (key(&format!("{right}-{n}")), OwnerToken::random());
            if right == "+time" {
                // Without the clock nothing can be judged.
                assert!(store.renew(&k, owner, LEASE).await.is_err());
                continue;
            }
            let fence = grant(&store, &k, owner).await.fence;
            assert_eq!(store.load(&k).await.unwrap().unwrap().owner, owner);
            assert!(fence > 1_700_000_000_000_000);
            store.complete(&k, owner, &completed("x"), KEEP).await.unwrap();
            assert_eq!(held(&store, &k).await.attempt, 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters() {
    let mut cluster = Cluster::start();
    for node in cluster.nodes() {
        node.ask(&["config", "set", "appendfsync", "always"]);
    }
    let store = RedisStore::open(cluster.url()).await.unwrap();
    assert_eq!(store.examine().await.unwrap(), []);
    cluster.nodes()[2].ask(&["config", "set", "maxmemory-policy", "allkeys-lru"]);
    cluster.nodes()[2].ask(&["config", "set", "maxmemory", "1gb"]);
    only(&store.examine().await.unwrap(), Severity::Breaks, "allkeys-lru");
    cluster.nodes()[2].ask(&["config", "set", "maxmemory-policy", "noeviction"]);

    let alone = RedisStore::open(cluster.nodes()[0].url(0)).await.unwrap();
    let found = alone.examine().await;
    assert!(found.is_err() || found.unwrap().iter().any(|finding| finding.severity == Severity::Breaks));
}
