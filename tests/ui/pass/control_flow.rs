//! Labels, `break`, `continue` and `return` keep their meaning

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "id")]
pub async fn search(id: u32) -> Result<u32, Failure> {
    let found = 'outer: loop {
        for candidate in 0..9 {
            if candidate == 3 {
                continue;
            }
            if candidate > id {
                break 'outer candidate;
            }
        }
        if id > 10 {
            return Ok(0);
        }
    };
    Ok(found)
}
