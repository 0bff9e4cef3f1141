//! Calls that differ in a type only: two functions, two methods, two types of one method.

use idempotent_runtime::{Idempotency, idempotent, stores::MemoryStore};
use tests::ChargeError;

trait Currency {
    const NAME: &'static str;
}

struct Euro;
struct Yen;

impl Currency for Euro {
    const NAME: &'static str = "EUR";
}

impl Currency for Yen {
    const NAME: &'static str = "JPY";
}

fn on_memory() -> Idempotency {
    Idempotency::new(MemoryStore::new())
}

fn conflict<T>() -> Result<T, ChargeError> {
    Err(ChargeError::code("operation-conflict"))
}

#[idempotent(key = (C::NAME, id))]
async fn pay<C: Currency>(id: u32) -> Result<String, ChargeError> {
    Ok(format!("{} {id}", C::NAME))
}

#[idempotent(key = "id", fingerprint = (id, C::NAME))]
async fn bill<C: Currency>(id: u32) -> Result<String, ChargeError> {
    Ok(format!("{} {id}", C::NAME))
}

#[tokio::test]
async fn a_type_in_the_key_makes_two_calls_and_in_the_fingerprint_a_mismatch() {
    on_memory()
        .within(async {
            assert_eq!(pay::<Euro>(1).await.unwrap(), "EUR 1");
            assert_eq!(pay::<Yen>(1).await.unwrap(), "JPY 1");
            assert_eq!(bill::<Euro>(1).await.unwrap(), "EUR 1");
            assert_eq!(bill::<Yen>(1).await, Err(ChargeError::code("key-reused")));
        })
        .await;
}

/// A method that a trait provides, and one of a generic type: the attribute sees one function.
trait Account {
    const CURRENCY: &'static str;

    #[idempotent(name = "account/close", key = "id")]
    async fn close(&self, id: u32) -> Result<String, ChargeError> {
        Ok(format!("{} {id}", Self::CURRENCY))
    }

    #[idempotent(name = "account/open", key = (Self::CURRENCY, id))]
    async fn open(&self, id: u32) -> Result<String, ChargeError> {
        Ok(format!("{} {id}", Self::CURRENCY))
    }
}

struct Ledger<C>(u32, std::marker::PhantomData<C>);

impl<C: Currency> Account for Ledger<C> {
    const CURRENCY: &'static str = C::NAME;
}

impl<C: Currency> Ledger<C> {
    fn new(number: u32) -> Self {
        Self(number, std::marker::PhantomData)
    }

    #[idempotent(name = "ledger/book", key = "id")]
    async fn book(&self, id: u32) -> Result<String, ChargeError> {
        Ok(format!("{} {id}", C::NAME))
    }

    #[idempotent(name = "ledger/number", key = "self.0, id")]
    async fn number(&self, id: u32) -> Result<String, ChargeError> {
        Ok(format!("{} {} {id}", C::NAME, self.0))
    }

    #[idempotent(name = "ledger/any", key = "id", skip(Self))]
    async fn any(&self, id: u32) -> Result<String, ChargeError> {
        Ok(format!("{} {id}", C::NAME))
    }
}

#[tokio::test]
async fn a_method_of_two_types_is_a_conflict_and_not_a_mix_up() {
    let (euro, yen) = (Ledger::<Euro>::new(1), Ledger::<Yen>::new(2));
    let idempotency = on_memory();
    idempotency
        .within(async {
            for _ in 0..2 {
                assert_eq!(euro.close(1).await.unwrap(), "EUR 1");
                assert_eq!(yen.close(1).await, conflict());
                assert_eq!(yen.close(2).await, conflict(), "whatever the key");
                assert_eq!(yen.book(1).await.unwrap(), "JPY 1");
                assert_eq!(euro.book(1).await, conflict());
            }
        })
        .await;
    assert_eq!(
        on_memory().within(yen.close(1)).await.unwrap(),
        "JPY 1",
        "another handle knows nothing of the first"
    );
    assert_eq!(idempotency.within(euro.close(1)).await.unwrap(), "EUR 1", "nor does the first forget");
}

#[tokio::test]
async fn a_key_that_names_the_type_or_the_receiver_makes_two_calls() {
    let (euro, yen) = (Ledger::<Euro>::new(1), Ledger::<Yen>::new(2));
    on_memory()
        .within(async {
            assert_eq!(euro.open(1).await.unwrap(), "EUR 1");
            assert_eq!(yen.open(1).await.unwrap(), "JPY 1");
            assert_eq!(euro.number(1).await.unwrap(), "EUR 1 1");
            assert_eq!(yen.number(1).await.unwrap(), "JPY 2 1");
        })
        .await;
}

#[tokio::test]
async fn a_type_that_is_left_out_makes_one_call() {
    let (euro, yen) = (Ledger::<Euro>::new(1), Ledger::<Yen>::new(2));
    on_memory()
        .within(async {
            assert_eq!(euro.any(1).await.unwrap(), "EUR 1");
            assert_eq!(yen.any(1).await.unwrap(), "EUR 1", "replayed, as it was said");
        })
        .await;
}

/// A lifetime is no type of its own.
struct Borrowed<'a>(&'a str);

impl Borrowed<'_> {
    #[idempotent(name = "borrowed/read", key = "id")]
    async fn read(&self, id: u32) -> Result<String, ChargeError> {
        Ok(format!("{} {id}", self.0))
    }
}

#[tokio::test]
async fn lifetimes_make_no_difference() {
    let local = String::from("local");
    on_memory()
        .within(async {
            assert_eq!(Borrowed("static").read(1).await.unwrap(), "static 1");
            assert_eq!(Borrowed(&local).read(1).await.unwrap(), "static 1");
        })
        .await;
}
