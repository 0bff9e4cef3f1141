//! Several processes on one table. The others are this test binary again, told by the environment what to do.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use idempotent_runtime::store::{Lease, OwnerToken, Reserve, Reserved, Store};
use idempotent_runtime::stores::MySqlStore;

use crate::support::*;

const URL: &str = "IDEMPOTENT_TEST_MYSQL";
const KEYS: usize = 100;

/// What the other processes do; nothing in an ordinary run.
#[test]
fn in_another_process() {
    let Ok(url) = std::env::var(URL) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(race(&url));
}

/// The lines that a child says, without those of its test harness.
fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let output = BufReader::new(child.stdout.take().unwrap());
    output
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.split_once("said: ").map(|(_, said)| said.into()))
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "said: {line}").and_then(|()| out.flush()).unwrap();
}

/// Reserves every key, from many tasks, and says which it got.
async fn race(url: &str) {
    let store = MySqlStore::connect(url).await.unwrap();
    say("ready");
    std::io::stdin().lock().read_line(&mut String::new()).unwrap();
    let tasks: Vec<_> = (0..KEYS)
        .flat_map(|n| [n, n])
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let k = key(&n.to_string());
                let reserved = store.reserve(request(&k, OwnerToken::random())).await;
                match reserved.unwrap_or_else(|error| panic!("{}", words(&error))) {
                    Reserved::Granted(grant) => Some((n, grant.attempt, grant.fence)),
                    Reserved::Held(_) => None,
                }
            })
        })
        .collect();
    for task in tasks {
        if let Some((n, attempt, fence)) = task.await.unwrap() {
            say(&format!("{n} {attempt} {fence}"));
        }
    }
}

/// Lets three processes race for the keys and gives what they got: attempt and fence by key.
fn winners(url: &str) -> HashMap<usize, (u32, u64)> {
    let start = |_| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "processes::in_another_process", "--nocapture"]).env(URL, url);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut children: Vec<_> = (0..3).map(start).collect();
    let mut outputs: Vec<_> = children.iter_mut().map(lines).collect();
    for output in &mut outputs {
        assert_eq!(output.next().as_deref(), Some("ready"));
    }
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    let mut won = HashMap::new();
    for line in outputs.into_iter().flatten() {
        let words: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let [n, attempt, fence] = words[..] else { panic!("{line}") };
        let before = won.insert(usize::try_from(n).unwrap(), (u32::try_from(attempt).unwrap(), fence));
        assert_eq!(before, None, "two winners for key {n}");
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(won.len(), KEYS, "a key without a winner");
    won
}

#[tokio::test]
async fn each_key_has_one_winner_among_processes() {
    let url = server().database("processes");
    for (attempt, _) in winners(&url).into_values() {
        assert_eq!(attempt, 1);
    }
}

#[tokio::test]
async fn each_take_over_has_one_winner_among_processes() {
    let url = server().database("take_overs");
    let store = MySqlStore::connect(&url).await.unwrap();
    let lease = Lease { duration: Duration::ZERO, ..LEASE };
    let mut fences = HashMap::new();
    for n in 0..KEYS {
        let k = key(&n.to_string());
        let reserve = Reserve { lease, ..request(&k, OwnerToken::random()) };
        let Reserved::Granted(grant) = store.reserve(reserve).await.unwrap() else { panic!("held") };
        fences.insert(n, grant.fence);
    }
    for (n, (attempt, fence)) in winners(&url) {
        assert_eq!(attempt, 2);
        assert!(fence > fences[&n]);
    }
}
