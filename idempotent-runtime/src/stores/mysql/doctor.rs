//! What is wrong with a server.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sqlx::mysql::MySqlArguments;

use super::MySqlStore;
use super::fault::Fault;
use super::routine::NOW;
use super::row::get;
use super::schema;
use super::session::{ask, ask_as_text, bind};
use crate::doctor::Finding;
use crate::store::OwnerToken;

/// Clocks that are further apart than this are not just unlike.
const SKEW: Duration = Duration::from_secs(5);

/// Below this the server takes no result worth the name.
const SMALL_PACKET: u64 = 1024 * 1024;

type Variables = HashMap<String, String>;

impl MySqlStore {
    pub(super) async fn find_faults(&self) -> Result<Vec<Finding>, Fault> {
        let mut findings = Vec::new();
        let variables = self.variables().await?;
        durability(&variables, &mut findings);
        logging(&variables, &mut findings);
        findings.extend(small_packet(&variables));
        findings.extend(self.role(&variables).await?);
        findings.extend(self.clock().await?);
        findings.extend(self.table_faults().await?);
        Ok(findings)
    }

    async fn variables(&self) -> Result<Variables, Fault> {
        let text: Arc<str> = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', \
            'log_bin', 'sync_binlog', 'binlog_format', 'read_only', 'innodb_read_only', 'max_allowed_packet', \
            'innodb_doublewrite')"
            .into();
        let rows = ask(&self.0.pool, &text, &MySqlArguments::default()).await?;
        rows.iter().map(|row| Ok((get(row, 0, "variable")?, get(row, 1, "variable")?))).collect()
    }

    async fn role(&self, variables: &Variables) -> Result<Option<Finding>, Fault> {
        if is(variables, "read_only", &["ON", "1"]) || is(variables, "innodb_read_only", &["ON", "1"]) {
            return Ok(Some(Finding::breaks(
                "the server is read-only, as a replica is",
                "connect to the primary",
            )));
        }
        let status = match ask_as_text(&self.0.pool, "SHOW REPLICA STATUS".into()).await {
            Err(fault) if fault.spares_connection() => return Ok(None), // Not a right of this user: nobody can say.
            status => status?,
        };
        Ok((!status.is_empty()).then(|| {
            Finding::breaks(
                "the server is a replica of another one: what is written here is unknown there",
                "connect to the primary",
            )
        }))
    }

    /// Whether the two clocks agree, judged in the middle of the round trip.
    async fn clock(&self) -> Result<Option<Finding>, Fault> {
        let asked = Instant::now();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let text: Arc<str> = format!("SELECT {NOW}").into();
        let rows = ask(&self.0.pool, &text, &MySqlArguments::default()).await?;
        let row = rows.first().ok_or(Fault::Unreadable("clock"))?;
        let theirs: i64 = get(row, 0, "clock")?;
        let theirs = Duration::from_micros(theirs.try_into().unwrap_or(0));
        let skew = theirs.abs_diff(began + asked.elapsed() / 2);
        Ok((skew > SKEW + asked.elapsed() / 2).then(|| {
            Finding::weakens(
                format!("the server's clock and this machine's are {} seconds apart", skew.as_secs()),
                "synchronize both; if it is the server's that will be set, leases end early or late when that happens",
            )
        }))
    }

    async fn table_faults(&self) -> Result<Vec<Finding>, Fault> {
        let how = "see MySqlStoreBuilder::schema for the statements";
        let table = self.0.names.table();
        let Some(found) = schema::find(&self.0.pool, &self.0.names).await? else {
            let problem = format!("there is no table `{table}` that this user may see");
            return Ok(vec![Finding::breaks(
                problem,
                format!("create it, and grant the rights on it; {how}"),
            )]);
        };
        if let Err(fault) = found.check(&self.0.names) {
            return Ok(vec![Finding::breaks(fault.to_string(), "no call is safe with it")]);
        }
        if !found.engine.eq_ignore_ascii_case("InnoDB") {
            return Ok(vec![Finding::breaks(
                format!("the table `{table}` is kept by {}, which has no transactions", found.engine),
                format!("ALTER TABLE {} ENGINE = InnoDB", self.0.names.quoted(table)),
            )]);
        }
        let mut findings = Vec::new();
        if self.familiar().await?.procedures {
            for routine in schema::missing_procedures(&self.0.pool, &self.0.names).await? {
                let name = routine.procedure_name(table);
                findings.push(Finding::breaks(
                    format!("there is no procedure `{name}` that this user may see"),
                    format!("create it, and grant EXECUTE on it; {how}"),
                ));
            }
        }
        findings.extend(self.missing_right().await?);
        Ok(findings)
    }

    /// Tries the rights on rows that are not there: nothing is changed.
    async fn missing_right(&self) -> Result<Option<Finding>, Fault> {
        let statements = [
            ("SELECT", "SELECT 1 FROM {table} WHERE {key} = ? FOR UPDATE"),
            (
                "INSERT",
                "INSERT INTO {table} ({key}, {operation}, {version}, {state}, {owner}, {attempt}, {fence}, \
                 {fingerprint_version}, {fingerprint}, {effects_begun}, {created_at}, {expires_at}) \
                 SELECT {key}, {operation}, {version}, {state}, {owner}, {attempt}, {fence}, \
                 {fingerprint_version}, {fingerprint}, {effects_begun}, {created_at}, {expires_at} \
                 FROM {table} WHERE {key} = ?",
            ),
            ("UPDATE", "UPDATE {table} SET {attempt} = {attempt} WHERE {key} = ?"),
            ("DELETE", "DELETE FROM {table} WHERE {key} = ?"),
        ];
        // No call has such a key.
        let nobody = format!("\0examined by {:?}", OwnerToken::random());
        for (right, statement) in statements {
            let mut arguments = MySqlArguments::default();
            bind(&mut arguments, nobody.as_bytes())?;
            match ask(&self.0.pool, &self.0.names.render(statement).into(), &arguments).await {
                Err(fault) if fault.spares_connection() && !fault.is_collision() => {
                    let problem = format!("the user may not {right} on `{}`: {fault}", self.0.names.table());
                    let remedy = "GRANT SELECT, INSERT, UPDATE, DELETE on the table to the user";
                    return Ok(Some(Finding::breaks(problem, remedy)));
                }
                answer => answer.map(drop)?,
            }
        }
        Ok(None)
    }
}

fn is(variables: &Variables, name: &str, values: &[&str]) -> bool {
    variables.get(name).is_some_and(|value| values.iter().any(|one| value.eq_ignore_ascii_case(one)))
}

fn durability(variables: &Variables, findings: &mut Vec<Finding>) {
    if let Some(value) = variables.get("innodb_flush_log_at_trx_commit")
        && value != "1"
    {
        findings.push(Finding::weakens(
            format!(
                "commits are acknowledged before they are on the disk (innodb_flush_log_at_trx_commit = {value}): \
                 after a crash of the machine, the last calls may run again"
            ),
            "set it to 1",
        ));
    }
    if is(variables, "log_bin", &["ON", "1"])
        && let Some(value) = variables.get("sync_binlog")
        && value != "1"
    {
        findings.push(Finding::weakens(
            format!(
                "the binary log is written to the disk later than commits are acknowledged (sync_binlog = {value}): \
                 after a crash of the machine, replicas and the server may disagree about the last calls"
            ),
            "set it to 1",
        ));
    }
    if is(variables, "innodb_doublewrite", &["OFF", "0"]) {
        findings.push(Finding::weakens(
            "pages that are half written when the power fails cannot be restored (innodb_doublewrite = OFF)",
            "set it to ON, unless the file system writes whole pages",
        ));
    }
}

fn logging(variables: &Variables, findings: &mut Vec<Finding>) {
    if is(variables, "log_bin", &["ON", "1"]) && is(variables, "binlog_format", &["STATEMENT"]) {
        findings.push(Finding::breaks(
            "the binary log keeps statements (binlog_format = STATEMENT): the server refuses every write of the store, \
             which reads committed rows",
            "set binlog_format to ROW or MIXED",
        ));
    }
}

fn small_packet(variables: &Variables) -> Option<Finding> {
    let value: u64 = variables.get("max_allowed_packet")?.parse().ok()?;
    (value < SMALL_PACKET).then(|| {
        Finding::weakens(
            format!("the server takes packets of {value} bytes only: longer results are not retained"),
            "set max_allowed_packet to 16M or more",
        )
    })
}
