//! The same body twice, annotated and not: `tests/coverage/check` compares what of each is counted.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test program")]

use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::{Error, Idempotency, idempotent};

async fn plain(id: u32, mut amount: u32) -> Result<u32, Error> {
    if id == 1 {
        return Ok(amount);
    }
    let Some(rest) = amount.checked_sub(10) else {
        return Ok(0);
    };
    amount = match rest {
        0 => 1,
        rest if rest > 1_000 => 2,
        rest => rest,
    };
    for step in 0..3 {
        std::future::ready(step).await;
        amount += step;
    }
    Ok(amount)
}

#[idempotent(key = "id")]
async fn annotated(id: u32, mut amount: u32) -> Result<u32, Error> {
    if id == 1 {
        return Ok(amount);
    }
    let Some(rest) = amount.checked_sub(10) else {
        return Ok(0);
    };
    amount = match rest {
        0 => 1,
        rest if rest > 1_000 => 2,
        rest => rest,
    };
    for step in 0..3 {
        std::future::ready(step).await;
        amount += step;
    }
    Ok(amount)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let idempotency = Idempotency::new(MemoryStore::new());
    for (id, amount) in [(1, 5), (2, 5), (3, 10), (4, 20)] {
        let expected = plain(id, amount).await.unwrap();
        assert_eq!(idempotency.within(annotated(id, amount)).await.unwrap(), expected);
    }
}
