//! A mistake in a function that a macro makes is shown in the call. <https://github>.com/rust-lang/rust/issues/75801

use ui_tests::*;

macro_rules! operation {
    ($name:ident, $key:literal) => {
        #[idempotent(key = $key)]
        async fn $name(order: Order) -> Result<u64, Failure> {
            Ok(order.amount)
        }
    };
}

operation!(charge, "ordr.id");

fn main() {}
