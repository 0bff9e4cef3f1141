//! The tables, and the opening of a file that has them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use super::builder::Synchronous;
use super::fault::Fault;

/// The version of the tables that this version of the crate reads and writes.
const VERSION: i64 = 1;

/// What the writer thread needs to know to open the file.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) path: PathBuf,
    pub(super) table: String,
    pub(super) synchronous: Synchronous,
    pub(super) busy_timeout: Duration,
    pub(super) create: bool,
}

/// The statements that make the tables called after `table`.
///
/// The index on the operation ends in the id, which is the order of creation. Nothing else is kept that a reservation
/// would have to write: each page more makes its commit slower.
pub(super) fn statements(table: &str) -> String {
    format!(
        r#"CREATE TABLE "{table}" (
    id INTEGER PRIMARY KEY,                     -- the fence of the first attempt
    key TEXT NOT NULL UNIQUE COLLATE BINARY,
    operation TEXT NOT NULL COLLATE BINARY,
    state TEXT NOT NULL,                        -- running, completed, failed, not_retained or unknown
    owner BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    fingerprint_version INTEGER NOT NULL,
    fingerprint BLOB NOT NULL,
    effects_begun INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER,                        -- microseconds since the Unix epoch, like every time here
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    steps INTEGER NOT NULL DEFAULT 0,           -- how many rows of the steps table belong to this record
    result_version INTEGER,
    result BLOB
);
CREATE INDEX "{table}_by_operation" ON "{table}" (operation);
CREATE INDEX "{table}_by_expiry" ON "{table}" (expires_at);
CREATE TABLE "{table}_steps" (
    record INTEGER NOT NULL,
    name TEXT NOT NULL COLLATE BINARY,
    position INTEGER NOT NULL,
    state TEXT NOT NULL,                        -- begun or done
    result BLOB,
    PRIMARY KEY (record, name)
) WITHOUT ROWID;
CREATE TABLE "{table}_meta" (
    version INTEGER NOT NULL,
    fence INTEGER NOT NULL                      -- the greatest of all deleted records
);
INSERT INTO "{table}_meta" (version, fence) VALUES ({VERSION}, 0);
"#
    )
}

/// Whether `table` can name the tables: an identifier that needs no thought anywhere.
pub(super) fn check_table(table: &str) -> Result<(), Fault> {
    let mut bytes = table.bytes();
    let fits = bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && table.len() <= 60
        && !table.to_ascii_lowercase().starts_with("sqlite_");
    if fits {
        return Ok(());
    }
    Err(Fault::Refused(
        "the table name must be 1 to 60 letters, digits and underscores, begin with no digit, and not begin with \
         `sqlite_`"
            .into(),
    ))
}

/// Whether tables of `version` may be used.
pub(super) fn check_version(version: i64) -> Result<(), Fault> {
    if version == VERSION {
        return Ok(());
    }
    Err(Fault::Refused(format!(
        "the tables are of version {version}, and this version of idempotent-runtime works with version {VERSION}; \
         use the version of the crate that made them, or another table name"
    )))
}

/// Opens the file, sets the connection up, and sees to the tables.
///
/// All the waiting for locks is done here and in the writer thread: SQLite's own would not wait where two processes turn
/// on write-ahead logging at once, and could not serve reads meanwhile.
pub(super) fn open(location: &Location) -> Result<Connection, Fault> {
    check_path(&location.path)?;
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if location.create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let connection =
        Connection::open_with_flags(&location.path, flags).map_err(|error| explain(error, location))?;
    connection.busy_timeout(Duration::ZERO)?;
    let begun = Instant::now();
    loop {
        match set_up(&connection, location) {
            Ok(()) => return Ok(connection),
            Err(fault) if fault.is_busy() && begun.elapsed() < location.busy_timeout => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(Fault::Sql(error)) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
                return Err(Fault::Refused("the file is not a SQLite database".into()));
            }
            Err(fault) => return Err(fault),
        }
    }
}

/// Names that SQLite takes for databases that no other connection can see.
fn check_path(path: &Path) -> Result<(), Fault> {
    let private = path.as_os_str().is_empty() || path == Path::new(":memory:");
    if private {
        return Err(Fault::Refused(
            "the SQLite store needs a file; for records in memory there is the memory store".into(),
        ));
    }
    Ok(())
}

/// SQLite says "unable to open database file" to everything.
fn explain(error: rusqlite::Error, location: &Location) -> Fault {
    if error.sqlite_error_code() != Some(ErrorCode::CannotOpen) {
        return error.into();
    }
    let path = &location.path;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let words = if path.is_dir() {
        "this is a directory; name a file in it".into()
    } else if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
        format!("the directory {} does not exist; create it first", parent.display())
    } else if path.exists() || location.create {
        return Fault::Refused(format!("may not be opened or created ({error}); check the permissions"));
    } else {
        // Not created again in passing: the records that were in it would be forgotten.
        "the file does not exist".into()
    };
    if location.create { Fault::Refused(words) } else { Fault::Unavailable(words) }
}

fn set_up(connection: &Connection, location: &Location) -> Result<(), Fault> {
    if connection.is_readonly("main")? {
        return Err(Fault::Refused("the file or its directory is read-only; the store has to write".into()));
    }
    // Asked for first, because setting it takes the lock that another process may hold.
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if mode != "wal" {
        let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if mode != "wal" {
            return Err(Fault::Refused(format!(
                "write-ahead logging cannot be turned on here (journal mode {mode}); is this a network file system?"
            )));
        }
    }
    // The two of macOS, where an ordinary fsync stops at the drive's own cache; elsewhere they change nothing.
    connection.execute_batch(&format!(
        "PRAGMA synchronous = {}; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON; PRAGMA temp_store = MEMORY;",
        location.synchronous.as_sql()
    ))?;
    see_to_tables(connection, location)
}

fn see_to_tables(connection: &Connection, location: &Location) -> Result<(), Fault> {
    if has_tables(connection, &location.table)? {
        return Ok(());
    }
    if !location.create {
        return Err(Fault::Refused(format!(
            "there is no table `{0}_meta`; create the tables with the statements of SqliteStoreBuilder::schema, or \
             open the store with create_schema(true)",
            location.table
        )));
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let made = make_tables(connection, &location.table)
        .and_then(|()| connection.execute_batch("COMMIT").map_err(Fault::from));
    if !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    made
}

fn make_tables(connection: &Connection, table: &str) -> Result<(), Fault> {
    // Another process may have been faster, before the lock was ours.
    if has_tables(connection, table)? {
        return Ok(());
    }
    connection.execute_batch(&statements(table)).map_err(|error| {
        if error.to_string().contains("already exists") {
            return Fault::Refused(format!(
                "{error}, and it is not this store's; give the store another table name"
            ));
        }
        error.into()
    })
}

/// Whether the tables are there, in a version that we know.
fn has_tables(connection: &Connection, table: &str) -> Result<bool, Fault> {
    let found: i64 = connection.query_row(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE",
        [format!("{table}_meta")],
        |row| row.get(0),
    )?;
    if found == 0 {
        return Ok(false);
    }
    let version = connection
        .query_row(&format!("SELECT version FROM \"{table}_meta\""), [], |row| row.get(0))
        .optional()
        .map_err(|error| match error.sqlite_error_code() {
            None | Some(ErrorCode::Unknown) => {
                Fault::Refused(format!("`{table}_meta` is not this store's ({error})"))
            }
            _ => error.into(),
        })?;
    check_version(version.ok_or_else(|| Fault::Refused(format!("`{table}_meta` has no row")))?)?;
    Ok(true)
}
