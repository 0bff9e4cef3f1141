//! `self` with the hygiene of a macro that makes the impl. <https://github>.com/dtolnay/async-trait/issues/46 and 104

#![deny(warnings)]

use crate::props::*;

pub struct Till {
    pub name: String,
}

macro_rules! implement {
    ($till:ty, $method:ident) => {
        impl $till {
            #[idempotent(key = "self.name, order.id", name = "describe")]
            pub async fn $method(&self, order: Order) -> Result<String, Failure> {
                Ok(format!("{}{}", self.name, order.id))
            }
        }
    };
}

implement!(Till, describe);
