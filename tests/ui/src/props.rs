pub use idempotent_runtime::idempotent;
pub use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub id: String,
    pub amount: u64,
    pub tenant: Tenant,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tenant {
    pub id: u32,
}

impl Order {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { id: "o-1".into(), amount: 100, tenant: Tenant { id: 7 } }
    }
    pub fn id(&self) -> &str {
        &self.id
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Receipt {
    pub id: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Failure(pub String);

impl From<idempotent_runtime::Error> for Failure {
    fn from(error: idempotent_runtime::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<std::num::ParseIntError> for Failure {
    fn from(error: std::num::ParseIntError) -> Self {
        Self(error.to_string())
    }
}

/// Not serializable.
#[derive(Debug)]
pub struct Gateway;

impl Gateway {
    pub async fn charge(&self, _amount: u64) -> Result<(), Failure> {
        Ok(())
    }
}

/// Not serializable either.
#[derive(Debug)]
pub struct Pool;

/// As web frameworks have it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Json<T>(pub T);

#[derive(Debug)]
pub struct State<T>(pub T);
