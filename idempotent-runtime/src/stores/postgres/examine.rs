//! What the server says about itself and the table, and what follows from it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, SqlStr};

use super::super::sql::SqlColumn;
use super::ask::Value;
use super::fault::Fault;
use super::record::get;
use super::{Sql, schema};
use crate::doctor::Finding;

/// The oldest version that the tests have seen.
const OLDEST: i64 = 140_000;

/// Clocks that are further apart are worth a word.
const SKEW: Duration = Duration::from_secs(5);

/// What an update writes. An index on one of these makes every update write all indexes.
const CHANGING: [SqlColumn; 11] = [
    SqlColumn::State,
    SqlColumn::Owner,
    SqlColumn::Attempt,
    SqlColumn::Fence,
    SqlColumn::EffectsBegun,
    SqlColumn::LeaseUntil,
    SqlColumn::ExpiresAt,
    SqlColumn::Result,
    SqlColumn::StepNames,
    SqlColumn::StepResults,
    SqlColumn::Watched,
];

const FIXED: [SqlColumn; 7] = [
    SqlColumn::Key,
    SqlColumn::Operation,
    SqlColumn::FingerprintVersion,
    SqlColumn::Fingerprint,
    SqlColumn::CreatedAt,
    SqlColumn::ResultVersion,
    SqlColumn::Version,
];

const SERVER: &str = "SELECT current_setting('server_version_num')::bigint, pg_is_in_recovery(), \
     current_setting('transaction_read_only') = 'on', current_setting('synchronous_commit'), \
     current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on', \
     current_setting('default_transaction_isolation'), current_setting('server_encoding'), \
     (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, current_setting('autovacuum') = 'on', \
     (SELECT count(*) FROM pg_stat_replication), current_setting('synchronous_standby_names')";

const TABLE: &str = "SELECT c.relpersistence::text, row_security_active(c.oid), \
 (SELECT string_agg(p, ', ') FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p \
  WHERE NOT has_table_privilege(c.oid, p)), \
 (SELECT string_agg(n, ', ') FROM unnest($2::text[] || $3::text[]) AS n WHERE NOT EXISTS \
  (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = n AND NOT a.attisdropped)), \
 EXISTS (SELECT FROM pg_index AS x JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = x.indkey[0] \
  WHERE x.indrelid = c.oid AND x.indisunique AND x.indisvalid AND x.indpred IS NULL AND x.indnkeyatts = 1 \
  AND a.attname = $4::text), \
 (SELECT string_agg(DISTINCT x.indexrelid::regclass::text, ', ') FROM pg_index AS x \
  JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (x.indkey) \
  WHERE x.indrelid = c.oid AND a.attname = ANY ($2::text[])) \
 FROM pg_class AS c WHERE c.oid = to_regclass($1::text)";

const MAY_CREATE: &str =
    "SELECT coalesce(has_schema_privilege(coalesce($1::text, current_schema()), 'CREATE'), false)";

/// Asks the server, and says what it thinks of the answers.
pub(super) async fn examine(connection: &mut PgConnection, sql: &Sql) -> Result<Vec<Finding>, Fault> {
    let mut findings = Vec::new();
    let before = SystemTime::now();
    let rows = sql.sending.rows(connection, &SqlStr::from_static(SERVER), Vec::new()).await?;
    if let Some(row) = rows.first() {
        server(row, &mut findings)?;
        findings.extend(skew(get(row, 8, "clock")?, before, SystemTime::now()));
    }
    match schema::version(connection, sql).await? {
        Some(version) if version > schema::VERSION => findings.push(Finding::breaks(
            schema::newer(version),
            "run the version of idempotent-runtime that made the table in all processes, or give another table name",
        )),
        Some(_) => table(connection, sql, &mut findings).await?,
        None => missing(connection, sql, &mut findings).await?,
    }
    Ok(findings)
}

fn server(row: &PgRow, findings: &mut Vec<Finding>) -> Result<(), Fault> {
    let (version, standby, read_only): (i64, bool, bool) =
        (get(row, 0, "version")?, get(row, 1, "recovery")?, get(row, 2, "read only")?);
    if standby {
        findings.push(Finding::breaks(
            "the server is a standby: nothing can be written to it, and it may lag behind",
            "connect to the primary (`target_session_attrs` of libpq has no counterpart here: name its address)",
        ));
    } else if read_only {
        findings.push(Finding::breaks(
            "transactions are read-only by default (`default_transaction_read_only`), and the store has to write",
            "turn it off for the role or the database of the store",
        ));
    }
    if version < OLDEST {
        findings.push(Finding::weakens(
            format!("the server is of version {}, and the store is tested from 14 on", version / 10_000),
            "upgrade the server",
        ));
    }
    let commit: &str = get(row, 3, "synchronous_commit")?;
    if commit == "off" {
        findings.push(Finding::weakens(
            "`synchronous_commit` is off: when the server crashes, the last reservations and results are forgotten, and \
             calls that had ended run again",
            "set it to `on` for the role of the store: ALTER ROLE … SET synchronous_commit = on",
        ));
    }
    for (index, setting) in [(4, "fsync"), (5, "full_page_writes")] {
        if !get::<bool>(row, index, "setting")? {
            findings.push(Finding::weakens(
                format!("`{setting}` is off: a crash of the system or a power loss can destroy the database"),
                format!("set `{setting} = on`"),
            ));
        }
    }
    let isolation: &str = get(row, 6, "isolation")?;
    if !matches!(isolation, "read committed" | "read uncommitted") {
        findings.push(Finding::weakens(
            format!("transactions are `{isolation}` by default: calls that meet at one key cost another round trip each"),
            "ALTER ROLE … SET default_transaction_isolation = 'read committed' for the role of the store",
        ));
    }
    let encoding: &str = get(row, 7, "encoding")?;
    if encoding != "UTF8" {
        findings.push(Finding::weakens(
            format!("the database is in {encoding}: keys with characters that are not in it are refused"),
            "create the database with the encoding UTF8",
        ));
    }
    if !get::<bool>(row, 9, "autovacuum")? {
        findings.push(Finding::weakens(
            "`autovacuum` is off: the space of old row versions is not used again, and the table grows",
            "turn it on, or vacuum the table often",
        ));
    }
    let replicas: i64 = get(row, 10, "replicas")?;
    let synchronous: &str = get(row, 11, "synchronous_standby_names")?;
    if replicas > 0 && (synchronous.is_empty() || commit == "local") {
        findings.push(Finding::weakens(
            "the replicas are asynchronous: a fail-over to one forgets the last reservations and results, and calls that \
             had ended run again",
            "name them in `synchronous_standby_names`, or fail over only to a replica that has everything",
        ));
    }
    Ok(())
}

/// `server`: the server's time in microseconds since the Unix epoch, asked for between two times of ours.
fn skew(server: i64, before: SystemTime, after: SystemTime) -> Option<Finding> {
    let server = UNIX_EPOCH + Duration::from_micros(u64::try_from(server).unwrap_or(0));
    let off = match (before.duration_since(server), server.duration_since(after)) {
        (Ok(behind), _) => behind,
        (_, Ok(ahead)) => ahead,
        _ => return None,
    };
    (off > SKEW).then(|| {
        Finding::weakens(
            format!("the clock of the server and that of this machine are {} seconds apart", off.as_secs()),
            "set both by NTP; leases and ttls go by the server's clock alone, but times in logs and `created_at` do not \
             agree, and when the server's is set back, leases and results last longer",
        )
    })
}

async fn table(connection: &mut PgConnection, sql: &Sql, findings: &mut Vec<Finding>) -> Result<(), Fault> {
    let name = |column: &SqlColumn| sql.names.column(*column);
    let values = vec![
        Value::Text(&sql.table),
        Value::Texts(CHANGING.iter().map(name).collect()),
        Value::Texts(FIXED.iter().map(name).collect()),
        Value::Text(sql.names.column(SqlColumn::Key)),
    ];
    let rows = sql.sending.rows(connection, &SqlStr::from_static(TABLE), values).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    let table = sql.names.table();
    let persistence: &str = get(row, 0, "persistence")?;
    if persistence != "p" {
        findings.push(Finding::breaks(
            format!("the table `{table}` is unlogged or temporary: after a crash of the server every record is gone"),
            format!("ALTER TABLE {} SET LOGGED", sql.table),
        ));
    }
    if get(row, 1, "row security")? {
        findings.push(Finding::breaks(
            format!("row security is in force on `{table}`: records that are hidden from the store collide with its own"),
            "let the role of the store see all rows (BYPASSRLS, or a policy that is always true)",
        ));
    }
    if let Some(privileges) = get::<Option<&str>>(row, 2, "privileges")? {
        findings.push(Finding::breaks(
            format!("the role of the store may not {privileges} on `{table}`"),
            format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO …", sql.table),
        ));
    }
    if let Some(columns) = get::<Option<&str>>(row, 3, "columns")? {
        findings.push(Finding::breaks(
            format!("`{table}` has no column {columns}"),
            "compare it with PostgresStoreBuilder::schema; columns of other names are told to the builder",
        ));
    }
    if !get::<bool>(row, 4, "key")? {
        findings.push(Finding::breaks(
            format!("nothing in `{table}` keeps two records from having one key"),
            format!("make `{}` the primary key", sql.names.column(SqlColumn::Key)),
        ));
    }
    if let Some(indexes) = get::<Option<&str>>(row, 5, "indexes")? {
        findings.push(Finding::weakens(
            format!(
                "`{table}` has an index on columns that every call changes ({indexes}): each update writes all indexes, \
                 and the table and they grow"
            ),
            "drop it; the store needs only the primary key and the index on operation and creation",
        ));
    }
    Ok(())
}

async fn missing(connection: &mut PgConnection, sql: &Sql, findings: &mut Vec<Finding>) -> Result<(), Fault> {
    let table = sql.names.table();
    let schema = table.split_once('.').map(|(schema, _)| schema);
    let may =
        sql.sending.rows(connection, &SqlStr::from_static(MAY_CREATE), vec![Value::OptText(schema)]).await;
    // An error: there is no such schema.
    let may_create = match may {
        Ok(rows) => rows.first().map_or(Ok(false), |row| get(row, 0, "privilege"))?,
        Err(fault) if fault.breaks_connection() => return Err(fault),
        Err(_) => false,
    };
    if !sql.create {
        findings.push(Finding::breaks(
            format!("there is no table `{table}`, and the store is not to create it"),
            "create it with the statements of PostgresStoreBuilder::schema",
        ));
    } else if !may_create {
        findings.push(Finding::breaks(
            format!("there is no table `{table}`, and the role of the store may not create it"),
            "create it with the statements of PostgresStoreBuilder::schema, and GRANT SELECT, INSERT, UPDATE, DELETE",
        ));
    }
    Ok(())
}
