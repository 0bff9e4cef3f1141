//! What newer editions of the language have in a body: `let … else`, chains, async closures, labelled blocks.

#![deny(warnings)]
#![allow(clippy::never_loop, clippy::while_let_loop)]

use crate::props::*;

#[idempotent(key = "id")]
pub async fn let_else(id: Option<u8>) -> Result<u8, Failure> {
    let Some(id) = id else { return Ok(0) };
    Ok(id)
}

#[idempotent(key = "id")]
pub async fn async_closure(id: u8) -> Result<u8, Failure> {
    let half = async |number: u8| -> Result<u8, Failure> {
        if number % 2 == 1 {
            return Err(Failure("odd".into()));
        }
        Ok(number / 2)
    };
    half(half(id).await?).await
}

#[idempotent(key = "id")]
pub async fn labelled(id: u8) -> Result<u8, Failure> {
    let found = 'search: {
        for number in 0..id {
            if number * number == id {
                break 'search number;
            }
        }
        return Err(Failure("no root".into()));
    };
    'outer: loop {
        loop {
            break 'outer Ok(found);
        }
    }
}
