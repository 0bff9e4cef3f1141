//! Several processes at one table. The others are this test binary again, told by the environment what to do.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use idempotent_runtime::store::{Lease, OwnerToken, Reserve, Reserved, Store};
use idempotent_runtime::stores::PostgresStore;
use tests::servers::postgres::shared;

use crate::support::*;

const URL: &str = "IDEMPOTENT_TEST_URL";
const BATCH: &str = "IDEMPOTENT_TEST_BATCH";
const KEYS: usize = 120;

/// What the other processes do; nothing in an ordinary run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_another_process() {
    let (Ok(url), Ok(batch)) = (std::env::var(URL), std::env::var(BATCH)) else { return };
    let store = PostgresStore::builder(pool(&url)).batch(batch.parse().unwrap()).open().await.unwrap();
    say("ready");
    std::io::stdin().lock().read_line(&mut String::new()).unwrap();
    let tasks: Vec<_> = (0..KEYS)
        .flat_map(|n| [n, n])
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let k = key(&n.to_string());
                match store.reserve(request(&k, OwnerToken::random())).await.unwrap() {
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

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "said: {line}").and_then(|()| out.flush()).unwrap();
}

/// The lines that a child says, without those of its test harness.
fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let output = BufReader::new(child.stdout.take().unwrap());
    let said = |line: String| line.split_once("said: ").map(|(_, said)| said.into());
    output.lines().map_while(Result::ok).filter_map(said)
}

/// Lets three processes race for the keys and gives what they got: attempt and fence by key.
fn winners(url: &str, batch: usize) -> HashMap<usize, (u32, u64)> {
    let mut children: Vec<_> = (0..3)
        .map(|_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "processes::in_another_process", "--nocapture"]);
            command.env(URL, url).env(BATCH, batch.to_string());
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
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

#[tokio::test(flavor = "multi_thread")]
async fn each_key_and_each_take_over_has_one_winner_among_processes() {
    for batch in [1, 64] {
        let url = shared().database();
        let (place, watched) = (url.clone(), batch);
        let first = tokio::task::spawn_blocking(move || winners(&place, watched)).await.unwrap();
        assert!(first.values().all(|(attempt, _)| *attempt == 1));

        let url = shared().database();
        let store = PostgresStore::builder(pool(&url)).open().await.unwrap();
        let lease = Lease { duration: Duration::ZERO, ..LEASE };
        let mut fences = HashMap::new();
        for n in 0..KEYS {
            let k = key(&n.to_string());
            let reserve = Reserve { lease, ..request(&k, OwnerToken::random()) };
            let Reserved::Granted(grant) = store.reserve(reserve).await.unwrap() else { panic!("held") };
            fences.insert(n, grant.fence);
        }
        let second = tokio::task::spawn_blocking(move || winners(&url, batch)).await.unwrap();
        for (n, (attempt, fence)) in second {
            assert_eq!(attempt, 2);
            assert!(fence > fences[&n]);
        }
    }
}
