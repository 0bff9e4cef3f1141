//! The operations as tasks: what is run on a connection, and run again where that is needed.

use std::sync::atomic::{AtomicI64, Ordering};

use sqlx::PgConnection;

use super::ask::Value;
use super::attempt::{self, Complete, Renew};
use super::fault::Fault;
use super::link::Task;
use super::{Sql, admin, examine, reserve, schema};
use crate::doctor::Finding;
use crate::key::RecordKey;
use crate::store::{
    Compared, Lease, ListQuery, OwnerToken, Page, PutStep, Record, Release, Reserve, Reserved, Resolution,
    Step, Write,
};

/// What is asked, with the statements for it.
pub(super) struct On<'a, R>(pub(super) &'a Sql, pub(super) R);

/// Makes tasks of functions.
macro_rules! tasks {
    ($($request:ty => $answer:ty: |$connection:ident, $sql:ident, $asked:pat_param| $run:expr;)+) => {$(
        impl Task for On<'_, $request> {
            type Answer = $answer;

            async fn run(&self, $connection: &mut PgConnection) -> Result<$answer, Fault> {
                let On($sql, $asked) = self;
                $run.await
            }
        }
    )+};
}

pub(super) struct LetGo<'a>(pub(super) &'a RecordKey, pub(super) OwnerToken, pub(super) Release);
pub(super) struct PutOne<'a>(
    pub(super) &'a RecordKey,
    pub(super) OwnerToken,
    pub(super) &'a Step,
    pub(super) Lease,
);
pub(super) struct Load<'a>(pub(super) &'a RecordKey);
pub(super) struct Resolve<'a>(
    pub(super) &'a RecordKey,
    pub(super) (OwnerToken, OwnerToken),
    pub(super) &'a Resolution,
);
pub(super) struct Forget<'a>(pub(super) &'a RecordKey, pub(super) OwnerToken);
pub(super) struct Purge<'a>(pub(super) usize, pub(super) &'a AtomicI64);
pub(super) struct Mark<'a>(pub(super) &'a RecordKey);
pub(super) struct Examine;
/// Looks at the table, and makes it if it is missing.
pub(super) struct Prepare;

tasks! {
    Reserve<'_> => Reserved: |connection, sql, request| reserve::reserve(connection, sql, request);
    Renew => Write: |connection, sql, renew| attempt::renew(connection, sql, renew);
    Complete => Write: |connection, sql, complete| attempt::complete(connection, sql, complete);
    LetGo<'_> => Write: |connection, sql, LetGo(key, owner, how)| attempt::release(connection, sql, key, *owner, *how);
    PutOne<'_> => PutStep: |connection, sql, PutOne(key, owner, step, lease)|
        attempt::put_step(connection, sql, (key, *owner), step, *lease);
    Load<'_> => Option<Record>: |connection, sql, Load(key)| admin::load(connection, sql, key);
    Resolve<'_> => Compared: |connection, sql, Resolve(key, owners, resolution)|
        admin::resolve(connection, sql, key, *owners, resolution);
    Forget<'_> => Compared: |connection, sql, Forget(key, seen)| admin::forget(connection, sql, key, *seen);
    &ListQuery => Page: |connection, sql, query| admin::list(connection, sql, query);
    Mark<'_> => (): |connection, sql, Mark(key)| mark(connection, sql, key);
    Examine => Vec<Finding>: |connection, sql, Examine| examine::examine(connection, sql);
    Prepare => (): |connection, sql, Prepare| schema::prepare(connection, sql);
    Purge<'_> => usize: |connection, sql, Purge(limit, place)| purge(connection, sql, *limit, place);
}

/// Notes that somebody waits for `key`.
async fn mark(connection: &mut PgConnection, sql: &Sql, key: &RecordKey) -> Result<(), Fault> {
    sql.sending.written(connection, &sql.statements.watch, vec![Value::Text(key.as_str())]).await?;
    Ok(())
}

async fn purge(
    connection: &mut PgConnection,
    sql: &Sql,
    limit: usize,
    place: &AtomicI64,
) -> Result<usize, Fault> {
    let mut at = place.load(Ordering::Relaxed);
    let purged = admin::purge(connection, sql, limit, &mut at).await;
    place.store(at, Ordering::Relaxed);
    purged
}
