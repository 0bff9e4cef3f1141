//! As many arguments as anybody writes

#![deny(warnings)]

use crate::props::*;

#[allow(clippy::too_many_arguments, clippy::many_single_char_names)]
#[idempotent(key = "a, b, c, d")]
pub async fn sum(
    a: u8,
    b: u8,
    c: u8,
    d: u8,
    e: u8,
    f: u8,
    g: u8,
    h: u8,
    i: u8,
    j: u8,
    k: u8,
    l: u8,
) -> Result<u8, Failure> {
    Ok(a + b + c + d + e + f + g + h + i + j + k + l)
}
