//! Several processes at one table. The others are this test binary again, told by the environment what to do.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use idempotent_runtime::Idempotency;
use idempotent_runtime::store::{Lease, OwnerToken, Reserve, Reserved, Store};
use idempotent_runtime::stores::{DynamoDbStore, connect};
use tests::servers::dynamodb::client;

use crate::support::*;

const ROLE: &str = "IDEMPOTENT_TEST_ROLE";
const ENDPOINT: &str = "AWS_ENDPOINT_URL_DYNAMODB";
const TABLE: &str = "IDEMPOTENT_TEST_TABLE";
const KEYS: usize = 100;

/// What the other processes do; nothing in an ordinary run.
#[test]
fn in_another_process() {
    let (Ok(role), Ok(table)) = (std::env::var(ROLE), std::env::var(TABLE)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        match role.as_str() {
            "race" => race(&table).await,
            "connect" => match connect(&table).await {
                Ok(store) => say(&format!("{store:?} {:?}", store.load(&key("1")).await.unwrap())),
                Err(error) => say(&format!("{error}").replace('\n', " ")),
            },
            "call" => {
                let store = connect(&table).await.unwrap();
                let idempotency = Idempotency::builder().store(store).build().unwrap();
                let call = idempotency.operation("charge").key("1");
                let result =
                    call.run(|_| async { Ok::<_, idempotent_runtime::Error>(std::process::id()) }).await;
                say(&result.unwrap().to_string());
            }
            other => panic!("no role {other}"),
        }
    });
}

fn command(role: &str, table: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "processes::in_another_process", "--nocapture"])
        .env_remove("AWS_DEFAULT_REGION")
        .env_remove("AWS_ENDPOINT_URL")
        .env(ROLE, role)
        .env(TABLE, table)
        .env(ENDPOINT, server().endpoint())
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
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

/// Reserves every key, from two tasks each, and says which it got.
async fn race(table: &str) {
    let builder = DynamoDbStore::builder(client(&std::env::var(ENDPOINT).unwrap())).table(table);
    let store = builder.clock_skew(Duration::ZERO).open().await.unwrap();
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

/// Lets three processes race for the keys and gives what they got: attempt and fence by key.
fn winners(table: &str) -> HashMap<usize, (u32, u64)> {
    let mut children: Vec<_> = (0..3).map(|_| command("race", table).spawn().unwrap()).collect();
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

#[test]
fn each_key_has_one_winner_among_processes_that_make_the_table() {
    for (attempt, _) in winners(&table()).into_values() {
        assert_eq!(attempt, 1);
    }
}

#[tokio::test]
async fn each_take_over_has_one_winner_among_processes() {
    let store = builder().open().await.unwrap();
    let lease = Lease { duration: Duration::ZERO, ..LEASE };
    let mut fences = HashMap::new();
    for n in 0..KEYS {
        let k = key(&n.to_string());
        let reserve = Reserve { lease, ..request(&k, OwnerToken::random()) };
        let Reserved::Granted(grant) = store.reserve(reserve).await.unwrap() else { panic!("held") };
        fences.insert(n, grant.fence);
    }
    for (n, (attempt, fence)) in winners(store.table()) {
        assert_eq!(attempt, 2);
        assert!(fence > fences[&n]);
    }
}

/// What another process says that connects to `url`.
fn connecting(url: &str, change: impl FnOnce(&mut Command)) -> String {
    let mut command = command("connect", url);
    change(&mut command);
    let mut child = command.spawn().unwrap();
    let said = lines(&mut child).last();
    assert!(child.wait().unwrap().success());
    said.unwrap()
}

#[test]
fn a_url_and_the_environment_name_a_table() {
    let name = table();
    let expected = format!("DynamoDbStore {{ table: {name:?}, .. }} None");
    assert_eq!(connecting(&format!("dynamodb://{name}"), |_| ()), expected);
    let endpoint = server().endpoint().replace(':', "%3A").replace('/', "%2f");
    let url = format!("dynamodb://{name}?region=eu-west-1&endpoint={endpoint}");
    assert_eq!(
        connecting(&url, |command| {
            command.env_remove(ENDPOINT).env_remove("AWS_REGION");
        }),
        // Of another region, so it is another table.
        expected
    );

    let wrong = [
        ("dynamodb:", "names a table"),
        ("dynamodb://?region=eu-west-1", "names a table"),
        ("dynamodb://x?table=y", "no others"),
    ];
    for (url, reason) in wrong {
        let said = connecting(url, |_| ());
        assert!(said.contains(reason), "{said}");
    }
    for variable in ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
        let said = connecting("dynamodb://x", |command| {
            command.env_remove(variable);
        });
        assert!(said.contains(variable), "{said}");
    }
}

#[cfg(not(feature = "dynamodb-tls"))]
#[test]
fn an_encrypted_endpoint_needs_a_feature() {
    let said = connecting("dynamodb://x", |command| {
        command.env_remove(ENDPOINT);
    });
    assert!(said.contains("dynamodb-tls"), "{said}");
}

#[test]
fn what_one_process_ran_another_one_replays() {
    let url = format!("dynamodb://{}", table());
    let said: Vec<_> = (0..2)
        .map(|_| {
            let mut child = command("call", &url).spawn().unwrap();
            let said = lines(&mut child).last();
            assert!(child.wait().unwrap().success());
            said.unwrap()
        })
        .collect();
    assert_eq!(said[0], said[1]);
}
