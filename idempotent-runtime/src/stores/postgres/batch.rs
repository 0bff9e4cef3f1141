//! Operations that wait at the same time, joined into one statement and one commit. Each has an outcome of its own: in
//! the statement every one is judged by itself, and when a statement fails as a whole, each is asked alone.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::{PgConnection, PgPool};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::Sql;
use super::attempt::{Complete, Renew, complete_many, renew_many};
use super::fault::Fault;
use super::link::{self, Task};
use super::operations::{On, Prepare};
use super::reserve::{ReserveKey, reserve_many};
use crate::key::RecordKey;
use crate::store::{Reserved, Write};

/// So many statements are on their way at most. While they wait for the disk, the next ones fill up.
const LANES: usize = 2;

type Answer<T> = Result<T, Fault>;
type Caller<T> = oneshot::Sender<Answer<T>>;

/// An operation, and who waits for its answer.
#[derive(Debug)]
enum Job {
    Reserve(ReserveKey, Caller<Reserved>),
    Renew(Renew, Caller<Write>),
    Complete(Complete, Caller<Write>),
}

impl Job {
    fn key(&self) -> &RecordKey {
        match self {
            Self::Reserve(request, _) => &request.key,
            Self::Renew(renew, _) => &renew.key,
            Self::Complete(complete, _) => &complete.key,
        }
    }

    /// Whether one statement can do both.
    fn goes_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Reserve(one, _), Self::Reserve(other, _)) => {
                one.take_over == other.take_over && one.max_attempts == other.max_attempts
            }
            (Self::Renew(..), Self::Renew(..)) | (Self::Complete(..), Self::Complete(..)) => true,
            _ => false,
        }
    }

    /// A caller who went away gets no reservation.
    fn is_wanted(&self) -> bool {
        !matches!(self, Self::Reserve(_, caller) if caller.is_closed())
    }
}

/// What waits, and how many lanes are at work.
#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    lanes: usize,
}

/// The operations of one store.
#[derive(Debug)]
pub(super) struct Batcher {
    pool: PgPool,
    sql: Arc<Sql>,
    most: usize,
    queue: Mutex<Queue>,
}

impl Batcher {
    pub(super) fn new(pool: PgPool, sql: Arc<Sql>, most: usize) -> Self {
        Self { pool, sql, most, queue: Mutex::default() }
    }

    pub(super) async fn reserve(self: &Arc<Self>, request: ReserveKey) -> Answer<Reserved> {
        self.join(|caller| Job::Reserve(request, caller)).await
    }

    pub(super) async fn renew(self: &Arc<Self>, renew: Renew) -> Answer<Write> {
        self.join(|caller| Job::Renew(renew, caller)).await
    }

    pub(super) async fn complete(self: &Arc<Self>, complete: Complete) -> Answer<Write> {
        self.join(|caller| Job::Complete(complete, caller)).await
    }

    /// Queues an operation and waits for its answer. A caller who goes away leaves everything but a reservation to be
    /// done.
    async fn join<T>(self: &Arc<Self>, job: impl FnOnce(Caller<T>) -> Job) -> Answer<T> {
        let (caller, answer) = oneshot::channel();
        let Ok(runtime) = Handle::try_current() else {
            return Err(Fault::Unavailable("there is no tokio runtime to send the operation from"));
        };
        {
            let mut queue = self.lock();
            queue.jobs.push_back(job(caller));
            if queue.lanes < LANES {
                queue.lanes += 1;
                let lane = Lane(Arc::clone(self));
                drop(runtime.spawn(lane.work()));
            }
        }
        answer.await.unwrap_or(Err(Fault::Unavailable("the runtime that had sent the operation has ended")))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what one statement can do: operations of one kind, on different records. The first in the queue is among
    /// them. A reservation of a record that another one is asking for follows it.
    fn take(&self) -> Option<(Vec<Job>, Vec<Job>)> {
        let mut queue = self.lock();
        let (mut batch, mut followers, mut rest): (Vec<Job>, Vec<Job>, VecDeque<Job>) = Default::default();
        let mut keys = HashSet::new();
        while let Some(job) = queue.jobs.pop_front() {
            if !job.is_wanted() {
                continue;
            }
            let fits = batch.first().is_none_or(|first| first.goes_with(&job)) && batch.len() < self.most;
            if !fits {
                rest.push_back(job);
            } else if keys.insert(job.key().as_str().to_owned()) {
                batch.push(job);
            } else if matches!(job, Job::Reserve(..)) {
                followers.push(job);
            } else {
                rest.push_back(job);
            }
        }
        queue.jobs = rest;
        // In the same order everywhere, so that two statements cannot wait for each other.
        batch.sort_by(|one, other| one.key().as_str().cmp(other.key().as_str()));
        (!batch.is_empty()).then_some((batch, followers))
    }
}

/// One of those who send statements. It ends when nothing waits.
struct Lane(Arc<Batcher>);

impl Drop for Lane {
    /// Also when its runtime ends in the middle: what still waits is sent by whoever comes next.
    fn drop(&mut self) {
        self.0.lock().lanes -= 1;
    }
}

impl Lane {
    async fn work(self) {
        loop {
            // Lets those queue up who have been woken at the same time.
            tokio::task::yield_now().await;
            let Some((batch, followers)) = self.0.take() else { return };
            self.send(batch, followers).await;
        }
    }

    async fn send(&self, batch: Vec<Job>, followers: Vec<Job>) {
        let (mut reserves, mut renewals, mut completions) = (Vec::new(), Vec::new(), Vec::new());
        for job in batch {
            match job {
                Job::Reserve(request, caller) => reserves.push((request, caller)),
                Job::Renew(renew, caller) => renewals.push((renew, caller)),
                Job::Complete(complete, caller) => completions.push((complete, caller)),
            }
        }
        if !reserves.is_empty() {
            self.reserve(reserves, followers).await;
        } else if !renewals.is_empty() {
            self.answer(renewals).await;
        } else {
            self.answer(completions).await;
        }
    }

    /// Asks for `requests`, and gives every caller the answer.
    async fn answer<R>(&self, requests: Vec<(R, Caller<<Vec<R> as Joined>::One>)>)
    where
        Vec<R>: Joined,
    {
        let (requests, callers): (Vec<R>, Vec<_>) = requests.into_iter().unzip();
        for (caller, answer) in callers.into_iter().zip(self.ask(requests).await) {
            // Whoever has gone away needs none.
            let _ = caller.send(answer);
        }
    }

    /// The same for reservations. Who asked for the same record with the same arguments at the same time would have been
    /// shown the same; the others, and those whose forerunner was granted, are next.
    async fn reserve(&self, requests: Vec<(ReserveKey, Caller<Reserved>)>, followers: Vec<Job>) {
        let (requests, callers): (Vec<ReserveKey>, Vec<_>) = requests.into_iter().unzip();
        let answers = self.ask(requests.clone()).await;
        let mut next = Vec::new();
        for follower in followers {
            let Job::Reserve(request, caller) = follower else { continue };
            let leader = requests.iter().position(|leader| leader.key == request.key);
            let shown = leader.and_then(|at| match answers.get(at) {
                Some(Ok(Reserved::Held(record)))
                    if requests.get(at)?.would_see_the_same(&request, record) =>
                {
                    Some(record.clone())
                }
                _ => None,
            });
            match shown {
                Some(record) => drop(caller.send(Ok(Reserved::Held(record)))),
                None => next.push(Job::Reserve(request, caller)),
            }
        }
        {
            let mut queue = self.0.lock();
            next.into_iter().rev().for_each(|job| queue.jobs.push_front(job));
        }
        for (caller, answer) in callers.into_iter().zip(answers) {
            // Whoever has gone away needs none.
            let _ = caller.send(answer);
        }
    }

    /// The answers to all requests, in their order. A statement that failed for reasons of its own says nothing about
    /// the single ones, so each is asked alone.
    async fn ask<R>(&self, requests: Vec<R>) -> Vec<Answer<<Vec<R> as Joined>::One>>
    where
        Vec<R>: Joined,
    {
        let many = requests.len() > 1;
        let requests = match self.run(requests).await {
            (_, Ok(answers)) if !answers.iter().any(|answer| matches!(answer, Err(Fault::Contended))) => {
                return answers;
            }
            (requests, Ok(answers)) => {
                let mut settled = Vec::with_capacity(answers.len());
                for (request, answer) in requests.into_iter().zip(answers) {
                    settled.push(match answer {
                        Err(Fault::Contended) => self.alone(request).await,
                        answer => answer,
                    });
                }
                return settled;
            }
            (requests, Err(fault)) if !many || fault.is_for_all() => {
                return requests.into_iter().map(|_| Err(fault.clone())).collect();
            }
            (requests, Err(_)) => requests,
        };
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            answers.push(self.alone(request).await);
        }
        answers
    }

    /// One request by itself, a few times if its record changes under it.
    async fn alone<R>(&self, request: R) -> Answer<<Vec<R> as Joined>::One>
    where
        Vec<R>: Joined,
    {
        let mut one = vec![request];
        for _ in 0..30 {
            let (request, answers) = self.run(one).await;
            one = request;
            match answers?.into_iter().next() {
                None | Some(Err(Fault::Contended)) => {}
                Some(answer) => return answer,
            }
        }
        Err(Fault::Contended)
    }

    async fn run<R>(&self, requests: Vec<R>) -> (Vec<R>, Answer<Vec<Answer<<Vec<R> as Joined>::One>>>)
    where
        Vec<R>: Joined,
    {
        let Batcher { pool, sql, .. } = &*self.0;
        let task = All(sql, requests);
        let answer = match link::run(pool, &task).await {
            Err(fault) if fault.is_missing_table() && sql.create => {
                match link::run(pool, &On(sql, Prepare)).await {
                    Ok(()) => link::run(pool, &task).await,
                    Err(fault) => Err(fault),
                }
            }
            answer => answer,
        };
        (task.1, answer)
    }
}

/// Requests that one statement can do.
trait Joined: Send + Sync {
    type One: Send;

    fn run(
        &self,
        connection: &mut PgConnection,
        sql: &Sql,
    ) -> impl Future<Output = Answer<Vec<Answer<Self::One>>>> + Send;
}

impl Joined for Vec<ReserveKey> {
    type One = Reserved;

    async fn run(&self, connection: &mut PgConnection, sql: &Sql) -> Answer<Vec<Answer<Reserved>>> {
        reserve_many(connection, sql, self).await
    }
}

impl Joined for Vec<Renew> {
    type One = Write;

    async fn run(&self, connection: &mut PgConnection, sql: &Sql) -> Answer<Vec<Answer<Write>>> {
        Ok(renew_many(connection, sql, self).await?.into_iter().map(Ok).collect())
    }
}

impl Joined for Vec<Complete> {
    type One = Write;

    async fn run(&self, connection: &mut PgConnection, sql: &Sql) -> Answer<Vec<Answer<Write>>> {
        Ok(complete_many(connection, sql, self).await?.into_iter().map(Ok).collect())
    }
}

struct All<'a, R>(&'a Sql, R);

impl<R: Joined> Task for All<'_, R> {
    type Answer = Vec<Answer<R::One>>;

    async fn run(&self, connection: &mut PgConnection) -> Answer<Self::Answer> {
        self.1.run(connection, self.0).await
    }
}
