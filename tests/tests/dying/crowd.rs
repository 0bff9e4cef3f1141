//! Sixty-four tasks in each of four processes on one key, on every store that processes can share: one body.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use idempotent_runtime::with_outcome;
use tokio::sync::{mpsc, watch};

use crate::bodies::{Process, Trouble};
use crate::ledger::{Ledger, What};
use crate::modes::Mode;
use crate::places::{Kind, Place};
use crate::worker::{PATIENCE, Task, Worker, listen, say};

const TASKS: usize = 64;
const PROCESSES: usize = 4;
/// Nobody is dead here, however long a body takes to be polled.
const LEASE: Duration = Duration::from_secs(600);

#[test]
fn one_of_many_runs_on_sqlite() {
    crowd(Kind::Sqlite);
}

#[test]
fn one_of_many_runs_on_postgres() {
    crowd(Kind::Postgres);
}

#[test]
fn one_of_many_runs_on_mysql() {
    crowd(Kind::MySql);
}

#[test]
fn one_of_many_runs_on_redis() {
    crowd(Kind::Redis);
}

#[test]
fn one_of_many_runs_on_dynamodb() {
    crowd(Kind::DynamoDb);
}

fn crowd(kind: Kind) {
    let place = Place::new(kind);
    let ledger = Ledger::open(&place.ledger());
    let task = |number| Task { role: "crowd", number, trap: None };
    let mut workers: Vec<Worker> =
        (1..).take(PROCESSES).map(|number| Worker::start(&place, task(number))).collect();

    // Without waiting: while the one body is at work, everybody else is refused.
    let key = Mode::Refuse.key(1, 1);
    let refused = ask_all(&mut workers, &format!("try {key}"));
    let in_progress: usize = refused.iter().map(|said| count(said, "in-progress")).sum();
    assert_eq!(in_progress, TASKS * PROCESSES - 1, "{refused:?}");
    let ended = ask_all(&mut workers, "end");
    assert_eq!(ended.iter().filter(|said| said.contains("Executed")).count(), 1, "{ended:?}");
    let value = only_effect(&ledger, &key);
    for said in ask_all(&mut workers, &format!("again {key}")) {
        assert_eq!(said, format!("{TASKS} Replayed {value}"));
    }

    // With waiting: everybody gets the result of the one body.
    let key = Mode::Refuse.key(1, 2);
    for worker in &mut workers {
        worker.tell(&format!("wait {key}"));
    }
    let started = Instant::now();
    while ledger.read().iter().all(|entry| entry.key != key) {
        assert!(started.elapsed() < PATIENCE, "no body began");
        std::thread::sleep(Duration::from_millis(5));
    }
    let given = ask_all(&mut workers, "end");
    let value = only_effect(&ledger, &key);
    let (executed, replayed) = (format!("Executed {value}"), format!("Replayed {value}"));
    assert_eq!(given.iter().map(|said| count(said, &executed)).sum::<usize>(), 1, "{given:?}");
    let others: usize = given.iter().map(|said| count(said, &replayed)).sum();
    assert_eq!(others, TASKS * PROCESSES - 1, "{given:?}");
    workers.into_iter().for_each(Worker::end);
}

/// Tells all of them something, and hears what each says.
fn ask_all(workers: &mut [Worker], line: &str) -> Vec<String> {
    for worker in &mut *workers {
        worker.tell(line);
    }
    workers.iter_mut().map(Worker::hear).collect()
}

/// How many of `what` a process has: `63 Replayed 4.0, 1 Executed 4.0`.
fn count(said: &str, what: &str) -> usize {
    let parts = said.split(", ").filter_map(|part| part.split_once(' '));
    parts.filter(|(_, name)| *name == what).map(|(count, _)| count.parse::<usize>().unwrap()).sum()
}

/// The value of the one body that ran.
fn only_effect(ledger: &Ledger, key: &str) -> String {
    let mut entries = ledger.read();
    entries.retain(|entry| entry.what == What::Ran && entry.key == key);
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries.pop().unwrap().value
}

/// What one of the processes does: what it is told, with all its tasks at once.
pub(crate) async fn call(process: &Arc<Process>) {
    let (say_end, ends) = watch::channel(false);
    while let Some(line) = listen() {
        let Some((word, key)) = line.split_once(' ') else { panic!("{line}") };
        let _ = say_end.send(false);
        let (report, mut reports) = mpsc::unbounded_channel();
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let (process, key, ends, report) =
                    (Arc::clone(process), key.to_owned(), ends.clone(), report.clone());
                let wait = if word == "wait" { PATIENCE } else { Duration::ZERO };
                tokio::spawn(async move {
                    let answer = one_call(&process, &key, wait, ends, report.clone()).await;
                    let _ = report.send(answer.clone());
                    answer
                })
            })
            .collect();
        if word == "try" {
            // Everybody is refused, or at work.
            let mut seen = Vec::new();
            while seen.len() < TASKS {
                seen.push(reports.recv().await.expect("a task says something"));
            }
            say(&summary(&seen));
        }
        if word != "again" {
            assert_eq!(listen().as_deref(), Some("end"));
            let _ = say_end.send(true);
        }
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.unwrap());
        }
        say(&summary(&answers));
    }
}

/// One call. What it was given, in words.
async fn one_call(
    process: &Process,
    key: &str,
    wait: Duration,
    mut ends: watch::Receiver<bool>,
    report: mpsc::UnboundedSender<String>,
) -> String {
    let operation = process.idempotency.operation("work").lease(LEASE).wait(wait);
    let body = |_| async move {
        let value = process.act(key, "effect");
        let _ = report.send("at work".into());
        ends.wait_for(|ends| *ends).await.unwrap();
        Ok::<_, Trouble>(value)
    };
    match with_outcome(operation.key(key).run(body)).await {
        (Ok(value), outcome) => format!("{:?} {value}", outcome.unwrap()),
        (Err(Trouble::Library(code)), _) => code.to_owned(),
        (Err(Trouble::NotDone), _) => unreachable!("no body says so"),
    }
}

/// `63 in-progress, 1 at work`.
fn summary(answers: &[String]) -> String {
    let kinds: BTreeSet<String> = answers.iter().cloned().collect();
    let counted = |kind: String| {
        let count = answers.iter().filter(|answer| **answer == kind).count();
        format!("{count} {kind}")
    };
    kinds.into_iter().map(counted).collect::<Vec<_>>().join(", ")
}
