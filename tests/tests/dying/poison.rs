//! A key whose body kills every process that runs it: it is not tried for ever.

use std::time::Duration;

use idempotent_runtime::{Idempotency, OnCrash};
use rustix::process::{Signal, getpid, kill_process};

use crate::bodies::{LEASE, Process, Trouble};
use crate::ledger::{Ledger, What};
use crate::modes::Mode;
use crate::places::{Kind, Place};
use crate::worker::{PATIENCE, Task, Worker, listen, say};

const ATTEMPTS: u32 = 3;

#[test]
fn a_key_that_kills_every_process_ends_unknown_after_its_last_attempt() {
    let place = Place::new(Kind::Sqlite);
    let key = Mode::Retry.key(1, 1);
    let start = |number| {
        let mut worker = Worker::start(&place, Task { role: "poison", number, trap: None });
        worker.tell(&key);
        worker
    };
    for number in 1..=ATTEMPTS {
        start(number).die();
    }
    // The next processes live.
    for number in 1..=2 {
        let mut worker = start(ATTEMPTS + number);
        assert_eq!(worker.hear(), "outcome-unknown");
        worker.end();
    }
    let entries = Ledger::open(&place.ledger()).read();
    let ran = entries.iter().filter(|entry| entry.what == What::Ran).count();
    assert_eq!(ran, usize::try_from(ATTEMPTS).unwrap());
}

/// What each of the processes does.
pub(crate) async fn call(process: &Process) {
    let key = listen().expect("a key");
    // A handle of its own, because attempts are counted by it.
    let builder = Idempotency::builder().store(process.idempotency.store().expect("it has one").clone());
    let idempotency = builder.lease(LEASE).max_attempts(ATTEMPTS).wait(PATIENCE).build().unwrap();
    let operation = idempotency.operation("work").on_crash(OnCrash::Retry);
    let body = |_| async {
        process.act(&key, "effect");
        kill_process(getpid(), Signal::KILL).unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(())
    };
    match operation.key(&key).run(body).await {
        Err(Trouble::Library(code)) => say(code),
        other => panic!("{other:?}"),
    }
}
