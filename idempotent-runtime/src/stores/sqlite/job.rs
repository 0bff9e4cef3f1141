//! What travels from the callers to the writer thread: an operation, and where its answer goes.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::fault::Fault;
use super::session::Session;
use crate::store::StoreResult;

/// One operation of the store, as the writer thread runs it.
pub(super) trait Operation: Send + 'static {
    type Answer: Send + 'static;

    /// Whether [`read`](Self::read) may have the answer.
    const READS: bool = false;
    /// Whether the operation adds a record. Such a one is not begun for a caller who has gone away: nobody would
    /// ever settle it.
    const MAKES_RECORD: bool = false;

    /// The answer, if the database as it is gives one; `None` when the write lock is needed.
    fn read(&mut self, session: &mut Session<'_>) -> Result<Option<Self::Answer>, Fault> {
        let _ = session;
        Ok(None)
    }

    /// The answer, with the write lock held. `None`: called again in a later transaction, so that others get a turn.
    fn write(&mut self, session: &mut Session<'_>) -> Result<Option<Self::Answer>, Fault>;
}

/// An operation without its type.
pub(super) trait Job: Send {
    fn reads(&self) -> bool;
    /// Nobody waits for it, and it is better not begun.
    fn is_moot(&self) -> bool;
    /// Whether the answer was found. A busy database is the one error that is left to the writer thread.
    fn read(&mut self, session: &mut Session<'_>) -> Result<Progress, Fault>;
    fn write(&mut self, session: &mut Session<'_>) -> Result<Progress, Fault>;
    /// Gives the answer that was found.
    fn reply(self: Box<Self>);
    /// Gives an error in place of whatever was found.
    fn fail(self: Box<Self>, fault: &Fault);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// There is an answer.
    Answered,
    /// There is none yet.
    Unfinished,
}

/// An operation with its answer and the one who waits for it.
pub(super) struct Task<O: Operation> {
    pub(super) operation: O,
    pub(super) answer: Option<O::Answer>,
    pub(super) caller: oneshot::Sender<StoreResult<O::Answer>>,
    pub(super) path: Arc<Path>,
}

impl<O: Operation> Task<O> {
    fn keep(&mut self, answer: Option<O::Answer>) -> Progress {
        self.answer = answer;
        if self.answer.is_some() { Progress::Answered } else { Progress::Unfinished }
    }
}

impl<O: Operation> Job for Task<O> {
    fn reads(&self) -> bool {
        O::READS
    }

    fn is_moot(&self) -> bool {
        O::MAKES_RECORD && self.caller.is_closed()
    }

    fn read(&mut self, session: &mut Session<'_>) -> Result<Progress, Fault> {
        let answer = self.operation.read(session)?;
        Ok(self.keep(answer))
    }

    fn write(&mut self, session: &mut Session<'_>) -> Result<Progress, Fault> {
        let answer = self.operation.write(session)?;
        Ok(self.keep(answer))
    }

    fn reply(self: Box<Self>) {
        if let Some(answer) = self.answer {
            // A caller who has gone away needs no answer.
            let _ = self.caller.send(Ok(answer));
        }
    }

    fn fail(self: Box<Self>, fault: &Fault) {
        let error = fault.clone().into_error(&self.path, O::MAKES_RECORD);
        let _ = self.caller.send(Err(error));
    }
}
