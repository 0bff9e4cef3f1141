//! What waits for the writer thread.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::fault::Fault;
use super::job::Job;

/// What a handle sends.
pub(super) enum Message {
    Job(Waiting),
    /// Work off what came before, close the file, then say so.
    Close(oneshot::Sender<()>),
}

/// A job, and since when it has been waiting.
pub(super) struct Waiting {
    pub(super) job: Box<dyn Job>,
    pub(super) since: Instant,
}

/// Without a bound of its own: every caller waits for the answer before it asks for more.
pub(super) type Requests = Sender<Message>;

/// The jobs that have not been answered yet.
pub(super) struct Queue {
    requests: Receiver<Message>,
    /// Just arrived.
    pub(super) unread: Vec<Waiting>,
    /// In need of the write lock.
    pub(super) writes: VecDeque<Waiting>,
    closed: bool,
    closers: Vec<oneshot::Sender<()>>,
}

impl Queue {
    pub(super) fn new(requests: Receiver<Message>) -> Self {
        Self { requests, unread: Vec::new(), writes: VecDeque::new(), closed: false, closers: Vec::new() }
    }

    /// Takes what is waiting, up to `limit` new jobs. With nothing to do it waits for the first; with jobs that could not
    /// be done just now it waits up to `pause` for more. `false`: there is nothing to do and never will be.
    pub(super) fn fill(&mut self, limit: usize, pause: Option<Duration>) -> bool {
        let idle = self.unread.is_empty() && self.writes.is_empty();
        if self.closed {
            if let (false, Some(pause)) = (idle, pause) {
                std::thread::sleep(pause);
            }
            return !idle;
        }
        if idle {
            match self.requests.recv() {
                Ok(message) => self.accept(message),
                Err(_) => self.closed = true,
            }
        } else if let Some(pause) = pause {
            match self.requests.recv_timeout(pause) {
                Ok(message) => self.accept(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.closed = true,
            }
        }
        while !self.closed && self.unread.len() < limit {
            match self.requests.try_recv() {
                Ok(message) => self.accept(message),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => self.closed = true,
            }
        }
        !(self.closed && self.unread.is_empty() && self.writes.is_empty())
    }

    fn accept(&mut self, message: Message) {
        match message {
            Message::Job(waiting) => self.unread.push(waiting),
            Message::Close(closer) => {
                self.closed = true;
                self.closers.push(closer);
            }
        }
    }

    /// Tells everyone who waits.
    pub(super) fn fail_all(&mut self, fault: &Fault) {
        for waiting in self.unread.drain(..).chain(self.writes.drain(..)) {
            waiting.job.fail(fault);
        }
    }

    /// Tells those who have waited for the lock longer than `patience`.
    pub(super) fn fail_impatient(&mut self, patience: Duration, fault: &Fault) {
        let late = |waiting: &mut Waiting| waiting.since.elapsed() >= patience;
        for waiting in self.unread.extract_if(.., late) {
            waiting.job.fail(fault);
        }
        // The oldest come first.
        while self.writes.front_mut().is_some_and(late) {
            if let Some(waiting) = self.writes.pop_front() {
                waiting.job.fail(fault);
            }
        }
    }

    /// Says that the file is closed, to those who asked.
    pub(super) fn finish(self) {
        for closer in self.closers {
            // Nobody may be waiting any more.
            let _ = closer.send(());
        }
    }
}
