//! `self` from the caller, the signature from the macro. <https://github>.com/dtolnay/async-trait/issues/104

#![deny(warnings)]

use crate::props::*;

pub struct Till {
    pub name: String,
}

macro_rules! implement {
    ($this:ident, $body:block) => {
        impl Till {
            #[idempotent(key = order.id, name = "describe")]
            pub async fn describe(&$this, order: Order) -> Result<String, Failure> {
                let _ = &order;
                $body
            }
        }
    };
}

implement!(self, { Ok(self.name.clone()) });
