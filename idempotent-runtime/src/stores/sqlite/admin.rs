//! What is asked about records, and by those who look after them.

use rusqlite::params;

use super::attempt::{reopen, settle};
use super::fault::Fault;
use super::job::Operation;
use super::row::{self, RowState, micros};
use super::session::{Query, Session};
use crate::key::RecordKey;
use crate::store::{Compared, ListQuery, OwnerToken, Page, Record, Resolution, Settled};

/// So many rows are looked at for one page, so that a list that finds little does not keep the calls waiting; the page is
/// then a short one.
const SCANNED: i64 = 4096;

/// So many records are purged in one transaction.
const PURGED: usize = 256;

/// [`load`](crate::store::Store::load).
pub(super) struct Load(pub(super) RecordKey);

impl Operation for Load {
    type Answer = Option<Record>;
    const READS: bool = true;

    fn read(&mut self, session: &mut Session<'_>) -> Result<Option<Self::Answer>, Fault> {
        let Some((row, now)) = session.current(&self.0)? else { return Ok(Some(None)) };
        Ok(Some(Some(session.record(&self.0, row, now)?)))
    }

    fn write(&mut self, session: &mut Session<'_>) -> Result<Option<Self::Answer>, Fault> {
        self.read(session)
    }
}

/// [`resolve`](crate::store::Store::resolve).
pub(super) struct Resolve {
    pub(super) key: RecordKey,
    pub(super) seen: OwnerToken,
    pub(super) replacement: OwnerToken,
    pub(super) resolution: Resolution,
}

impl Operation for Resolve {
    type Answer = Compared;

    fn write(&mut self, session: &mut Session<'_>) -> Result<Option<Compared>, Fault> {
        let Some((mut row, now)) = session.current(&self.key)? else {
            return Ok(Some(Compared::Differs(None)));
        };
        if row.owner == self.replacement {
            // The answer of an earlier resolve had been lost.
            return Ok(Some(Compared::Changed));
        }
        let unsettled = match &row.state {
            RowState::Running { .. } => !row.is_live(now),
            RowState::Settled(settled) => matches!(settled, Settled::Unknown | Settled::NotRetained),
        };
        if row.owner != self.seen || !unsettled {
            let record = session.record(&self.key, row, now)?;
            return Ok(Some(Compared::Differs(Some(Box::new(record)))));
        }
        row.owner = self.replacement;
        match &self.resolution {
            Resolution::Done { settled, keep } => {
                row.expires_at = now.saturating_add(micros(*keep));
                settle(session, &row, settled)?;
            }
            Resolution::NotDone => {
                row.attempt = 0;
                reopen(session, &row, now)?;
            }
        }
        Ok(Some(Compared::Changed))
    }
}

/// [`forget`](crate::store::Store::forget).
pub(super) struct Forget {
    pub(super) key: RecordKey,
    pub(super) seen: OwnerToken,
}

impl Operation for Forget {
    type Answer = Compared;

    fn write(&mut self, session: &mut Session<'_>) -> Result<Option<Compared>, Fault> {
        let Some((row, now)) = session.current(&self.key)? else {
            return Ok(Some(Compared::Differs(None)));
        };
        if row.owner != self.seen || row.is_live(now) {
            let record = session.record(&self.key, row, now)?;
            return Ok(Some(Compared::Differs(Some(Box::new(record)))));
        }
        session.delete(&row)?;
        Ok(Some(Compared::Changed))
    }
}

/// [`list`](crate::store::Store::list). The cursor is the number of the last row that was looked at.
pub(super) struct List(pub(super) ListQuery);

impl List {
    /// The rows of the page, and where the next one begins.
    fn scan(&self, session: &mut Session<'_>) -> Result<(Vec<i64>, Option<i64>), Fault> {
        let after: i64 = match &self.0.after {
            None => 0,
            Some(after) => after.parse().map_err(|_| {
                Fault::Refused("the `after` of a list is not one that this store has given out".into())
            })?,
        };
        let now = session.now();
        let state = row::state_name(self.0.state);
        let mut rows = match &self.0.operation {
            None => {
                session.statement(Query::Scan)?.query(params![after, SCANNED, now, state, self.0.stuck])?
            }
            Some(operation) => session.statement(Query::ScanOperation)?.query(params![
                after,
                SCANNED,
                now,
                state,
                self.0.stuck,
                operation
            ])?,
        };
        let (mut found, mut seen, mut last) = (Vec::new(), 0, after);
        while let Some(row) = rows.next()? {
            let (id, wanted) = (row.get(0)?, row.get(1)?);
            if wanted && found.len() == self.0.page_size() {
                return Ok((found, Some(last)));
            }
            if wanted {
                found.push(id);
            }
            seen += 1;
            last = id;
        }
        Ok((found, (seen == SCANNED).then_some(last)))
    }
}

impl Operation for List {
    type Answer = Page;
    const READS: bool = true;

    fn read(&mut self, session: &mut Session<'_>) -> Result<Option<Page>, Fault> {
        let (ids, next) = self.scan(session)?;
        let now = session.now();
        let mut page = Page { records: Vec::with_capacity(ids.len()), next: next.map(|id| id.to_string()) };
        let mut unreadable = 0_u32;
        for id in ids {
            let found = session
                .row_by_id(id)
                .and_then(|found| found.map(|(key, row)| session.record(&key, row, now)).transpose());
            match found {
                Ok(record) => page.records.extend(record),
                // One of them must not hide the others from the one who came to look.
                Err(Fault::Unreadable(_)) => unreadable += 1,
                Err(fault) => return Err(fault),
            }
        }
        if unreadable > 0 {
            tracing::warn!(target: "idempotent", unreadable, "the SQLite store left records out of a list that it cannot read");
        }
        Ok(Some(page))
    }

    fn write(&mut self, session: &mut Session<'_>) -> Result<Option<Page>, Fault> {
        self.read(session)
    }
}

/// [`purge`](crate::store::Store::purge).
pub(super) struct Purge {
    pub(super) left: usize,
    pub(super) purged: usize,
}

impl Operation for Purge {
    type Answer = usize;

    fn write(&mut self, session: &mut Session<'_>) -> Result<Option<usize>, Fault> {
        let batch = self.left.min(PURGED);
        let limit = i64::try_from(batch).unwrap_or(i64::MAX);
        let now = session.now();
        let purged = session.atomically(|session| {
            // All three choose the same records: nothing comes between them.
            let fence = session.statement(Query::PurgeFence)?.query_row([now, limit], |row| row.get(0))?;
            session.outlive(fence);
            session.execute(Query::PurgeSteps, [now, limit])?;
            session.execute(Query::Purge, [now, limit])
        })?;
        self.purged += purged;
        self.left -= purged.min(self.left);
        Ok((purged < batch || self.left == 0).then_some(self.purged))
    }
}
