//! How a body can end, and what its duplicates get: errors by policy, panics, drops, results that cannot be kept.

use std::time::Duration;

use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{Settled, State, Store};
use idempotent_runtime::{
    Attempt, Codec, Error, Idempotency, OnCrash, OnError, Outcome, Unrecorded, Unstored, with_outcome,
};
use serde::{Deserialize, Serialize, Serializer};
use tests::{ChargeError, Runs, on_memory, on_memory_with, only_record, records};

const DECLINED: Result<u32, ChargeError> = Err(ChargeError::Declined);
const DOWN: Result<u32, ChargeError> = Err(ChargeError::GatewayDown);

fn unknown() -> Result<u32, ChargeError> {
    Err(ChargeError::code("outcome-unknown"))
}

#[tokio::test]
async fn an_error_releases_the_key_by_default() {
    let (idempotency, store) = on_memory();
    let charge = idempotency.operation("charge");
    let (result, outcome) = with_outcome(charge.key("o-1").run(|_| async { DECLINED })).await;
    assert_eq!((result, outcome), (DECLINED, Some(Outcome::Executed)));
    assert!(records(&store).await.is_empty());
    assert_eq!(charge.key("o-1").run(|_| async { Ok::<_, ChargeError>(2) }).await, Ok(2));
}

#[tokio::test]
async fn an_error_of_on_error_replay_is_the_result() {
    let (idempotency, _) = on_memory();
    let charge = idempotency.operation("charge").replay_errors();
    assert_eq!(charge.key("o-1").run(|_| async { DECLINED }).await, DECLINED);
    let (result, outcome) = with_outcome(charge.key("o-1").run(|_| async { Ok::<_, ChargeError>(2) })).await;
    assert_eq!((result, outcome), (DECLINED, Some(Outcome::Replayed)));
}

#[tokio::test]
async fn an_error_of_on_error_refuse_leaves_the_outcome_unknown() {
    let (idempotency, store) = on_memory();
    let charge = idempotency.operation("charge").refuse_after_errors();
    assert_eq!(charge.key("o-1").run(|_| async { DOWN }).await, DOWN);
    assert_eq!(charge.key("o-1").run(|_| async { Ok::<_, ChargeError>(2) }).await, unknown());
    assert_eq!(only_record(&store).await.state, State::Settled(Settled::Unknown));
}

#[tokio::test]
async fn a_function_decides_for_each_error() {
    let (idempotency, _) = on_memory();
    let charge = idempotency.operation("charge").on_error(|error: &ChargeError| match error {
        ChargeError::Declined => OnError::Replay,
        ChargeError::GatewayDown => OnError::Retry,
        ChargeError::Idempotency(_) => OnError::Refuse,
    });
    let other = Err(ChargeError::code("other"));
    for (key, first, then) in
        [("declined", DECLINED, DECLINED), ("down", DOWN, Ok(2)), ("other", other.clone(), unknown())]
    {
        assert_eq!(charge.key(key).run(|_| async { first.clone() }).await, first);
        assert_eq!(charge.key(key).run(|_| async { Ok::<_, ChargeError>(2) }).await, then, "{key}");
    }
}

#[derive(Debug)]
struct Opaque(bool);

impl From<Error> for Opaque {
    fn from(_: Error) -> Self {
        Self(false)
    }
}

#[tokio::test]
async fn an_error_that_cannot_be_stored_can_still_be_decided_about() {
    let (idempotency, _) = on_memory();
    let charge = idempotency
        .operation("charge")
        .on_error(|error: &Opaque| if error.0 { Unstored::Refuse } else { Unstored::Retry });
    assert!(charge.key("a").run(|_| async { Err::<u32, _>(Opaque(false)) }).await.is_err());
    assert_eq!(charge.key("a").run(|_| async { Ok::<_, Opaque>(2) }).await.unwrap(), 2);
    assert!(charge.key("b").run(|_| async { Err::<u32, _>(Opaque(true)) }).await.is_err());
    assert!(charge.key("b").run(|_| async { Ok::<_, Opaque>(2) }).await.is_err());
}

#[tokio::test]
async fn an_error_after_begin_effects_is_not_released() {
    let (idempotency, _) = on_memory();
    let charge = idempotency.operation("charge");
    let first = charge.key("o-1").run(|attempt| async move {
        attempt.begin_effects().await?;
        DOWN
    });
    assert_eq!(first.await, DOWN);
    assert_eq!(charge.key("o-1").run(|_| async { Ok::<_, ChargeError>(2) }).await, unknown());
}

#[tokio::test]
async fn an_error_of_the_library_is_never_stored_for_replay() {
    let (idempotency, store) = on_memory();
    let outer = idempotency.operation("outer").replay_errors();
    let inner = idempotency.operation("inner");
    inner.key("k").fingerprint(&1).run(|_| async { Ok::<_, ChargeError>(1) }).await.unwrap();

    let reused = inner.key("k").fingerprint(&2);
    let result = outer.key("k").run(|_| reused.run(|_| async { Ok::<u32, ChargeError>(1) })).await;
    assert_eq!(result, Err(ChargeError::code("key-reused")));
    assert_eq!(records(&store).await.len(), 1, "the outer key was released");
    assert_eq!(outer.key("k").run(|_| async { Ok::<_, ChargeError>(2) }).await, Ok(2));
}

#[tokio::test]
async fn a_panic_propagates_and_leaves_the_outcome_unknown() {
    let (idempotency, store) = on_memory();
    let charge = idempotency.operation("charge");
    let call = charge.key("o-1");
    let panicked = tokio::spawn(call.run(|_| async {
        tokio::task::yield_now().await;
        assert!(records_are_fine(), "a bug in the body");
        Ok::<u32, ChargeError>(1)
    }));
    assert!(panicked.await.unwrap_err().is_panic());
    idempotency.shutdown().await;
    assert!(only_record(&store).await.state.is_abandoned());
    assert_eq!(charge.key("o-1").run(|_| async { Ok::<_, ChargeError>(2) }).await, unknown());
}

fn records_are_fine() -> bool {
    false
}

#[tokio::test]
async fn a_panic_under_on_crash_retry_runs_again_at_once() {
    let (idempotency, _) = on_memory();
    let charge = idempotency.operation("charge").on_crash(OnCrash::Retry);
    let call = charge.key("o-1");
    let panicked = tokio::spawn(call.run(|_| async {
        if !records_are_fine() {
            std::panic::panic_any("a bug in the body");
        }
        Ok::<u32, ChargeError>(1)
    }));
    assert!(panicked.await.unwrap_err().is_panic());
    idempotency.shutdown().await;
    let again = charge.key("o-1").run(|attempt| async move { Ok::<_, ChargeError>(attempt.number()) });
    assert_eq!(again.await, Ok(2));
}

/// Drops a call inside its body and gives what the next call gets.
async fn after_a_drop_in_the_body(
    idempotency: &Idempotency,
    policy: OnCrash,
    begin: bool,
) -> Result<u32, ChargeError> {
    let charge = idempotency.operation("charge").on_crash(policy);
    let call = charge.key("o-1").run(|attempt: Attempt| async move {
        if begin {
            attempt.begin_effects().await?;
        }
        std::future::pending().await
    });
    let dropped: Result<Result<u32, ChargeError>, _> =
        tokio::time::timeout(Duration::from_millis(1), call).await;
    assert!(dropped.is_err());
    idempotency.shutdown().await;
    charge.key("o-1").run(|attempt| async move { Ok::<_, ChargeError>(attempt.number()) }).await
}

#[tokio::test(start_paused = true)]
async fn a_drop_in_the_body_is_what_on_crash_says() {
    for (policy, begin, expected) in [
        (OnCrash::Refuse, false, unknown()),
        (OnCrash::Refuse, true, unknown()),
        (OnCrash::Retry, false, Ok(2)),
        (OnCrash::Retry, true, Ok(2)),
        (OnCrash::RetryBeforeEffects, false, Ok(2)),
        (OnCrash::RetryBeforeEffects, true, unknown()),
    ] {
        let (idempotency, _) = on_memory();
        let given = after_a_drop_in_the_body(&idempotency, policy, begin).await;
        assert_eq!(given, expected, "{policy:?}, effects begun: {begin}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_outlives_the_ttl_and_ends_with_unknown_ttl() {
    let (idempotency, _) =
        on_memory_with(|builder| builder.ttl(Duration::from_secs(1)).unknown_ttl(Duration::from_secs(1_000)));
    assert_eq!(after_a_drop_in_the_body(&idempotency, OnCrash::Refuse, false).await, unknown());
    tokio::time::advance(Duration::from_secs(999)).await;
    let again = || idempotency.operation("charge").key("o-1").run(|_| async { Ok::<_, ChargeError>(7) });
    assert_eq!(again().await, unknown());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(again().await, Ok(7));
}

#[tokio::test]
async fn a_key_that_always_crashes_ends_unknown() {
    let (idempotency, store) = on_memory_with(|builder| builder.max_attempts(3));
    let charge = idempotency.operation("charge").on_crash(OnCrash::Retry);
    let runs = Runs::default();
    for _ in 0..5 {
        let (call, runs) = (charge.key("o-1"), runs.clone());
        let call = tokio::spawn(call.run(move |_| async move {
            if runs.count() > 0 {
                std::panic::panic_any("poison");
            }
            Ok::<u32, ChargeError>(1)
        }));
        let _ = call.await;
        idempotency.shutdown().await;
    }
    assert_eq!(runs.total(), 3);
    assert_eq!(only_record(&store).await.state, State::Settled(Settled::Unknown));
}

/// A value that serializes once it may, and can always be read.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Stubborn(u32);

impl Serialize for Stubborn {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("will not"))
    }
}

#[tokio::test]
async fn a_result_that_cannot_be_serialized_is_the_callers_and_is_not_made_again() {
    let (idempotency, _) = on_memory();
    let run =
        || idempotency.operation("charge").key("o-1").run(|_| async { Ok::<_, ChargeError>(Stubborn(1)) });
    let (result, outcome) = with_outcome(run()).await;
    assert_eq!(result, Ok(Stubborn(1)));
    assert_eq!(outcome, Some(Outcome::Unrecorded(Unrecorded::NotSerializable)));
    assert_eq!(run().await, Err(ChargeError::code("result-not-retained")));
}

#[tokio::test]
async fn a_result_that_is_too_large_is_the_callers_and_is_not_made_again() {
    let (idempotency, _) = on_memory_with(|builder| builder.max_result_bytes(10));
    let run = |text: &'static str| {
        let call = idempotency.operation("charge").key(text);
        async move { call.run(|_| async { Ok::<_, ChargeError>(text.to_owned()) }).await }
    };
    assert_eq!(with_outcome(run("12345678")).await.1, Some(Outcome::Executed), "ten bytes of JSON fit");
    let (result, outcome) = with_outcome(run("123456789")).await;
    assert_eq!(
        (result.as_deref(), outcome),
        (Ok("123456789"), Some(Outcome::Unrecorded(Unrecorded::TooLarge)))
    );
    assert_eq!(run("123456789").await, Err(ChargeError::code("result-not-retained")));
}

#[tokio::test]
async fn a_stored_result_that_does_not_fit_is_unreadable_and_stays() {
    let (idempotency, store) = on_memory();
    let charge = idempotency.operation("charge");
    charge.key("o-1").run(|_| async { Ok::<_, Error>("secret text".to_owned()) }).await.unwrap();
    let before = only_record(&store).await;
    let error = charge.key("o-1").run(|_| async { Ok::<_, Error>(5u32) }).await.unwrap_err();
    assert_eq!(error.code(), "unreadable");
    assert!(!format!("{error} {error:?}").contains("secret"), "no stored result is in an error: {error:?}");
    assert_eq!(only_record(&store).await.state, before.state);
}

#[tokio::test]
async fn a_result_of_another_version_is_unreadable_even_if_it_would_decode() {
    let (idempotency, _) = on_memory();
    let charge = idempotency.operation("charge");
    charge.key("o-1").run(|_| async { Ok::<_, Error>(5u32) }).await.unwrap();
    let newer = charge.version(2);
    let error = newer.key("o-1").run(|_| async { Ok::<_, Error>(6u32) }).await.unwrap_err();
    assert_eq!(error.code(), "unreadable");
}

#[tokio::test]
async fn a_stored_error_that_this_policy_cannot_read_is_unreadable() {
    let (idempotency, _) = on_memory();
    let charge = idempotency.operation("charge");
    let replaying = charge.clone().replay_errors();
    assert_eq!(replaying.key("o-1").run(|_| async { DECLINED }).await, DECLINED);
    let later = charge.key("o-1").run(|_| async { Ok::<_, ChargeError>(2) }).await;
    assert_eq!(later, Err(ChargeError::code("unreadable")));
}

/// Turns every byte, and binds it to its key.
#[derive(Debug)]
struct Backwards {
    refuses: bool,
}

impl Codec for Backwards {
    fn encode(
        &self,
        key: &RecordKey,
        plain: Vec<u8>,
    ) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        if self.refuses {
            return Err("no".into());
        }
        Ok(key.as_str().bytes().chain(plain.into_iter().rev()).collect())
    }

    fn decode(
        &self,
        key: &RecordKey,
        stored: &[u8],
    ) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        let body = stored.strip_prefix(key.as_str().as_bytes()).ok_or("of another key")?;
        Ok(body.iter().rev().copied().collect())
    }
}

#[tokio::test]
async fn a_codec_stands_between_results_and_the_store() {
    let (idempotency, store) = on_memory_with(|builder| builder.codec(Backwards { refuses: false }));
    let run = || {
        idempotency.operation("charge").key("o-1").run(|_| async { Ok::<_, ChargeError>("abc".to_owned()) })
    };
    assert_eq!((run().await, run().await), (Ok("abc".to_owned()), Ok("abc".to_owned())));
    let State::Settled(Settled::Completed(stored)) = only_record(&store).await.state else { panic!() };
    assert_eq!(&*stored.bytes, b"default/charge/o-1\"cba\"");
}

#[tokio::test]
async fn a_codec_that_refuses_leaves_a_result_that_is_not_retained() {
    let (idempotency, _) = on_memory_with(|builder| builder.codec(Backwards { refuses: true }));
    let run = || idempotency.operation("charge").key("o-1").run(|_| async { Ok::<_, ChargeError>(1) });
    let (result, outcome) = with_outcome(run()).await;
    assert_eq!((result, outcome), (Ok(1), Some(Outcome::Unrecorded(Unrecorded::NotSerializable))));
    assert_eq!(run().await, Err(ChargeError::code("result-not-retained")));
}

#[tokio::test]
async fn a_stored_result_that_the_codec_cannot_decode_is_unreadable() {
    let (plain, store) = on_memory();
    plain.operation("charge").key("o-1").run(|_| async { Ok::<_, Error>(1) }).await.unwrap();
    let coded = Idempotency::builder().store(store).codec(Backwards { refuses: false }).build().unwrap();
    let error = coded.operation("charge").key("o-1").run(|_| async { Ok::<_, Error>(1) }).await.unwrap_err();
    assert_eq!(error.code(), "unreadable");
}

#[tokio::test]
async fn an_operator_resolves_what_is_unknown() {
    use idempotent_runtime::store::{Compared, OwnerToken, Resolution, Stored};
    let keep = Duration::from_secs(60);
    let stored = Stored { version: 1, bytes: b"7".as_slice().into() };
    for (resolution, expected) in [
        (Resolution::NotDone, Ok(2)),
        (Resolution::Done { settled: Settled::Completed(stored), keep }, Ok(7)),
    ] {
        let (idempotency, store) = on_memory();
        let charge = idempotency.operation("charge").refuse_after_errors();
        assert_eq!(charge.key("o-1").run(|_| async { DOWN }).await, DOWN);
        let record = only_record(&store).await;
        let resolved =
            store.resolve(&record.key, record.owner, OwnerToken::random(), &resolution).await.unwrap();
        assert_eq!(resolved, Compared::Changed);
        assert_eq!(charge.key("o-1").run(|_| async { Ok::<_, ChargeError>(2) }).await, expected);
    }
}

/// A value whose `Serialize` has a bug.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Explosive;

impl Serialize for Explosive {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        std::panic::panic_any("a bug in `Serialize`")
    }
}

#[tokio::test]
async fn a_panic_over_a_result_is_no_panic_of_the_body_and_it_does_not_run_again() {
    let (idempotency, _) = on_memory();
    let charge = idempotency.operation("charge").on_crash(OnCrash::Retry);
    let run = || charge.key("o-1").run(|_| async { Ok::<_, ChargeError>(Explosive) });
    let (result, outcome) = with_outcome(run()).await;
    assert_eq!(result, Ok(Explosive));
    assert_eq!(outcome, Some(Outcome::Unrecorded(Unrecorded::NotSerializable)));
    assert_eq!(run().await, Err(ChargeError::code("result-not-retained")));
}

/// A codec with a bug.
#[derive(Debug)]
struct Panics;

impl Codec for Panics {
    fn encode(&self, _: &RecordKey, _: Vec<u8>) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        std::panic::panic_any("a bug in the codec")
    }
    fn decode(&self, _: &RecordKey, _: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        Err("nothing was stored".into())
    }
}

#[tokio::test]
async fn a_panic_of_the_codec_leaves_a_result_that_is_not_retained() {
    let (idempotency, _) = on_memory_with(|builder| builder.codec(Panics));
    let charge = idempotency.operation("charge").on_crash(OnCrash::Retry);
    let run = || charge.key("o-1").run(|_| async { Ok::<_, ChargeError>(1) });
    assert_eq!(run().await, Ok(1));
    assert_eq!(run().await, Err(ChargeError::code("result-not-retained")));
}

#[tokio::test]
async fn a_panic_of_on_error_leaves_the_outcome_unknown_and_the_error_its_callers() {
    let (idempotency, _) = on_memory();
    let decide = |_: &ChargeError| -> OnError { std::panic::panic_any("a bug in `on_error`") };
    let charge = idempotency.operation("charge").on_crash(OnCrash::Retry).on_error(decide);
    assert_eq!(charge.key("o-1").run(|_| async { DECLINED }).await, DECLINED);
    assert_eq!(charge.key("o-1").run(|_| async { Ok::<_, ChargeError>(2) }).await, unknown());
}

#[tokio::test]
async fn a_panic_before_the_closure_gives_its_future_is_a_panic_of_the_body() {
    let (idempotency, _) = on_memory();
    let charge = idempotency.operation("charge");
    let call = charge.key("o-1");
    let panicked = tokio::spawn(call.run(|_| {
        assert!(records_are_fine(), "after an effect");
        async { Ok::<u32, ChargeError>(1) }
    }));
    assert!(panicked.await.unwrap_err().is_panic());
    idempotency.shutdown().await;
    assert_eq!(charge.key("o-1").run(|_| async { Ok::<_, ChargeError>(2) }).await, unknown());
}

#[tokio::test]
async fn an_error_of_the_library_that_the_body_dealt_with_does_not_change_what_its_own_error_means() {
    let (idempotency, _) = on_memory();
    let outer = idempotency.operation("outer").replay_errors();
    let inner = idempotency.operation("inner");
    inner.key("k").fingerprint(&1).run(|_| async { Ok::<_, ChargeError>(1) }).await.unwrap();
    let runs = Runs::default();
    for _ in 0..2 {
        let reused = inner.key("k").fingerprint(&2);
        let result = outer.key("k").run(|_| async {
            let ignored = reused.run(|_| async { Ok::<u32, ChargeError>(1) }).await;
            assert_eq!(ignored, Err(ChargeError::code("key-reused")));
            runs.count();
            tokio::task::yield_now().await;
            DECLINED
        });
        assert_eq!(result.await, DECLINED);
    }
    assert_eq!(runs.total(), 1, "declined is the result, and is replayed");
}
