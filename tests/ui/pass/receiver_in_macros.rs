//! `self` inside macros of the body. <https://github>.com/dtolnay/async-trait/issues/17 and 68

#![deny(warnings)]

use crate::props::*;

pub struct Till {
    name: String,
}

impl Till {
    #[idempotent(key = "order.id", name = "describe")]
    pub async fn describe(&self, order: Order) -> Result<String, Failure> {
        macro_rules! name {
            ($till:expr) => {
                $till.name.clone()
            };
        }
        macro_rules! twice {
            ($($tokens:tt)*) => {
                format!("{}{}", $($tokens)*, $($tokens)*)
            };
        }
        Ok(format!("{}{}{}{}", self.name, name!(self), twice!(self.name), order.id))
    }
}

#[test]
fn compiles() {
    let till = Till { name: String::new() };
    drop(till.describe(Order::new()));
}
