//! The table, and its creation.

use sqlx::{AssertSqlSafe, Executor, PgConnection};

use super::super::sql::Names;
use super::Sql;
use super::ask::Value;
use super::fault::Fault;
use super::record::get;

/// The version of the table that this version of the crate reads and writes.
pub(super) const VERSION: u32 = 1;

/// How the comment on the table begins; a version follows.
const COMMENT: &str = "idempotent-runtime: table version ";

/// The statements that make the table.
///
/// The primary key and the index are on columns that a record keeps for its whole life, and every page has room for what
/// a result adds to a row, so that the update which completes a record stays on its page and touches no index. Narrow
/// columns of one size stand first, so that no space is lost between them.
const TABLE: &str = r#"CREATE TABLE {table} (
    {attempt} bigint NOT NULL,
    {fence} bigint NOT NULL,
    {created_at} timestamptz NOT NULL,
    {lease_until} timestamptz,
    {expires_at} timestamptz NOT NULL,
    {result_version} bigint,
    {fingerprint_version} smallint NOT NULL,
    {version} smallint NOT NULL DEFAULT 1,
    {effects_begun} boolean NOT NULL DEFAULT false,
    {watched} boolean NOT NULL DEFAULT false,
    {state} text COLLATE "C" NOT NULL,
    {key} text COLLATE "C" PRIMARY KEY,
    {operation} text COLLATE "C" NOT NULL,
    {owner} bytea NOT NULL,
    {fingerprint} bytea NOT NULL,
    {step_names} text[],
    {step_results} bytea[],
    {result} bytea
) WITH (fillfactor = {fillfactor}, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX {by_operation} ON {table} ({operation}, {created_at});
COMMENT ON TABLE {table} IS '{comment}{version_number}';
"#;

/// The statements that make the table called as `names` says.
pub(super) fn statements(names: &Names, fillfactor: u8) -> String {
    let text = TABLE
        .replace("{fillfactor}", &fillfactor.to_string())
        .replace("{comment}", COMMENT)
        .replace("{version_number}", &VERSION.to_string());
    names.render(&text)
}

/// Whether the table is there, and of which version its comment says that it is.
pub(super) async fn version(connection: &mut PgConnection, sql: &Sql) -> Result<Option<u32>, Fault> {
    let statement = sqlx::SqlStr::from_static(
        "SELECT to_regclass($1::text) IS NOT NULL, obj_description(to_regclass($1::text), 'pg_class')",
    );
    let rows = sql.sending.rows(connection, &statement, vec![Value::Text(&sql.table)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    if !get::<bool>(row, 0, "table")? {
        return Ok(None);
    }
    let comment: Option<&str> = get(row, 1, "comment")?;
    // A team that makes the table by itself may say something else about it.
    let said = comment.and_then(|comment| comment.split_once(COMMENT)).map(|(_, rest)| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(VERSION)
    });
    Ok(Some(said.unwrap_or(VERSION)))
}

/// Makes the table if it is missing. Whoever comes at the same time waits and finds it.
pub(super) async fn create(connection: &mut PgConnection, sql: &Sql) -> Result<(), Fault> {
    // In one block, which is one transaction on one connection also behind a proxy.
    let text = format!(
        "DO $idempotent$ BEGIN PERFORM pg_advisory_xact_lock(7312986); IF to_regclass('{}') IS NULL THEN {} END IF; \
         END $idempotent$",
        sql.table, sql.schema
    );
    connection.execute(sqlx::raw_sql(AssertSqlSafe(text))).await?;
    Ok(())
}

/// Sees to it that the table is there and of a version that this crate knows.
pub(super) async fn prepare(connection: &mut PgConnection, sql: &Sql) -> Result<(), Fault> {
    if version(connection, sql).await?.is_none() && sql.create {
        create(connection, sql).await?;
    }
    match version(connection, sql).await? {
        None => Err(Fault::Refused(format!(
            "there is no table `{}`; create it with the statements of PostgresStoreBuilder::schema, or leave \
             create_schema on",
            sql.table
        ))),
        Some(version) if version > VERSION => Err(Fault::Refused(newer(version))),
        Some(_) => Ok(()),
    }
}

pub(super) fn newer(version: u32) -> String {
    format!(
        "the table is of version {version}, and this version of idempotent-runtime works with version {VERSION}; use the \
         version of the crate that made it, or another table name"
    )
}
