//! What is asked about records, and by those who look after them.

use std::fmt::Write as _;
use std::sync::Arc;

use sqlx::mysql::MySqlArguments;

use super::MySqlStore;
use super::fault::Fault;
use super::routine::{NOW, RECORD, Routine};
use super::row::{self, Said};
use super::session::{ask, bind};
use crate::key::RecordKey;
use crate::store::{ListQuery, Page, Record, StateName};

/// So many records are purged in one transaction.
const PURGED: usize = 256;

impl MySqlStore {
    pub(super) async fn load_record(&self, key: &RecordKey) -> Result<Option<Record>, Fault> {
        let mut arguments = MySqlArguments::default();
        bind(&mut arguments, key.as_str().as_bytes())?;
        let rows = ask(&self.0.pool, &self.familiar().await?.texts.of(Routine::Load), &arguments).await?;
        rows.first().map(|row| row::record(row, key.clone())).transpose()
    }

    /// Deletes at most `limit` expired records, some at a time, so that no lock is held for long.
    pub(super) async fn delete_expired(&self, limit: usize) -> Result<usize, Fault> {
        let nothing = RecordKey::new("", "");
        let mut purged = 0;
        loop {
            let batch = limit.saturating_sub(purged).min(PURGED);
            if batch == 0 {
                return Ok(purged);
            }
            let mut arguments = MySqlArguments::default();
            bind(&mut arguments, i64::try_from(batch).unwrap_or(i64::MAX))?;
            let rows =
                ask(&self.0.pool, &self.familiar().await?.texts.of(Routine::Purge), &arguments).await?;
            let Said::Purged(count) = Said::decode(&rows, &nothing)? else {
                return Err(Fault::Unreadable("answer"));
            };
            let count = usize::try_from(count).unwrap_or(batch);
            purged += count;
            // Others may have deleted some of the batch; those who come next find the rest.
            if count < batch {
                return Ok(purged);
            }
        }
    }

    /// One page, by creation. The cursor is the time of creation and the key of the last record on it.
    pub(super) async fn page(&self, query: &ListQuery) -> Result<Page, Fault> {
        let mut wanted = vec!["{expires_at} > __now".to_owned()];
        let mut arguments = MySqlArguments::default();
        if let Some(operation) = &query.operation {
            wanted.push("{operation} = ?".into());
            bind(&mut arguments, operation.as_bytes())?;
        }
        if let Some(state) = query.state.map(StateName::as_str) {
            wanted.push("{state} = ?".into());
            bind(&mut arguments, state)?;
        }
        if query.stuck {
            wanted.push("({state} = 'unknown' OR ({state} = 'running' AND {lease_until} <= __now))".into());
        }
        if let Some(after) = &query.after {
            let (created_at, key) = cursor(after).ok_or_else(|| {
                Fault::Refused("the `after` of a list is not one that this store has given out".into())
            })?;
            wanted.push("({created_at} > ? OR ({created_at} = ? AND {key} > ?))".into());
            bind(&mut arguments, created_at)?;
            bind(&mut arguments, created_at)?;
            bind(&mut arguments, key)?;
        }
        let size = query.page_size();
        bind(&mut arguments, i64::try_from(size.saturating_add(1)).unwrap_or(i64::MAX))?;
        let text = format!(
            "SELECT {RECORD}, {{key}}, {{operation}} FROM {{table}} WHERE {} ORDER BY {{created_at}}, {{key}} LIMIT ?",
            wanted.join(" AND ")
        );
        let text: Arc<str> = self.0.names.render(&text.replace("__now", NOW)).into();
        let rows = ask(&self.0.pool, &text, &arguments).await?;
        let mut page = Page { records: Vec::with_capacity(rows.len().min(size)), next: None };
        let mut unreadable = 0_u32;
        for row in rows.iter().take(size) {
            match row::key(row).and_then(|key| row::record(row, key)) {
                Ok(record) => page.records.push(record),
                // One of them must not hide the others from the one who came to look.
                Err(Fault::Unreadable(_)) => unreadable += 1,
                Err(fault) => return Err(fault),
            }
        }
        if unreadable > 0 {
            tracing::warn!(target: "idempotent", unreadable, "the MySQL store left records out of a list that it cannot read");
        }
        if rows.len() > size
            && let Some(last) = size.checked_sub(1).and_then(|last| rows.get(last))
        {
            let created_at: i64 = row::get(last, 10, "created_at")?;
            let key: &[u8] = row::get(last, 15, "key")?;
            page.next = Some(format!("{created_at}:{}", hex(key)));
        }
        Ok(page)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // A string takes whatever is written.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn cursor(text: &str) -> Option<(i64, Vec<u8>)> {
    let (created_at, key) = text.split_once(':')?;
    // A number may begin with a sign, and a byte may not.
    if !key.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let key = key.as_bytes().chunks(2).map(|pair| if pair.len() == 2 { byte(pair) } else { None });
    Some((created_at.parse().ok()?, key.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back() {
        assert_eq!(cursor(&format!("17:{}", hex(b"a/\xff"))), Some((17, b"a/\xff".to_vec())));
        assert_eq!(cursor("17:"), Some((17, vec![])));
        for nonsense in ["", "x", "17", "17:0", "17:zz", "17:+1", ":00"] {
            assert_eq!(cursor(nonsense), None, "{nonsense}");
        }
    }
}
