//! The table, and finding out whether it is there and ours.

use sqlx::MySqlPool;
use sqlx::mysql::{MySqlArguments, MySqlRow};

use super::fault::Fault;
use super::routine::Routine;
use super::row::get;
use super::session::{ask, ask_as_text, bind};
use crate::stores::sql::Names;

/// The version of the table that this version of the crate reads and writes.
const VERSION: u32 = 1;

/// The comment of the table, before its version: how a table is known for the store's.
const COMMENT: &str = "idempotent-rs records, version ";

/// The longest name that the server takes.
const LONGEST_NAME: usize = 64;

/// The table. Keys are bytes, because every collation finds some different texts equal. No index is on what a call does
/// not look for but `list` and `purge`.
const TABLE: &str = "CREATE TABLE {table} (
    {key} VARBINARY(255) NOT NULL,
    {operation} VARBINARY(255) NOT NULL,
    {version} SMALLINT NOT NULL,                  -- of the form of this record
    {state} VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
                                                  -- running, completed, failed, not_retained or unknown
    {owner} BINARY(16) NOT NULL,
    {attempt} INT UNSIGNED NOT NULL,
    {fence} BIGINT NOT NULL,
    {fingerprint_version} TINYINT UNSIGNED NOT NULL,
    {fingerprint} BINARY(32) NOT NULL,
    {effects_begun} BOOLEAN NOT NULL,
    {lease_until} BIGINT NULL,                    -- microseconds since the Unix epoch, like every time here
    {created_at} BIGINT NOT NULL,
    {expires_at} BIGINT NOT NULL,
    {result_version} INT UNSIGNED NULL,
    {result} LONGBLOB NULL,
    {steps} LONGBLOB NULL,
    PRIMARY KEY ({key}),
    KEY {by_operation} ({operation}, {created_at}),
    KEY {by_expiry} ({expires_at})
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC COMMENT = '{comment}'";

/// What a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) maria: bool,
    pub(super) version: (u32, u32, u32),
    pub(super) max_packet: u64,
}

impl Server {
    /// Asks the server, and refuses one that is too old.
    pub(super) async fn ask(pool: &MySqlPool) -> Result<Self, Fault> {
        let text = "SELECT VERSION(), CAST(@@max_allowed_packet AS SIGNED)".into();
        let rows = ask(pool, &text, &MySqlArguments::default()).await?;
        let row = rows.first().ok_or(Fault::Unreadable("version"))?;
        let packet: i64 = get(row, 1, "max_allowed_packet")?;
        Self::parse(get(row, 0, "version")?, packet.unsigned_abs())
    }

    fn parse(version: &str, max_packet: u64) -> Result<Self, Fault> {
        let maria = version.to_ascii_lowercase().contains("mariadb");
        // Old clients were shown MariaDB as a replica of MySQL 5.5.5.
        let digits = version.strip_prefix("5.5.5-").unwrap_or(version);
        let mut parts = digits.split(['.', '-']).map_while(|part| part.parse().ok());
        let mut next = || parts.next().unwrap_or(0);
        let parsed = (next(), next(), next());
        let least = if maria { (10, 5, 0) } else { (8, 0, 0) };
        if parsed < least {
            return Err(Fault::Refused(format!(
                "the server is of version {version}; the store needs MariaDB 10.5 or MySQL 8.0"
            )));
        }
        Ok(Self { maria, version: parsed, max_packet })
    }

    /// Whether the server prepares blocks of statements; otherwise they have to be stored procedures.
    pub(super) fn prepares_blocks(&self) -> bool {
        self.maria && self.version >= (10, 6, 2)
    }
}

/// Whether the names can be used.
pub(super) fn check(names: &Names) -> Result<(), Fault> {
    names.check(LONGEST_NAME).map_err(Fault::Refused)?;
    if names.has_prefix("__") {
        return Err(Fault::Refused("the name of a column must not begin with two underscores".into()));
    }
    Ok(())
}

/// The statement that makes the table.
pub(super) fn table(names: &Names) -> String {
    let by_expiry = names.quoted(&format!("{}_by_expiry", names.bare_table()));
    let text = TABLE.replace("{by_expiry}", &by_expiry).replace("{comment}", &format!("{COMMENT}{VERSION}"));
    names.render(&text)
}

/// The statements that make the procedures.
pub(super) fn procedures(names: &Names) -> Vec<String> {
    Routine::ALL.iter().map(|routine| routine.create(names)).collect()
}

/// What is known of the table.
#[derive(Debug)]
pub(super) struct Found {
    comment: String,
    pub(super) engine: String,
}

/// Looks for the table.
pub(super) async fn find(pool: &MySqlPool, names: &Names) -> Result<Option<Found>, Fault> {
    let text =
        "SELECT CAST(table_comment AS CHAR(2048)), CAST(engine AS CHAR(64)) FROM information_schema.tables \
                WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ?"
            .into();
    let rows = ask(pool, &text, &table_arguments(names)?).await?;
    let found = |row: &MySqlRow| {
        let comment: Option<String> = get(row, 0, "table_comment")?;
        let engine: Option<String> = get(row, 1, "engine")?;
        Ok(Found { comment: comment.unwrap_or_default(), engine: engine.unwrap_or_default() })
    };
    rows.first().map(found).transpose()
}

fn table_arguments(names: &Names) -> Result<MySqlArguments, Fault> {
    let mut arguments = MySqlArguments::default();
    let schema = names.table().split_once('.').map(|(schema, _)| schema);
    bind(&mut arguments, schema)?;
    bind(&mut arguments, names.bare_table())?;
    Ok(arguments)
}

impl Found {
    /// Whether the table is one that this version may use.
    pub(super) fn check(&self, names: &Names) -> Result<(), Fault> {
        let table = names.table();
        let version = self.comment.strip_prefix(COMMENT).ok_or_else(|| {
            Fault::Refused(format!(
                "there is a table `{table}` that is not this store's, or has lost its comment, `{COMMENT}{VERSION}`; \
                 give the store another table name"
            ))
        })?;
        if version == VERSION.to_string() {
            return Ok(());
        }
        Err(Fault::Refused(format!(
            "the table `{table}` is of version {version}, and this version of idempotent-runtime works with version \
             {VERSION}; use the version of the crate that made it, or another table name"
        )))
    }
}

/// The procedures that are missing.
pub(super) async fn missing_procedures(pool: &MySqlPool, names: &Names) -> Result<Vec<Routine>, Fault> {
    let text = "SELECT CAST(routine_name AS CHAR(64)) FROM information_schema.routines \
                WHERE routine_schema = COALESCE(?, DATABASE()) AND routine_name LIKE CONCAT(?, '\\_%')"
        .into();
    let rows = ask(pool, &text, &table_arguments(names)?).await?;
    let there: Vec<String> = rows.iter().map(|row| get(row, 0, "routine_name")).collect::<Result<_, _>>()?;
    let name = |routine: &Routine| routine.procedure_name(names.bare_table());
    let missing = |routine: &&Routine| !there.iter().any(|there| there.eq_ignore_ascii_case(&name(routine)));
    Ok(Routine::ALL.iter().filter(missing).copied().collect())
}

/// Makes what is missing, if that is wished, and refuses what does not fit.
pub(super) async fn see_to(
    pool: &MySqlPool,
    names: &Names,
    by_procedures: bool,
    create: bool,
) -> Result<(), Fault> {
    let how = "with the statements of MySqlStoreBuilder::schema, or open the store with create_schema(true)";
    match find(pool, names).await? {
        Some(found) => found.check(names)?,
        None if create => {
            make(pool, table(names)).await?;
            // Somebody else may have been faster, with another version.
            if let Some(found) = find(pool, names).await? {
                found.check(names)?;
            }
        }
        None => {
            let table = names.table();
            return Err(Fault::Refused(format!("there is no table `{table}`; create it {how}")));
        }
    }
    if !by_procedures {
        return Ok(());
    }
    for routine in missing_procedures(pool, names).await? {
        if !create {
            let name = routine.procedure_name(names.table());
            return Err(Fault::Refused(format!("there is no procedure `{name}`; create it {how}")));
        }
        make(pool, routine.create(names)).await?;
    }
    Ok(())
}

async fn make(pool: &MySqlPool, statement: String) -> Result<(), Fault> {
    match ask_as_text(pool, statement).await {
        Err(fault) if !fault.exists_already() => Err(fault),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_known_by_their_versions() {
        let parse = |text| {
            Server::parse(text, 1).map(|server| (server.maria, server.version, server.prepares_blocks()))
        };
        assert_eq!(parse("10.11.14-MariaDB-0+deb12u2").unwrap(), (true, (10, 11, 14), true));
        assert_eq!(parse("5.5.5-10.6.1-MariaDB-log").unwrap(), (true, (10, 6, 1), false));
        assert_eq!(parse("11.4.2-MariaDB").unwrap(), (true, (11, 4, 2), true));
        assert_eq!(parse("8.0.36").unwrap(), (false, (8, 0, 36), false));
        assert_eq!(parse("8.4.0-commercial").unwrap(), (false, (8, 4, 0), false));
        for old in ["5.7.44-log", "10.4.34-MariaDB", "nonsense"] {
            assert!(matches!(parse(old), Err(Fault::Refused(_))), "{old}");
        }
    }

    #[test]
    fn the_table_says_whose_it_is() {
        let names = Names::new('`');
        let text = table(&names);
        assert!(!text.contains(['{', '}']), "{text}");
        assert!(
            text.contains("`key` VARBINARY(255)")
                && text.contains("COMMENT = 'idempotent-rs records, version 1'")
        );
        let found = |comment: &str| Found { comment: comment.into(), engine: "InnoDB".into() };
        assert!(found("idempotent-rs records, version 1").check(&names).is_ok());
        let newer = found("idempotent-rs records, version 2").check(&names).unwrap_err();
        assert!(newer.to_string().contains("version 2"), "{newer}");
        assert!(found("orders").check(&names).unwrap_err().to_string().contains("another table name"));
    }
}
