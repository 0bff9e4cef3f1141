//! Two versions of an application on one store, as during a deploy. Each is a handle of its own.

use std::error::Error as StdError;
use std::time::Duration;

use idempotent_runtime::fingerprint::{Fingerprint, Fingerprinter};
use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{Lease, OwnerToken, Reserve, Reserved, Settled, Store, Stored, TakeOver};
use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::ManualClock;
use idempotent_runtime::{
    Attempt, Codec, Error, Idempotency, IdempotencyBuilder, OnCrash, Outcome, idempotent, with_outcome,
};
use serde::{Deserialize, Serialize};
use tests::{ChargeError, only_record, records};

const LEASE: Duration = Duration::from_secs(30);

type Settings = fn(IdempotencyBuilder) -> IdempotencyBuilder;

fn same(builder: IdempotencyBuilder) -> IdempotencyBuilder {
    builder
}

/// The old and the new version of an application.
fn versions(old: Settings, new: Settings) -> (Idempotency, Idempotency, MemoryStore, ManualClock) {
    let clock = ManualClock::default();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    let version = |settings: Settings| settings(Idempotency::builder().store(store.clone())).build().unwrap();
    (version(old), version(new), store.clone(), clock)
}

/// A call with an argument, which gives `result` when it runs.
async fn charge<T>(version: &Idempotency, argument: impl Serialize, result: T) -> Result<T, Error>
where
    T: Serialize + serde::de::DeserializeOwned + Send,
{
    let call = version.operation("charge").key("o-1").fingerprint(&argument);
    call.run(|_| async { Ok(result) }).await
}

/// An attempt of this version whose process dies.
fn die(version: &Idempotency, on_crash: OnCrash) {
    let call = version.operation("charge").on_crash(on_crash).key("o-1");
    let mut call = Box::pin(call.run(|_| std::future::pending::<Result<u32, Error>>()));
    std::thread::scope(|scope| {
        let begun = scope.spawn(|| tests::poll_times(call.as_mut(), 1).is_pending()).join();
        assert!(begun.unwrap());
    });
    std::mem::forget(call);
}

async fn after_death(version: &Idempotency, on_crash: OnCrash) -> Result<u32, Error> {
    let call = version.operation("charge").on_crash(on_crash).key("o-1");
    call.run(|attempt: Attempt| async move { Ok(attempt.number()) }).await
}

#[tokio::test]
async fn the_arriving_calls_on_crash_decides_about_an_attempt_that_died() {
    for (died_under, arrives_with, gets) in [
        (OnCrash::Refuse, OnCrash::Retry, Ok(2)),
        (OnCrash::Retry, OnCrash::Refuse, Err("outcome-unknown")),
        (OnCrash::Refuse, OnCrash::RetryBeforeEffects, Ok(2)),
    ] {
        let (old, new, _, clock) = versions(same, same);
        die(&old, died_under);
        clock.advance(LEASE + Duration::from_millis(1));
        let got = after_death(&new, arrives_with).await;
        assert_eq!(got.map_err(|error| error.code()), gets, "{died_under:?}, then {arrives_with:?}");
    }
}

#[tokio::test]
async fn the_ttl_and_the_lease_are_those_of_the_version_that_runs_the_body() {
    let hour: Settings = |builder| builder.ttl(Duration::from_secs(3600)).lease(Duration::from_secs(60));
    let (old, new, store, clock) = versions(hour, same);
    assert_eq!(charge(&old, 1, 1).await.unwrap(), 1);
    assert_eq!(only_record(&store).await.expires_in, Duration::from_secs(3600));
    // A replay by another version changes nothing about it.
    assert_eq!(charge(&new, 1, 2).await.unwrap(), 1);
    assert_eq!(only_record(&store).await.expires_in, Duration::from_secs(3600));
    clock.advance(Duration::from_secs(3601));
    die(&old, OnCrash::Retry);
    clock.advance(LEASE + Duration::from_millis(1));
    assert_eq!(after_death(&new, OnCrash::Retry).await.unwrap_err().code(), "in-progress");
    clock.advance(LEASE);
    assert_eq!(after_death(&new, OnCrash::Retry).await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_wait_is_the_arriving_calls() {
    let (old, new, ..) = versions(same, |builder| builder.wait(Duration::from_secs(20)));
    let call = old.operation("charge").key("o-1").fingerprint(&1);
    let first = tokio::spawn(call.run(|_| async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok::<_, Error>(1)
    }));
    tokio::task::yield_now().await;
    assert_eq!(charge(&old, 1, 2).await.unwrap_err().code(), "in-progress");
    assert_eq!(charge(&new, 1, 2).await.unwrap(), 1);
    first.await.unwrap().unwrap();
}

async fn declined(version: &Idempotency, replays: bool) -> Result<u32, ChargeError> {
    let operation = version.operation("charge");
    let body = |_| async { Err(ChargeError::Declined) };
    if replays {
        operation.replay_errors().key("o-1").run(body).await
    } else {
        operation.key("o-1").run(body).await
    }
}

#[tokio::test]
async fn an_error_is_kept_as_the_version_that_runs_the_body_says() {
    let (old, new, store, _) = versions(same, same);
    assert_eq!(declined(&old, false).await, Err(ChargeError::Declined));
    assert!(records(&store).await.is_empty(), "released");
    assert_eq!(declined(&new, true).await, Err(ChargeError::Declined));
    // Stored, and a version that does not replay errors cannot read it: it does not run either.
    assert_eq!(declined(&old, false).await, Err(ChargeError::code("unreadable")));
    assert_eq!(declined(&new, true).await, Err(ChargeError::Declined));
}

mod old {
    use super::{ChargeError, idempotent};

    #[idempotent(name = "charge", key = "order-{id}")]
    pub async fn charge(id: u32) -> Result<u32, ChargeError> {
        Ok(1)
    }
}

mod new {
    use super::{ChargeError, idempotent};

    #[idempotent(name = "charge", key = "id")]
    pub async fn other_template(id: u32) -> Result<u32, ChargeError> {
        Ok(2)
    }

    #[idempotent(name = "charge.v2", key = "order-{id}")]
    pub async fn other_name(id: u32) -> Result<u32, ChargeError> {
        Ok(3)
    }

    #[idempotent(name = "charge", key = "order-{id}")]
    pub async fn moved(id: u32) -> Result<u32, ChargeError> {
        Ok(4)
    }
}

#[tokio::test]
async fn another_name_template_or_namespace_is_another_key() {
    let (old, new, store, _) = versions(same, same);
    assert_eq!(old.within(old::charge(7)).await, Ok(1));
    assert_eq!(new.within(new::other_name(7)).await, Ok(3));
    let third = Idempotency::new(store.clone());
    assert_eq!(third.within(new::other_template(7)).await, Ok(2));
    let elsewhere = Idempotency::builder().store(store.clone()).namespace("elsewhere").build().unwrap();
    assert_eq!(elsewhere.within(new::moved(7)).await, Ok(4));
    assert_eq!(records(&store).await.len(), 4);
}

#[tokio::test]
async fn a_function_that_is_renamed_or_moved_keeps_its_keys_under_its_name() {
    let (old, new, ..) = versions(same, same);
    assert_eq!(old.within(old::charge(7)).await, Ok(1));
    let (replayed, outcome) = with_outcome(new.within(new::moved(7))).await;
    assert_eq!((replayed, outcome), (Ok(1), Some(Outcome::Replayed)));
}

#[derive(Serialize)]
struct OldOrder {
    amount: u32,
}

#[derive(Serialize)]
struct NewOrder {
    amount: u32,
    coupon: Option<&'static str>,
}

#[tokio::test]
async fn other_arguments_are_a_reused_key_and_a_new_optional_one_is_not() {
    let (old, new, ..) = versions(same, same);
    charge(&old, OldOrder { amount: 5 }, 1).await.unwrap();
    assert_eq!(charge(&new, NewOrder { amount: 5, coupon: None }, 2).await.unwrap(), 1);
    let with_coupon = charge(&new, NewOrder { amount: 5, coupon: Some("X") }, 2).await;
    assert_eq!(with_coupon.unwrap_err().code(), "key-reused");
    assert_eq!(charge(&old, OldOrder { amount: 5 }, 3).await.unwrap(), 1);
}

#[derive(Debug, Serialize, Deserialize)]
struct Receipt {
    number: u32,
}

#[tokio::test]
async fn a_result_of_another_type_or_version_is_unreadable_and_stays() {
    let (old, new, ..) = versions(same, same);
    charge(&old, 1, 7).await.unwrap();
    assert_eq!(charge(&new, 1, Receipt { number: 8 }).await.unwrap_err().code(), "unreadable");
    let next = new.operation("charge").version(2).key("o-1").fingerprint(&1);
    assert_eq!(next.run(|_| async { Ok::<u32, Error>(8) }).await.unwrap_err().code(), "unreadable");
    assert_eq!(charge(&old, 1, 9).await.unwrap(), 7);
}

#[tokio::test]
async fn a_fingerprint_of_another_version_is_unreadable_whatever_the_record_says() {
    let (_, new, store, _) = versions(same, same);
    let mut arguments = Fingerprinter::new();
    arguments.argument("argument", &1);
    let digest = *arguments.finish().unwrap().digest();
    let (key, owner) = (RecordKey::new("charge", "default/charge/o-1"), OwnerToken::random());
    let lease = Lease { duration: LEASE, unknown_ttl: 10 * LEASE };
    let request = Reserve {
        key: &key,
        owner,
        fingerprint: Fingerprint::from_parts(2, digest),
        lease,
        take_over: TakeOver::Always,
        max_attempts: 10,
    };
    assert!(matches!(store.reserve(request).await.unwrap(), Reserved::Granted(_)));
    assert_eq!(charge(&new, 1, 1).await.unwrap_err().code(), "unreadable", "while it runs");
    let result = Settled::Completed(Stored { version: 1, bytes: b"7".as_slice().into() });
    store.complete(&key, owner, &result, LEASE).await.unwrap();
    assert_eq!(charge(&new, 1, 1).await.unwrap_err().code(), "unreadable", "and when it has ended");
}

#[tokio::test]
async fn another_fingerprint_secret_is_a_reused_key() {
    let (old, new, ..) = versions(same, |builder| builder.fingerprint_secret(b"s3cret".as_slice()));
    charge(&old, 1, 1).await.unwrap();
    assert_eq!(charge(&new, 1, 2).await.unwrap_err().code(), "key-reused");
}

/// Turns each byte, behind a mark by which it knows its own.
#[derive(Debug)]
struct Turning {
    reads_plain: bool,
}

const MARK: u8 = 0xff;

impl Codec for Turning {
    fn encode(&self, _: &RecordKey, plain: Vec<u8>) -> Result<Vec<u8>, Box<dyn StdError + Send + Sync>> {
        Ok([MARK].into_iter().chain(plain.into_iter().map(|byte| !byte)).collect())
    }

    fn decode(&self, _: &RecordKey, stored: &[u8]) -> Result<Vec<u8>, Box<dyn StdError + Send + Sync>> {
        match stored.split_first() {
            Some((&MARK, turned)) => Ok(turned.iter().map(|byte| !byte).collect()),
            _ if self.reads_plain => Ok(stored.to_vec()),
            _ => Err("not turned".into()),
        }
    }
}

#[tokio::test]
async fn another_codec_is_unreadable_unless_it_reads_what_the_old_one_wrote() {
    let careless: Settings = |builder| builder.codec(Turning { reads_plain: false });
    let careful: Settings = |builder| builder.codec(Turning { reads_plain: true });
    for (settings, gets) in [(careless, Err("unreadable")), (careful, Ok(1))] {
        let (old, new, ..) = versions(same, settings);
        charge(&old, 1, 1).await.unwrap();
        assert_eq!(charge(&new, 1, 2).await.map_err(|error| error.code()), gets);
        assert_eq!(charge(&old, 1, 3).await.unwrap(), 1);
    }
    let (old, new, ..) = versions(same, careful);
    charge(&new, 1, 1).await.unwrap();
    assert_eq!(charge(&old, 1, 2).await.unwrap_err().code(), "unreadable");
}

#[path = "telling/table.rs"]
mod table;

/// Every row of the table names its tests, and they are there.
#[test]
fn the_table_of_deploys_names_tests_that_exist() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut code = String::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                code += &std::fs::read_to_string(entry.path()).unwrap();
            }
        }
    }
    for row in table::rows(&table::operations(), "## Deploys") {
        let [differs, _, shown_by] = &row[..] else { panic!("{row:?}") };
        let mut names = shown_by.split('`').filter(|name| name.contains('_')).peekable();
        assert!(names.peek().is_some(), "{differs}");
        for name in names {
            assert!(code.contains(&format!("fn {name}()")), "{differs}: {name}");
        }
    }
}
