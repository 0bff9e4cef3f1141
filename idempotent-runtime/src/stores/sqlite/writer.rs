//! The thread that owns the connection.
//!
//! It takes everything that waits, answers what can be answered by reading, and does the rest in one transaction, whose
//! one commit all of them share. It never waits for company: a single caller gets a transaction of its own.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::fault::Fault;
use super::job::Progress;
use super::queue::{Queue, Waiting};
use super::schema::{self, Location};
use super::session::Session;
use crate::store::StoreResult;
use crate::stores::Clock;

/// Between two looks whether the write lock is free. Short, because SQLite has no queue for it: who looks seldom, never
/// finds it free beside a process that looks often.
const PAUSES: [Duration; 4] = [
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
];

/// What SQLite calls the open file; `None` when that is not text.
pub(super) type FileName = Option<Box<str>>;

/// What the thread is given.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) location: Location,
    pub(super) max_batch: usize,
    pub(super) clock: Arc<dyn Clock>,
}

/// How the use of one connection ended.
enum End {
    /// There is nothing to do and never will be.
    Closed,
    /// The connection is better opened anew.
    Broken,
}

/// The life of the thread: until the last handle is gone, whatever happens on the way.
pub(super) fn run(mut settings: Settings, mut queue: Queue, opened: oneshot::Sender<StoreResult<FileName>>) {
    let mut connection = match schema::open(&settings.location) {
        Ok(connection) => {
            let file = FileId::of(&settings.location.path);
            // If nobody waits for the answer any more, the queue is closed too.
            let _ = opened.send(Ok(connection.path().map(Into::into)));
            Some((connection, file))
        }
        Err(fault) => {
            let _ = opened.send(Err(fault.into_open_error(&settings.location.path)));
            return;
        }
    };
    // A file that was there and is gone has taken its records along. A new one in its place would let every call of
    // the past run again, so it is for somebody to decide.
    settings.location.create = false;
    loop {
        let Some((open, file)) = connection.take() else {
            if !queue.fill(settings.max_batch, None) {
                break;
            }
            match schema::open(&settings.location) {
                Ok(open) => connection = Some((open, FileId::of(&settings.location.path))),
                Err(fault) => queue.fail_all(&fault),
            }
            continue;
        };
        // A clock is the application's code. If it panics, those in the batch hear of it and the thread lives on.
        let end = catch_unwind(AssertUnwindSafe(|| Service::new(&settings, &open, file).serve(&mut queue)));
        match end {
            Ok(End::Closed) => break,
            Ok(End::Broken) => {}
            Err(_) => {
                tracing::error!(target: "idempotent", "the thread of the SQLite store panicked and goes on with a new connection");
                queue.fail_all(&Fault::Unavailable("the writer thread panicked and started anew".into()));
            }
        }
    }
    queue.finish();
}

/// One connection at work.
struct Service<'c> {
    settings: &'c Settings,
    session: Session<'c>,
    file: Option<FileId>,
}

impl<'c> Service<'c> {
    fn new(settings: &'c Settings, connection: &'c Connection, file: Option<FileId>) -> Self {
        let session = Session::new(connection, &settings.location.table, &*settings.clock);
        Self { settings, session, file }
    }

    fn serve(&mut self, queue: &mut Queue) -> End {
        let mut busy_rounds = 0_usize;
        let mut pause = None;
        while queue.fill(self.settings.max_batch, pause) {
            let result = self.read(queue).and_then(|()| self.write(queue));
            // Nothing that an operation left open may keep a lock or an old snapshot.
            self.session.rollback();
            pause = None;
            match result {
                Ok(()) => busy_rounds = 0,
                Err(fault) if fault.is_busy() => {
                    queue.fail_impatient(self.settings.location.busy_timeout, &fault);
                    pause = PAUSES.get(busy_rounds).or(PAUSES.last()).copied();
                    busy_rounds += 1;
                }
                Err(fault) => {
                    queue.fail_all(&fault);
                    if fault.breaks_connection() || matches!(fault, Fault::Unavailable(_)) {
                        return End::Broken;
                    }
                }
            }
        }
        End::Closed
    }

    /// Answers what has just arrived and needs no lock, all of it from one snapshot. The rest joins the writes.
    fn read(&mut self, queue: &mut Queue) -> Result<(), Fault> {
        let mut reading = false;
        let mut unread = std::mem::take(&mut queue.unread).into_iter();
        while let Some(mut waiting) = unread.next() {
            if waiting.job.is_moot() {
                continue;
            }
            if !waiting.job.reads() {
                queue.writes.push_back(waiting);
                continue;
            }
            let started = if reading { Ok(()) } else { self.begin_read() };
            reading = true;
            match started.and_then(|()| waiting.job.read(&mut self.session)) {
                Ok(Progress::Answered) => waiting.job.reply(),
                Ok(Progress::Unfinished) => queue.writes.push_back(waiting),
                // Another process is just recovering the file.
                Err(fault) if fault.is_busy() => {
                    queue.unread.push(waiting);
                    queue.unread.extend(unread);
                    return Err(fault);
                }
                Err(fault) => {
                    waiting.job.fail(&fault);
                    if fault.breaks_connection() || matches!(fault, Fault::Unavailable(_)) {
                        queue.unread.extend(unread);
                        return Err(fault);
                    }
                }
            }
        }
        self.session.rollback();
        Ok(())
    }

    fn begin_read(&mut self) -> Result<(), Fault> {
        self.check_file()?;
        self.session.begin_read()
    }

    /// Does what waits for the lock in one transaction, and answers after its commit.
    fn write(&mut self, queue: &mut Queue) -> Result<(), Fault> {
        if queue.writes.is_empty() {
            return Ok(());
        }
        self.check_file()?;
        self.session.begin_write()?;
        let batch = queue.writes.len().min(self.settings.max_batch);
        let mut done = Vec::with_capacity(batch);
        let mut again = VecDeque::new();
        for mut waiting in queue.writes.drain(..batch) {
            if waiting.job.is_moot() {
                continue;
            }
            match waiting.job.write(&mut self.session) {
                Ok(Progress::Answered) => done.push(waiting),
                Ok(Progress::Unfinished) => again.push_back(waiting),
                Err(fault) => {
                    waiting.job.fail(&fault);
                    if !self.session.in_transaction() {
                        // SQLite has taken everything back, also what those before had been doing.
                        fail(done.into_iter().chain(again), &fault);
                        return if fault.breaks_connection() { Err(fault) } else { Ok(()) };
                    }
                }
            }
        }
        match self.commit() {
            Ok(()) => {
                for waiting in done {
                    waiting.job.reply();
                }
                queue.writes.append(&mut again);
                Ok(())
            }
            Err(fault) => {
                fail(done.into_iter().chain(again), &fault);
                if fault.breaks_connection() { Err(fault) } else { Ok(()) }
            }
        }
    }

    /// Commits, and waits for the lock if that needs one more: it does if another program has turned write-ahead logging
    /// off.
    fn commit(&mut self) -> Result<(), Fault> {
        let begun = Instant::now();
        loop {
            match self.session.commit() {
                Err(fault)
                    if fault.is_busy()
                        && self.session.in_transaction()
                        && begun.elapsed() < self.settings.location.busy_timeout =>
                {
                    std::thread::sleep(Duration::from_millis(1));
                }
                result => return result,
            }
        }
    }

    /// SQLite goes on writing into a file that has been deleted, or replaced by another: to everyone else those
    /// reservations would not exist.
    fn check_file(&self) -> Result<(), Fault> {
        if FileId::of(&self.settings.location.path) == self.file {
            return Ok(());
        }
        Err(Fault::Unavailable("the file has been deleted or replaced by another one".into()))
    }
}

/// Tells several at once. The fault of one operation or of the commit says nothing about the others' requests: theirs
/// may be asked for again.
fn fail(all: impl Iterator<Item = Waiting>, fault: &Fault) {
    let fault = Fault::Unavailable(format!("the transaction around the operation failed: {fault}"));
    all.for_each(|waiting| waiting.job.fail(&fault));
}

/// What makes a file itself, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).ok().map(|file| Self(file.dev(), file.ino()))
    }

    /// Elsewhere an open file cannot be deleted.
    #[cfg(not(unix))]
    fn of(path: &Path) -> Option<Self> {
        path.exists().then_some(Self(0, 0))
    }
}
