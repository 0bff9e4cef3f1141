//! What the attribute does, on functions and methods, as a user would see it.

use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::{
    Error, Idempotency, OnError, Outcome, Reconciled, attempt, idempotent, with_outcome,
};
use tests::{ChargeError, Order, Runs, on_memory, on_memory_with, only_record, poll_times, records};

#[idempotent(key = "order.id", ttl = "24h", skip(runs))]
async fn charge(runs: &Runs, order: Order) -> Result<u32, ChargeError> {
    let _ = &order.amount;
    Ok(runs.count())
}

#[tokio::test]
async fn a_duplicate_replays_and_another_amount_is_refused() {
    let (idempotency, store) = on_memory();
    let runs = Runs::default();
    idempotency
        .within(async {
            assert_eq!(charge(&runs, Order::new("o-1", 5)).await, Ok(1));
            let (replayed, outcome) = with_outcome(charge(&runs, Order::new("o-1", 5))).await;
            assert_eq!((replayed, outcome), (Ok(1), Some(Outcome::Replayed)));
            assert_eq!(charge(&runs, Order::new("o-1", 6)).await, Err(ChargeError::code("key-reused")));
        })
        .await;
    assert_eq!(only_record(&store).await.key.operation().as_str(), "attribute::charge");
}

#[tokio::test]
async fn without_a_handle_the_body_does_not_run() {
    let runs = Runs::default();
    assert_eq!(charge(&runs, Order::new("o-1", 5)).await, Err(ChargeError::code("not-configured")));
    assert_eq!(runs.total(), 0);
}

struct Service {
    idempotency: Idempotency,
    tenant: String,
    runs: Runs,
}

impl Service {
    #[idempotent(name = "pay", key = "self.tenant, order.id", store = self.idempotency)]
    async fn pay(&self, order: &Order) -> Result<u32, ChargeError> {
        Ok(self.runs.count() + u32::try_from(order.amount).unwrap_or_default())
    }

    #[idempotent(name = "pay-later", key = "id", store = self.idempotency, skip(go), detached)]
    async fn pay_later(self: Arc<Self>, id: u32, go: Arc<tokio::sync::Notify>) -> Result<u32, ChargeError> {
        go.notified().await;
        Ok(self.runs.count() + id)
    }
}

fn service(tenant: &str) -> Service {
    let (idempotency, _) = on_memory();
    Service { idempotency, tenant: tenant.to_owned(), runs: Runs::default() }
}

#[tokio::test]
async fn a_method_takes_its_handle_and_its_tenant_from_self() {
    let acme = service("acme");
    let umbrella = Service { tenant: "umbrella".to_owned(), runs: Runs::default(), ..acme.clone_handle() };
    let order = Order::new("o-1", 10);
    assert_eq!(acme.pay(&order).await, Ok(11));
    assert_eq!(acme.pay(&order).await, Ok(11));
    assert_eq!(umbrella.pay(&order).await, Ok(11), "another tenant is another key");
    assert_eq!((acme.runs.total(), umbrella.runs.total()), (1, 1));
    let keys: Vec<_> = records(acme.idempotency.store().unwrap())
        .await
        .iter()
        .map(|record| record.key.as_str().to_owned())
        .collect();
    assert_eq!(keys, ["default/pay/acme/o-1", "default/pay/umbrella/o-1"]);
}

impl Service {
    fn clone_handle(&self) -> Self {
        Self { idempotency: self.idempotency.clone(), tenant: String::new(), runs: Runs::default() }
    }
}

#[tokio::test]
async fn a_detached_body_outlives_its_caller() {
    let service = Arc::new(service("acme"));
    let go = Arc::new(tokio::sync::Notify::new());
    let mut call = Box::pin(Arc::clone(&service).pay_later(7, Arc::clone(&go)));
    assert!(poll_times(call.as_mut(), 3).is_pending());
    drop(call);
    go.notify_one();
    service.idempotency.shutdown().await;
    go.notify_one();
    assert_eq!(Arc::clone(&service).pay_later(7, go).await, Ok(8));
    assert_eq!(service.runs.total(), 1);
}

#[idempotent(key = "id", skip(panics), detached)]
async fn detached_panic(id: u32, panics: bool) -> Result<u32, ChargeError> {
    if panics {
        std::panic::panic_any("a bug in the body");
    }
    Ok(id)
}

#[tokio::test]
async fn a_panic_of_a_detached_body_is_its_callers() {
    let (idempotency, _) = on_memory();
    let handle = idempotency.clone();
    let call = tokio::spawn(async move { handle.within(detached_panic(1, true)).await });
    let panic = call.await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"a bug in the body"));
    let again = idempotency.within(detached_panic(1, false)).await;
    assert_eq!(again, Err(ChargeError::code("outcome-unknown")));
}

#[test]
fn a_detached_body_without_a_runtime_does_not_run() {
    let (idempotency, store) = on_memory();
    let mut call = Box::pin(idempotency.within(detached_panic(1, false)));
    let refused = poll_times(call.as_mut(), 1);
    assert_eq!(refused, std::task::Poll::Ready(Err(ChargeError::code("not-configured"))));
    assert!(futures_free(records(&store)).is_empty());
}

/// Runs what never waits.
fn futures_free<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    loop {
        if let std::task::Poll::Ready(output) = poll_times(future.as_mut(), 1) {
            return output;
        }
    }
}

#[test]
fn a_call_on_memory_needs_no_runtime() {
    let (idempotency, _) = on_memory();
    let runs = Runs::default();
    for _ in 0..2 {
        let given = futures_free(idempotency.within(charge(&runs, Order::new("o-1", 5))));
        assert_eq!(given, Ok(1));
    }
}

fn decide(error: &ChargeError) -> OnError {
    match error {
        ChargeError::Declined => OnError::Replay,
        ChargeError::GatewayDown | ChargeError::Idempotency(_) => OnError::Retry,
    }
}

#[idempotent(key = "order.id", on_error = decide, skip(runs))]
async fn decided(runs: &Runs, order: Order) -> Result<u32, ChargeError> {
    match runs.count() {
        run if order.amount == 0 => Err(ChargeError::Idempotency(run.to_string())),
        1 => Err(ChargeError::GatewayDown),
        2 => Err(ChargeError::Declined),
        run => Ok(run),
    }
}

#[tokio::test]
async fn on_error_may_be_a_function() {
    let (idempotency, _) = on_memory();
    let runs = Runs::default();
    let call = || idempotency.within(decided(&runs, Order::new("o-1", 5)));
    assert_eq!(call().await, Err(ChargeError::GatewayDown));
    assert_eq!(call().await, Err(ChargeError::Declined));
    assert_eq!(call().await, Err(ChargeError::Declined));
    assert_eq!(runs.total(), 2);
}

#[idempotent(key = "order.id", skip(order.amount))]
async fn without_amount(order: Order) -> Result<u64, ChargeError> {
    Ok(order.amount)
}

#[idempotent(key = "order.id", fingerprint = "order.id")]
async fn only_id(order: Order) -> Result<u64, ChargeError> {
    Ok(order.amount)
}

#[idempotent(key = "*")]
async fn whole(order: Order, times: u32) -> Result<u64, ChargeError> {
    Ok(order.amount * u64::from(times))
}

#[tokio::test]
async fn what_is_skipped_or_not_chosen_is_not_compared() {
    let (idempotency, store) = on_memory();
    idempotency
        .within(async {
            assert_eq!(without_amount(Order::new("a", 1)).await, Ok(1));
            assert_eq!(without_amount(Order::new("a", 2)).await, Ok(1));
            assert_eq!(only_id(Order::new("a", 1)).await, Ok(1));
            assert_eq!(only_id(Order::new("a", 2)).await, Ok(1));
            assert_eq!(whole(Order::new("a", 1), 3).await, Ok(3));
            assert_eq!(whole(Order::new("a", 1), 4).await, Ok(4), "other arguments are another key");
            assert_eq!(whole(Order::new("a", 1), 3).await, Ok(3));
        })
        .await;
    assert_eq!(records(&store).await.len(), 4);
}

#[idempotent(key = "charge-{order.id}-{part}")]
async fn templated(order: &Order, part: u8) -> Result<String, ChargeError> {
    Ok(attempt()?.key().map(|key| key.as_str().to_owned()).unwrap_or_default())
}

#[tokio::test]
async fn a_template_keeps_its_parts_apart() {
    let (idempotency, _) = on_memory();
    let key = idempotency.within(templated(&Order::new("a/b", 1), 2)).await.unwrap();
    assert_eq!(key, "default/attribute::templated!charge-{}-{}/a%2Fb/2");
}

mod one {
    #[idempotent_runtime::idempotent(name = "same-name", key = "id")]
    pub(super) async fn charge(id: u32) -> Result<u32, tests::ChargeError> {
        Ok(id)
    }
}

mod other {
    #[idempotent_runtime::idempotent(name = "same-name", key = "id")]
    pub(super) async fn charge(id: u32) -> Result<u32, tests::ChargeError> {
        Ok(id + 1)
    }
}

#[tokio::test]
async fn two_functions_of_one_name_are_a_conflict_and_not_a_mix_up() {
    let (idempotency, _) = on_memory();
    assert_eq!(idempotency.within(one::charge(1)).await, Ok(1));
    assert_eq!(idempotency.within(other::charge(1)).await, Err(ChargeError::code("operation-conflict")));
    assert_eq!(idempotency.within(one::charge(1)).await, Ok(1));
    let (elsewhere, _) = on_memory();
    assert_eq!(elsewhere.within(other::charge(1)).await, Ok(2), "another handle knows nothing of the first");
}

#[idempotent(key = "id", on_missing_key = "run", skip(runs))]
async fn optional(id: Option<u32>, runs: &Runs) -> Result<u32, ChargeError> {
    Ok(runs.count() + id.unwrap_or_default())
}

#[tokio::test]
async fn a_missing_key_may_run_every_time() {
    let (idempotency, _) = on_memory();
    let runs = Runs::default();
    idempotency
        .within(async {
            assert_eq!(optional(None, &runs).await, Ok(1));
            assert_eq!(optional(None, &runs).await, Ok(2));
            assert_eq!(optional(Some(10), &runs).await, Ok(13));
            assert_eq!(optional(Some(10), &runs).await, Ok(13));
        })
        .await;
}

#[idempotent(key = "id", on_crash = "retry_before_effects", lease = "30s", wait = "1m", version = 3)]
async fn careful(id: u32, hang: Hang) -> Result<u32, ChargeError> {
    if matches!(hang, Hang::Before) {
        std::future::pending::<()>().await;
    }
    attempt()?.begin_effects().await?;
    if matches!(hang, Hang::After) {
        std::future::pending::<()>().await;
    }
    Ok(attempt()?.number() + id)
}

/// Where a body hangs; not part of its arguments' meaning.
enum Hang {
    Never,
    Before,
    After,
}

impl serde::Serialize for Hang {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

#[tokio::test(start_paused = true)]
async fn retry_before_effects_retries_before_and_refuses_after() {
    let (idempotency, _) = on_memory();
    for (hang, id, expected) in
        [(Hang::Before, 10, Ok(12)), (Hang::After, 20, Err(ChargeError::code("outcome-unknown")))]
    {
        let dropped = idempotency.within(careful(id, hang));
        assert!(tokio::time::timeout(Duration::from_secs(1), dropped).await.is_err());
        idempotency.shutdown().await;
        assert_eq!(idempotency.within(careful(id, Hang::Never)).await, expected);
    }
}

#[tokio::test]
async fn a_body_that_changes_its_argument_does_not_change_the_key() {
    #[idempotent(key = "order.id")]
    async fn changes(mut order: Order) -> Result<String, ChargeError> {
        order.id.push_str("-changed");
        Ok(order.id)
    }
    let (idempotency, _) = on_memory();
    for _ in 0..2 {
        assert_eq!(idempotency.within(changes(Order::new("a", 1))).await.as_deref(), Ok("a-changed"));
    }
}

#[tokio::test]
async fn a_key_expression_is_evaluated_once() {
    #[idempotent(key = format!("{}-{}", id, counted.count()), skip(counted))]
    async fn expressed(id: u32, counted: &Runs) -> Result<u32, ChargeError> {
        Ok(id)
    }
    let (idempotency, _) = on_memory();
    let counted = Runs::default();
    assert_eq!(idempotency.within(expressed(1, &counted)).await, Ok(1));
    assert_eq!(counted.total(), 1);
}

#[tokio::test]
async fn the_attribute_and_the_function_form_are_the_same_call() {
    #[idempotent(name = "both", key = "id")]
    async fn both(id: u32) -> Result<u32, Error> {
        Ok(id + 1)
    }
    let (idempotency, _) = on_memory_with(|builder| builder.namespace("shop"));
    assert_eq!(idempotency.within(both(1)).await.unwrap(), 2);
    let call = idempotency.operation("both").key(&1).argument("id", &1);
    assert_eq!(call.run(|_| async { Ok::<u32, Error>(0) }).await.unwrap(), 2);
}

/// The future of an annotated function, and that of the plain one.
#[test]
fn an_annotated_future_is_little_larger_than_the_plain_one() {
    #[idempotent(key = "id")]
    async fn annotated(id: u64, block: Vec<u8>, array: [u64; 32]) -> Result<u64, ChargeError> {
        plain(id, block, array).await
    }
    async fn plain(id: u64, block: Vec<u8>, array: [u64; 32]) -> Result<u64, ChargeError> {
        tokio::task::yield_now().await;
        Ok(id + array.iter().sum::<u64>() + u64::try_from(block.len()).unwrap_or_default())
    }
    async fn wrapped(id: u64, block: Vec<u8>, array: [u64; 32]) -> Result<u64, ChargeError> {
        plain(id, block, array).await
    }
    #[idempotent(key = "id", on_error = "replay", wait = "5s", reconcile = find(id))]
    async fn reconciled(id: u64, block: Vec<u8>, array: [u64; 32]) -> Result<u64, ChargeError> {
        plain(id, block, array).await
    }
    async fn find(id: u64) -> Result<Reconciled<u64>, ChargeError> {
        let large = [id; 512];
        tokio::task::yield_now().await;
        Ok(Reconciled::Done(large.iter().sum()))
    }
    let arguments = size_of::<(u64, Vec<u8>, [u64; 32])>();
    let of_annotated = size_of_val(&annotated(1, Vec::new(), [0; 32]));
    let of_reconciled = size_of_val(&reconciled(1, Vec::new(), [0; 32]));
    let of_plain = size_of_val(&wrapped(1, Vec::new(), [0; 32]));
    for annotated in [of_annotated, of_reconciled] {
        assert!(
            annotated <= of_plain + arguments + 512,
            "{annotated} against {of_plain} + {arguments} + 512"
        );
    }
}

#[idempotent(key = "id", skip(go, runs), detached, on_missing_key = "run")]
async fn perhaps_unprotected(
    id: Option<u32>,
    go: Arc<tokio::sync::Notify>,
    runs: Runs,
) -> Result<Option<u32>, ChargeError> {
    go.notified().await;
    runs.count();
    Ok(id)
}

#[tokio::test]
async fn a_shutdown_waits_for_a_detached_body_that_runs_unprotected() {
    let (idempotency, _) = on_memory();
    let (go, runs) = (Arc::new(tokio::sync::Notify::new()), Runs::default());
    let mut call = Box::pin(idempotency.within(perhaps_unprotected(None, Arc::clone(&go), runs.clone())));
    assert!(poll_times(call.as_mut(), 3).is_pending());
    drop(call);
    go.notify_one();
    idempotency.shutdown().await;
    assert_eq!(runs.total(), 1);
}
