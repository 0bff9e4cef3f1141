//! The operations as the server runs them: each a block of statements, sent as one.
//!
//! A block reads first and writes only if there is something to write; it locks the record's row, then takes the clock,
//! then decides, all in one transaction that begins and ends on the server. So an operation is one round trip, no answer
//! of the server is waited for with a lock in hand, and a caller that goes away leaves nothing open.
//!
//! MariaDB runs such a block as it is and keeps it prepared. MySQL has no blocks outside stored procedures, so there the
//! same text is the body of one.

use std::sync::Arc;

use crate::stores::sql::Names;

/// The version of the procedures' bodies: part of their names, so that two versions of this crate can share a database.
pub(super) const PROCEDURES: u32 = 1;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Routine {
    Load,
    Reserve,
    Renew,
    Complete,
    Release,
    PutStep,
    Resolve,
    Forget,
    Purge,
}

type Parameters = &'static [(&'static str, &'static str)];

const KEY: (&str, &str) = ("__key", "VARBINARY(255)");
const OWNER: (&str, &str) = ("__owner", "BINARY(16)");
const LEASE: (&str, &str) = ("__lease", "BIGINT");
const SILENCE: (&str, &str) = ("__silence", "BIGINT");
const KEEP: (&str, &str) = ("__keep", "BIGINT");
const SETTLED: (&str, &str) = ("__settled", "VARCHAR(16) CHARACTER SET ascii");
const RESULT_VERSION: (&str, &str) = ("__result_version", "BIGINT");
const RESULT: (&str, &str) = ("__result", "LONGBLOB");

impl Routine {
    pub(super) const ALL: [Self; 9] = [
        Self::Load,
        Self::Reserve,
        Self::Renew,
        Self::Complete,
        Self::Release,
        Self::PutStep,
        Self::Resolve,
        Self::Forget,
        Self::Purge,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Reserve => "reserve",
            Self::Renew => "renew",
            Self::Complete => "complete",
            Self::Release => "release",
            Self::PutStep => "put_step",
            Self::Resolve => "resolve",
            Self::Forget => "forget",
            Self::Purge => "purge",
        }
    }

    /// What is handed over, in this order.
    const fn parameters(self) -> Parameters {
        match self {
            Self::Load => &[KEY],
            Self::Reserve => &[
                KEY,
                OWNER,
                ("__operation", "VARBINARY(255)"),
                ("__print_version", "INT"),
                ("__print", "BINARY(32)"),
                LEASE,
                SILENCE,
                ("__take", "INT"),
                ("__most", "BIGINT"),
            ],
            Self::Renew => &[KEY, OWNER, LEASE, SILENCE, ("__mark", "INT")],
            Self::Complete => &[KEY, OWNER, SETTLED, RESULT_VERSION, RESULT, KEEP],
            Self::Release => &[KEY, OWNER, ("__how", "INT")],
            Self::PutStep => &[KEY, OWNER, ("__name", "BLOB"), ("__entry", "LONGBLOB"), LEASE, SILENCE],
            Self::Resolve => &[
                KEY,
                ("__seen", "BINARY(16)"),
                ("__replacement", "BINARY(16)"),
                SETTLED,
                RESULT_VERSION,
                RESULT,
                KEEP,
            ],
            Self::Forget => &[KEY, ("__seen", "BINARY(16)")],
            Self::Purge => &[("__limit", "BIGINT")],
        }
    }

    const fn body(self) -> &'static str {
        match self {
            Self::Load => include_str!("routines/load.sql"),
            Self::Reserve => include_str!("routines/reserve.sql"),
            Self::Renew => include_str!("routines/renew.sql"),
            Self::Complete => include_str!("routines/complete.sql"),
            Self::Release => include_str!("routines/release.sql"),
            Self::PutStep => include_str!("routines/put_step.sql"),
            Self::Resolve => include_str!("routines/resolve.sql"),
            Self::Forget => include_str!("routines/forget.sql"),
            Self::Purge => include_str!("routines/purge.sql"),
        }
    }

    /// The body, with the names of a table.
    fn rendered(self, names: &Names) -> String {
        let by_name = self.parameters().iter().any(|(name, _)| *name == "__name");
        let text = self
            .body()
            .replace("{WALK}", WALK)
            .replace("{NAME}", if by_name { "__name" } else { "NULL" })
            .replace("{LOCK}", LOCK)
            .replace("{VARIABLES}", VARIABLES)
            .replace("{SAY}", "IF __said IS NOT NULL THEN SELECT __said; END IF;");
        names.render(&common(&text))
    }

    /// The block as MariaDB takes it, with a `?` for every parameter.
    fn block(self, names: &Names) -> String {
        let declare = |(name, of): &(&str, &str)| format!("DECLARE {name} {of} DEFAULT ?;");
        let parameters: Vec<String> = self.parameters().iter().map(declare).collect();
        format!(
            "BEGIN NOT ATOMIC
{}
{}END",
            parameters.join(
                "
"
            ),
            self.rendered(names)
        )
    }

    /// The name of the procedure, in quotes.
    fn procedure(self, names: &Names) -> String {
        names.quoted(&self.procedure_name(names.table()))
    }

    /// The name of the procedure for records in `table`; with the database before it, if the table has it.
    pub(super) fn procedure_name(self, table: &str) -> String {
        format!("{table}_{}_v{PROCEDURES}", self.name())
    }

    /// The statement that makes the procedure.
    pub(super) fn create(self, names: &Names) -> String {
        let parameters: Vec<String> =
            self.parameters().iter().map(|(name, of)| format!("IN {name} {of}")).collect();
        format!(
            "CREATE PROCEDURE {}({})\nMODIFIES SQL DATA\nSQL SECURITY INVOKER\nBEGIN\n{}END",
            self.procedure(names),
            parameters.join(", "),
            self.rendered(names)
        )
    }

    fn call(self, names: &Names) -> String {
        format!("CALL {}({})", self.procedure(names), vec!["?"; self.parameters().len()].join(", "))
    }
}

/// What `text` says with the parts that every statement may use.
pub(super) fn common(text: &str) -> String {
    text.replace("{RECORD}", RECORD)
        .replace("{BEGIN}", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ WRITE")
        .replace("{COMMIT}", "COMMIT AND NO CHAIN NO RELEASE")
        .replace("{END}", "IF @@autocommit = 0 THEN COMMIT AND NO CHAIN NO RELEASE; END IF")
        .replace("{NOW}", NOW)
}

/// Microseconds since the Unix epoch, in whatever time zone the session is. It is the time at which the statement that
/// uses it began: so it is taken in one of its own, after the one that waited for a lock. `SYSDATE` would be later still,
/// but is a local time, and ambiguous for an hour every autumn.
pub(super) const NOW: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/// The columns of a record as an answer; the first says that it is one.
pub(super) const RECORD: &str = "0, {version}, {state}, {owner}, {attempt}, {fence}, {fingerprint_version}, {fingerprint}, \
    {effects_begun}, {lease_until} - __now, {created_at}, {expires_at} - __now, {result_version}, {result}, {steps}";

/// What every block that locks the record declares.
///
/// After an error nothing stays open: the client may be gone, and the connection is another caller's next.
const VARIABLES: &str =
    "DECLARE __now, __version, __attempt, __fence, __until, __expires, __pos, __length BIGINT;
DECLARE __state VARCHAR(16) CHARACTER SET ascii;
DECLARE __holder BINARY(16);
DECLARE __held_print BINARY(32);
DECLARE __held_print_version, __effects, __whole, __found, __said INT;
DECLARE __begun, __at, __at_size, __at_done, __name_length BIGINT DEFAULT 0;
DECLARE __steps LONGBLOB;
DECLARE __done LONGBLOB DEFAULT '';
DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;";

/// Locks the row, then looks at the clock. `__found`: 0 absent or expired, 1 there, 2 not what this version writes.
const LOCK: &str = "{BEGIN};
SELECT {version}, {state}, {owner}, {attempt}, {fence}, {fingerprint_version}, {fingerprint}, {effects_begun},
    {lease_until}, {expires_at}, {result} IS NOT NULL AND {result_version} IS NOT NULL, {steps}
    INTO __version, __state, __holder, __attempt, __fence, __held_print_version, __held_print, __effects,
    __until, __expires, __whole, __steps
    FROM {table} WHERE {key} = __key FOR UPDATE;
SET __now = {NOW};
SET __found = CASE WHEN __version IS NULL THEN 0
    WHEN NOT (__version = 1 AND __fence >= 0 AND (__state IN ('not_retained', 'unknown')
        OR (__state IN ('completed', 'failed') AND __whole)
        OR (__state = 'running' AND __until IS NOT NULL))) THEN 2
    WHEN __expires <= __now THEN 0 ELSE 1 END;";

/// Goes through the steps: whether one has only begun, those that are done, and where the one with the name is.
const WALK: &str = "SET __pos = 1;
WHILE __pos <= LENGTH(__steps) DO
    SET __name_length = CONV(HEX(SUBSTRING(__steps, __pos, 2)), 16, 10);
    SET __length = CONV(HEX(SUBSTRING(__steps, __pos + 2, 4)), 16, 10);
    IF SUBSTRING(__steps, __pos + 6, __name_length) = {NAME} THEN
        SET __at = __pos, __at_done = __length < 4294967295;
        SET __at_size = 6 + __name_length + IF(__at_done, __length, 0);
    END IF;
    IF __length = 4294967295 THEN
        SET __begun = 1, __length = 6 + __name_length;
    ELSE
        SET __length = 6 + __name_length + __length;
        SET __done = CONCAT(__done, SUBSTRING(__steps, __pos, __length));
    END IF;
    SET __pos = __pos + __length;
END WHILE;
IF __steps IS NOT NULL AND NOT __pos <=> LENGTH(__steps) + 1 THEN SET __found = 2; END IF;";

/// The texts that are sent, made once for a store.
#[derive(Debug)]
pub(super) struct Texts(Vec<(Routine, Arc<str>)>);

impl Texts {
    /// For a table, with `procedures` or as blocks.
    pub(super) fn new(names: &Names, procedures: bool) -> Self {
        let text = |routine: Routine| if procedures { routine.call(names) } else { routine.block(names) };
        Self(Routine::ALL.iter().map(|routine| (*routine, text(*routine).into())).collect())
    }

    /// What is sent for `routine`.
    pub(super) fn of(&self, routine: Routine) -> Arc<str> {
        let found = self.0.iter().find(|(other, _)| *other == routine);
        found.map_or_else(|| "".into(), |(_, text)| Arc::clone(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_filled() {
        let names = Names::new('`');
        for routine in Routine::ALL {
            for text in [routine.block(&names), routine.create(&names), routine.call(&names)] {
                assert!(!text.contains(['{', '}']), "{text}");
            }
        }
    }

    #[test]
    fn a_block_and_a_call_take_the_same_parameters() {
        let names = Names::new('`');
        for routine in Routine::ALL {
            let (block, call) = (routine.block(&names), routine.call(&names));
            assert_eq!(block.matches('?').count(), call.matches('?').count(), "{block}");
        }
    }

    #[test]
    fn procedures_use_nothing_that_only_mariadb_has() {
        let names = Names::new('`');
        for routine in Routine::ALL {
            let text = routine.create(&names);
            for only_mariadb in
                ["NOT ATOMIC", "RETURNING", "OR REPLACE", "IF NOT EXISTS", "SET STATEMENT", "||"]
            {
                assert!(!text.contains(only_mariadb), "{text}");
            }
            assert!(text.contains("SQL SECURITY INVOKER"));
        }
    }

    #[test]
    fn what_writes_reads_committed_rows_and_ends_its_transaction() {
        let names = Names::new('`');
        for routine in Routine::ALL.into_iter().filter(|routine| *routine != Routine::Load) {
            let text = routine.rendered(&names);
            let begun = text.matches("START TRANSACTION READ WRITE").count();
            assert_eq!(begun, text.matches("ISOLATION LEVEL READ COMMITTED").count());
            assert!(
                begun > 0 && text.contains("COMMIT AND NO CHAIN NO RELEASE") && text.contains("RESIGNAL")
            );
        }
    }

    #[test]
    fn names_are_those_that_were_given() {
        let mut names = Names::new('`');
        names.set_table("shop.calls".into());
        let create = Routine::Forget.create(&names);
        assert!(create.starts_with("CREATE PROCEDURE `shop`.`calls_forget_v1`(IN __key VARBINARY(255), "));
        assert!(create.contains("DELETE FROM `shop`.`calls` WHERE `key` = __key"), "{create}");
    }
}
