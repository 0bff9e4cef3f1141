//! What happens in and around the body of an annotated function.

#![allow(clippy::large_stack_arrays, reason = "large arguments are what is tested")]

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::Location;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use idempotent_runtime::{Error, Idempotency, Outcome, idempotent, with_outcome};
use tests::{ChargeError, Order, Runs, on_memory, only_record, records};

/// Leaves by `return`, by `?`, from inside a loop, or by its end.
#[idempotent(key = "order.id", skip(runs, way), on_error = "replay")]
async fn leaves(runs: &Runs, order: Order, way: &str) -> Result<u32, ChargeError> {
    runs.count();
    if way == "return" {
        return Err(ChargeError::Declined);
    }
    let parsed: u32 = match way {
        "question mark" => Err(ChargeError::Declined)?,
        "loop" => loop {
            if order.amount > 0 {
                return Ok(3);
            }
        },
        other => u32::try_from(other.len()).unwrap_or_default(),
    };
    Ok(parsed)
}

#[tokio::test]
async fn every_way_out_of_a_body_is_recorded() {
    for (way, expected) in [
        ("return", Err(ChargeError::Declined)),
        ("question mark", Err(ChargeError::Declined)),
        ("loop", Ok(3)),
        ("the end", Ok(7)),
    ] {
        let (idempotency, _) = on_memory();
        let runs = Runs::default();
        for _ in 0..2 {
            let answer = idempotency.within(leaves(&runs, Order::new("o-1", 1), way)).await;
            assert_eq!(answer, expected, "{way}");
        }
        assert_eq!(runs.total(), 1, "{way}");
    }
}

#[idempotent(key = "id", skip(way))]
async fn released(id: u32, way: &str) -> Result<u32, ChargeError> {
    if way == "return" {
        return Err(ChargeError::GatewayDown);
    }
    Err(ChargeError::GatewayDown)?;
    Ok(id)
}

#[tokio::test]
async fn an_early_error_releases_the_key() {
    let (idempotency, store) = on_memory();
    for way in ["return", "question mark"] {
        let answer = idempotency.within(released(1, way)).await;
        assert_eq!(answer, Err(ChargeError::GatewayDown));
        assert!(records(&store).await.is_empty(), "{way}");
    }
}

#[idempotent(key = "id")]
async fn generic<T: serde::Serialize + Send>(id: u32, value: T) -> Result<usize, ChargeError> {
    let _ = &value;
    Ok(size_of::<T>() + usize::try_from(id).unwrap_or_default())
}

/// All instantiations are one operation; what they were called with tells them apart.
#[tokio::test]
async fn two_types_under_one_key_are_told_apart_by_the_fingerprint() {
    let (idempotency, store) = on_memory();
    idempotency
        .within(async {
            assert_eq!(generic(1, 5_u64).await, Ok(9));
            assert_eq!(generic(1, "5").await, Err(ChargeError::code("key-reused")));
            assert_eq!(generic(1, 5_u8).await, Ok(9), "a number is its value, so this is the same call");
        })
        .await;
    assert_eq!(only_record(&store).await.key.operation().as_str(), "attribute_bodies::generic");
}

#[idempotent(key = "id", skip(go))]
async fn waits(id: u32, amount: u32, go: &tokio::sync::Notify) -> Result<u32, ChargeError> {
    go.notified().await;
    Ok(id + amount)
}

#[tokio::test]
async fn a_call_is_started_or_completed_or_in_progress_or_other() {
    let (idempotency, _) = on_memory();
    let go = Arc::new(tokio::sync::Notify::new());
    let call = |amount: u32| {
        let (idempotency, go) = (idempotency.clone(), Arc::clone(&go));
        async move { with_outcome(idempotency.within(waits(1, amount, &go))).await }
    };
    let first = tokio::spawn(call(1));
    tokio::task::yield_now().await;
    assert_eq!(call(1).await.0, Err(ChargeError::code("in-progress")));
    assert_eq!(call(2).await.0, Err(ChargeError::code("key-reused")));
    go.notify_one();
    assert_eq!(first.await.unwrap(), (Ok(2), Some(Outcome::Executed)));
    assert_eq!(call(1).await, (Ok(2), Some(Outcome::Replayed)));
}

#[tokio::test]
async fn two_keys_run_at_the_same_time() {
    #[idempotent(key = "id", skip(both))]
    async fn meets(id: u32, both: &tokio::sync::Barrier) -> Result<u32, ChargeError> {
        both.wait().await;
        Ok(id)
    }
    let (idempotency, _) = on_memory();
    let both = tokio::sync::Barrier::new(2);
    let calls = idempotency.within(async { tokio::join!(meets(1, &both), meets(2, &both)) });
    assert_eq!(calls.await, (Ok(1), Ok(2)));
}

/// The line in which a body panics is the user's, and so is that of a caller that is tracked.
#[test]
fn a_panic_and_a_location_are_on_the_users_lines() {
    #[track_caller]
    fn here() -> u32 {
        Location::caller().line()
    }
    #[idempotent(key = "id")]
    async fn lines(id: u32) -> Result<(u32, u32), ChargeError> {
        let _ = id;
        Ok((line!(), here()))
    }
    #[idempotent(key = "id")]
    async fn panics(id: u32) -> Result<u32, ChargeError> {
        assert_eq!(id, 1, "a bug in the body"); // The line that the message names.
        Ok(id)
    }
    let first = line!() - 10;
    let (idempotency, _) = on_memory();
    let block = |idempotency: &Idempotency, id: u32| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(idempotency.within(async { (lines(id).await, panics(id + 1).await) }))
    };
    let (given, _) = block(&idempotency, 0);
    assert_eq!(given, Ok((first + 3, first + 3)));
    let seen = Arc::new(Mutex::new(None));
    let hook = std::panic::take_hook();
    let to = Arc::clone(&seen);
    std::panic::set_hook(Box::new(move |info| {
        *to.lock().unwrap() = info.location().map(|at| (at.file().to_owned(), at.line()));
    }));
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| block(&idempotency, 1)));
    std::panic::set_hook(hook);
    assert!(panic.is_err());
    let at = seen.lock().unwrap().take();
    assert_eq!(at, Some((file!().to_owned(), first + 7)));
}

/// A large argument is in one box, once: a small stack is enough, also without optimization.
#[test]
fn an_argument_of_64_kib_fits_a_thread_of_256_kib() {
    #[idempotent(key = "id")]
    async fn large(id: u32, block: Block) -> Result<u32, ChargeError> {
        tokio::task::yield_now().await;
        Ok(id + u32::from(block.0[0]))
    }
    struct Block([u8; 64 * 1024]);
    impl serde::Serialize for Block {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&self.0)
        }
    }
    let call = Box::pin(large(1, Block([1; 64 * 1024])));
    let small = std::thread::Builder::new().stack_size(256 * 1024).spawn(|| {
        let (idempotency, _) = on_memory();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(idempotency.within(call))
    });
    assert_eq!(small.unwrap().join().unwrap(), Ok(2));
}

/// The future of a call is not `Send` when its body is not, and still runs.
#[test]
fn a_body_that_is_not_send_runs_where_it_is() {
    #[idempotent(key = "id")]
    async fn local(id: u32) -> Result<u32, ChargeError> {
        let shared = std::rc::Rc::new(id);
        let mut polled = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut polled, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        Ok(*shared)
    }
    let (idempotency, _) = on_memory();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    assert_eq!(runtime.block_on(idempotency.within(local(7))), Ok(7));
}

#[idempotent(key = "id", skip(runs))]
async fn rate(runs: &Runs, id: u32) -> Result<f64, Error> {
    runs.count();
    Ok(f64::NAN / f64::from(id))
}

#[idempotent(key = "id", skip(runs))]
async fn pairs(runs: &Runs, id: u32) -> Result<BTreeMap<(u32, u32), u32>, Error> {
    runs.count();
    Ok(BTreeMap::from([((id, id), id)]))
}

/// JSON has no number that is none, and no pair as a key: what cannot be written, or not be read, never runs again.
#[tokio::test]
async fn a_result_that_does_not_survive_json_is_an_error_to_duplicates_and_never_a_second_run() {
    let (idempotency, _) = on_memory();
    let runs = Runs::default();
    assert!(idempotency.within(rate(&runs, 1)).await.is_ok_and(f64::is_nan));
    let duplicate = idempotency.within(rate(&runs, 1)).await;
    assert_eq!(duplicate.map_err(|error| error.code()), Err("unreadable"));
    assert_eq!(runs.total(), 1);

    assert_eq!(idempotency.within(pairs(&runs, 1)).await.map(|pairs| pairs.len()).ok(), Some(1));
    let duplicate = idempotency.within(pairs(&runs, 1)).await;
    assert_eq!(duplicate.map_err(|error| error.code()), Err("result-not-retained"));
    assert_eq!(runs.total(), 2);
}
