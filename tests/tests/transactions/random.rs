//! Calls of both kinds at once on a few keys, some of which are rolled back, dropped or fail: what is in the database at the end is
//! judged. `SEED` chooses what they do; when they do it is up to the database.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use idempotent_runtime::Idempotency;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sqlx::Transaction;
use tests::Order;

use super::common::post;
use super::{Connection, Db, LEVELS, Pool, SELECT, Shop, shop};
use crate::failure::Failure;

const KEYS: u64 = 6;
const TASKS: u64 = 8;
const CALLS: u64 = 12;

/// What becomes of a call.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// In a transaction that the library begins and commits.
    Whole,
    Committed,
    RolledBack,
    DroppedAndCommitted,
    DroppedAndRolledBack,
    FailedAndCommitted,
    Leased,
    LeasedAndDropped,
}

const FATES: [Fate; 8] = [
    Fate::Whole,
    Fate::Committed,
    Fate::RolledBack,
    Fate::DroppedAndCommitted,
    Fate::DroppedAndRolledBack,
    Fate::FailedAndCommitted,
    Fate::Leased,
    Fate::LeasedAndDropped,
];

/// One call, whose body posts a number of its own.
#[derive(Clone)]
struct Call {
    idempotency: Idempotency,
    pool: Pool,
    key: String,
    number: u64,
}

impl Call {
    async fn on(&self, tx: &mut Connection, hangs: bool, fails: bool) -> Result<u64, Failure> {
        let call = self.idempotency.operation("charge").wait(Duration::from_secs(20)).key(&self.key);
        call.run_in(tx, async |tx: &mut Connection, _| {
            let number = post(tx, &Order::new(&self.key, self.number)).await?;
            if hangs {
                std::future::pending::<()>().await;
            }
            if fails { Err(Failure::Declined) } else { Ok(number) }
        })
        .await
    }

    async fn leased(&self, hangs: bool) -> Result<u64, Failure> {
        let call = self.idempotency.operation("charge").wait(Duration::from_secs(20)).key(&self.key);
        call.run(|_| async {
            let number = post(&mut *self.pool.acquire().await?, &Order::new(&self.key, self.number)).await?;
            if hangs {
                std::future::pending::<()>().await;
            }
            Ok(number)
        })
        .await
    }

    /// The value that the caller can rely on, if there is one.
    async fn meet(self, fate: Fate) -> Option<u64> {
        let dropped = |call| async { tokio::time::timeout(Duration::from_millis(30), call).await.ok() };
        match fate {
            Fate::Whole => {
                let (pool, idempotency) = (self.pool.clone(), self.idempotency.clone());
                let whole = idempotency.transaction(&pool, |tx| {
                    let call = self.clone();
                    Box::pin(async move { call.on(tx, false, false).await })
                });
                whole.await.ok()
            }
            Fate::Leased => self.leased(false).await.ok(),
            Fate::LeasedAndDropped => {
                tokio::time::timeout(Duration::from_millis(30), self.leased(true)).await.ok()?.ok()
            }
            _ => {
                let mut tx: Transaction<'_, Db> = self.pool.begin().await.unwrap();
                let hangs = matches!(fate, Fate::DroppedAndCommitted | Fate::DroppedAndRolledBack);
                let call = self.on(&mut tx, hangs, matches!(fate, Fate::FailedAndCommitted));
                let answer = if hangs { dropped(Box::pin(call)).await } else { Some(call.await) };
                let value = answer.and_then(Result::ok);
                let commits = !matches!(fate, Fate::RolledBack | Fate::DroppedAndRolledBack);
                let ended = if commits { tx.commit().await } else { tx.rollback().await };
                value.filter(|_| commits && ended.is_ok())
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_becomes_of_calls_each_effect_is_there_once_and_has_its_record() {
    let said = std::env::var("SEED").ok().map(|seed| seed.parse::<u64>().expect("a number"));
    let seed = said.unwrap_or_else(rand::random);
    println!("SEED={seed}");
    let Shop { idempotency, pool, .. } = &shop(LEVELS[0]).await;
    let relied_on = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (idempotency, pool, relied_on) = (idempotency.clone(), pool.clone(), Arc::clone(&relied_on));
            let mut chance = StdRng::seed_from_u64(seed ^ task);
            tokio::spawn(async move {
                for n in 0..CALLS {
                    let key = format!("o-{}", chance.random_range(0..KEYS));
                    let (idempotency, pool, number) =
                        (idempotency.clone(), pool.clone(), task * CALLS + n + 1);
                    let call = Call { idempotency, pool, key: key.clone(), number };
                    let fate = FATES[chance.random_range(0..FATES.len())];
                    if let Some(value) = call.meet(fate).await {
                        relied_on.lock().unwrap().push((key, value));
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    idempotency.shutdown().await;
    let relied_on = std::mem::take(&mut *relied_on.lock().unwrap());
    for key in (0..KEYS).map(|key| format!("o-{key}")) {
        let posted: Vec<i64> = sqlx::query_scalar(SELECT).bind(&key).fetch_all(pool).await.unwrap();
        assert!(posted.len() <= 1, "{key} was done twice: {posted:?}");
        let again = idempotency.operation("charge").key(&key).run(|_| async { Ok::<u64, Failure>(0) }).await;
        match again {
            Ok(0) => assert!(posted.is_empty(), "{key} was done, and its record is not there"),
            Ok(value) => assert_eq!(posted, [i64::try_from(value).unwrap()], "{key}"),
            Err(error) => assert_eq!(error, Failure::Idempotency("outcome-unknown".into()), "{key}"),
        }
        for (_, value) in relied_on.iter().filter(|(of, _)| *of == key) {
            assert_eq!(posted, [i64::try_from(*value).unwrap()], "{key}: what a caller was told");
        }
    }
}
