//! A parameter that the type of an argument shows is what the argument is.

use ui_tests::*;

#[idempotent(key = "id", skip(T))]
async fn charge<T: Serialize>(id: u64, value: T) -> Result<u64, Failure> {
    drop(value);
    Ok(id)
}

#[idempotent(key = "id", skip(Self))]
async fn no_receiver(id: u64) -> Result<u64, Failure> {
    Ok(id)
}

fn main() {}
