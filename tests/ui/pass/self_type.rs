//! `Self` in arguments, result and turbofish. <https://github>.com/dtolnay/async-trait/issues/9, 73 and 92

#![deny(warnings)]

use crate::props::*;

#[derive(Clone, Serialize, Deserialize)]
pub struct Sum(u64);

impl Sum {
    #[idempotent(key = "other", name = "sum")]
    pub async fn add(&self, other: Self) -> Result<Self, Failure> {
        let all: Vec<Self> = [self.clone(), other].into_iter().collect::<Vec<Self>>();
        Ok(Self(all.iter().map(|Self(amount)| amount).sum()))
    }
}
