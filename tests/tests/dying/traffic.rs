//! What a process does until it dies: calls with keys of its own, each made twice at once, and with those of processes
//! before it and beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rand::seq::IndexedRandom;

use crate::bodies::Process;
use crate::modes::Mode;
use crate::worker::listen;

/// How many calls are under way at a time.
const TASKS: usize = 8;
/// How many keys of each kind another process tries, and how many own ones a process makes that has no trap.
const OTHERS: u32 = 4;
const OWN: u32 = 60;

/// Makes calls until nobody is there any more to end them for. A process that is trapped goes on making new keys.
pub(crate) async fn run(process: &Arc<Process>, trapped: bool) {
    let (ends, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let told = Arc::clone(&ends);
    std::thread::spawn(move || {
        while listen().is_some() {}
        told.store(true, Ordering::Relaxed);
    });
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (process, ends, made) = (Arc::clone(process), Arc::clone(&ends), Arc::clone(&made));
            tokio::spawn(async move {
                while !ends.load(Ordering::Relaxed) {
                    let own = made.load(Ordering::Relaxed) < OWN || trapped;
                    if own && rand::random() {
                        own_key(&process, made.fetch_add(1, Ordering::Relaxed)).await;
                    } else {
                        anothers_key(&process).await;
                    }
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

async fn own_key(process: &Process, n: u32) {
    // All kinds in turn, so that each is there soon.
    let mode = Mode::ALL.into_iter().cycle().nth(n as usize % Mode::ALL.len()).unwrap();
    let key = mode.key(process.number, n / u32::try_from(Mode::ALL.len()).unwrap());
    if mode == Mode::Asked && n.is_multiple_of(2) {
        process.call_and_go_away(&key).await;
    }
    let _ = tokio::join!(process.call(&key), process.call(&key));
}

async fn anothers_key(process: &Process) {
    let mode = Mode::ALL.choose(&mut rand::rng()).unwrap();
    let number = process.number.saturating_sub(3) + rand::random_range(0..5);
    let _ = process.call(&mode.key(number, rand::random_range(0..OTHERS))).await;
}
