//! Type and const parameters that no argument shows.

use std::convert::TryFrom;

use ui_tests::*;

#[idempotent(key = "id")]
async fn only_in_the_body<T: Default>(id: u64) -> Result<u64, Failure> {
    let _ = T::default();
    Ok(id)
}

#[idempotent(key = "tenant-{order.tenant.id}-{order.id}")]
async fn only_in_the_result<T: Default + Serialize + serde::de::DeserializeOwned>(
    order: Order,
) -> Result<Vec<T>, Failure> {
    drop(order);
    Ok(Vec::new())
}

#[idempotent(key = "*")]
async fn number<const N: usize>(id: u64) -> Result<usize, Failure> {
    let _ = id;
    Ok(N)
}

#[idempotent(key = "value")]
async fn converted<V, W>(value: V) -> Result<u64, Failure>
where
    V: Serialize,
    W: TryFrom<V> + Into<u64>,
{
    W::try_from(value).map(Into::into).map_err(|_| Failure(String::new()))
}

fn main() {}
