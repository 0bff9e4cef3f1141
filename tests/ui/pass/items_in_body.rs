//! Items, macros and modules in the body

#![deny(warnings)]

use crate::props::*;

#[idempotent(key = "id")]
pub async fn items(id: u32) -> Result<u32, Failure> {
    use std::collections::BTreeMap as Map;
    const LIMIT: u32 = 3;
    static NAMES: [&str; 1] = ["one"];
    struct Local(u32);
    impl Local {
        fn get(&self) -> u32 {
            self.0
        }
    }
    macro_rules! add {
        ($a:expr, $b:expr) => {
            $a + $b
        };
    }
    let map: Map<u32, &str> = [(LIMIT, NAMES[0])].into();
    Ok(add!(Local(id).get(), LIMIT) + u32::try_from(map.len()).unwrap_or(0))
}
