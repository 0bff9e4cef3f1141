//! What the server says about itself, and what follows from it.

use sqlx::PgPool;

use super::Sql;
use super::fault::Fault;
use crate::doctor::Finding;

pub(super) async fn examine(_pool: &PgPool, _sql: &Sql) -> Result<Vec<Finding>, Fault> {
    Ok(Vec::new())
}
