//! The program `idempotent`, run as an operator would.

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as expected")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use idempotent_runtime::stores::SqliteStore;
use idempotent_runtime::{Error, Idempotency};

/// A SQLite file of its own, deleted in the end.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("idempotent-cli-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.join("records.db")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let url = format!("sqlite:{}", self.path().display());
        let program = env!("CARGO_BIN_EXE_idempotent");
        Command::new(program).args(arguments).env("IDEMPOTENT_URL", url).output().unwrap()
    }

    async fn idempotency(&self) -> Idempotency {
        Idempotency::new(SqliteStore::open(self.path()).await.unwrap())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

async fn answer(idempotency: &Idempotency, key: &str) -> Result<u32, Error> {
    idempotency.operation("charge").refuse_after_errors().key(key).run(|_| async { Ok(99) }).await
}

#[tokio::test]
async fn a_stuck_key_is_found_and_resolved() {
    let file = File::new("stuck");
    let idempotency = file.idempotency().await;
    let charge = idempotency.operation("charge").refuse_after_errors();
    for key in ["o-1", "o-2"] {
        assert!(charge.key(key).run(|_| async { Err::<u32, _>(Error::NoAttempt) }).await.is_err());
    }
    answer(&idempotency, "o-3").await.unwrap();

    let listed = file.run(&["list", "--state", "unknown", "--json"]);
    let lines: Vec<serde_json::Value> =
        text(&listed).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let keys: Vec<_> = lines.iter().map(|record| record["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["default/charge/o-1", "default/charge/o-2"]);
    assert_eq!(text(&file.run(&["list"])).lines().count(), 3);

    let owner = lines[0]["owner"].as_str().unwrap();
    let done = file.run(&["resolve", "default/charge/o-1", "--seen", owner, "--done", "7"]);
    assert_eq!((text(&done).trim(), done.status.code()), ("resolved", Some(0)));
    assert_eq!(answer(&idempotency, "o-1").await.unwrap(), 7);
    let again = file.run(&["resolve", "default/charge/o-1", "--seen", owner, "--not-done"]);
    assert_eq!(again.status.code(), Some(1), "it has changed since it was seen: {}", text(&again));

    let not_done = file.run(&["resolve", "default/charge/o-2", "--not-done"]);
    assert_eq!(not_done.status.code(), Some(0), "{}", text(&not_done));
    assert_eq!(answer(&idempotency, "o-2").await.unwrap(), 99);

    let kept = file.run(&["forget", "default/charge/o-3"]);
    assert_eq!(kept.status.code(), Some(1), "it holds a result: {}", text(&kept));
    let forgotten = file.run(&["forget", "default/charge/o-3", "--with-result"]);
    assert_eq!((text(&forgotten).trim(), forgotten.status.code()), ("forgotten", Some(0)));
    let gone = file.run(&["inspect", "default/charge/o-3"]);
    assert_eq!(gone.status.code(), Some(1), "{}", text(&gone));
}

#[tokio::test]
async fn every_command_speaks_json() {
    let file = File::new("json");
    let idempotency = file.idempotency().await;
    let charge = idempotency.operation("charge").refuse_after_errors();
    assert!(charge.key("o-1").run(|_| async { Err::<u32, _>(Error::NoAttempt) }).await.is_err());
    answer(&idempotency, "o-2").await.unwrap();
    let json = |arguments: &[&str]| {
        let output = file.run(&[arguments, &["--json"]].concat());
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (lines, output.status.code().unwrap())
    };
    assert_eq!(json(&["inspect", "default/charge/nobody"]), (vec![serde_json::Value::Null], 1));
    let (record, code) = json(&["inspect", "default/charge/o-1"]);
    assert_eq!((record[0]["state"].as_str(), code), (Some("unknown"), 0));
    assert_eq!(json(&["list"]).0.len(), 2);
    let (kept, code) = json(&["forget", "default/charge/o-2"]);
    assert_eq!((&kept[0]["forgotten"], &kept[1]["state"], code), (&false.into(), &"completed".into(), 1));
    let other = "0".repeat(32);
    let (differs, code) = json(&["resolve", "default/charge/o-1", "--seen", &other, "--not-done"]);
    assert_eq!((&differs[0]["resolved"], &differs[1]["state"], code), (&false.into(), &"unknown".into(), 1));
    let (resolved, code) = json(&["resolve", "default/charge/o-1", "--done", "7"]);
    assert_eq!((&resolved[0]["resolved"], code), (&true.into(), 0));
    let (gone, code) = json(&["resolve", "default/charge/nobody", "--not-done"]);
    assert_eq!((&gone[0], code), (&serde_json::Value::Null, 1));
    let (forgotten, code) = json(&["forget", "default/charge/o-2", "--with-result"]);
    assert_eq!((&forgotten[0]["forgotten"], code), (&true.into(), 0));
    let (purged, code) = json(&["purge"]);
    assert_eq!((&purged[0]["purged"], code), (&0.into(), 0));
    assert_eq!(json(&["doctor"]).1, 0);
}

/// An attempt that was seen dead completes after all: its result is not lost to whoever gives up the key by its token.
#[tokio::test]
async fn a_result_that_came_after_the_look_is_not_forgotten() {
    let file = File::new("late");
    let idempotency = file.idempotency().await;
    let short = std::time::Duration::from_millis(1);
    let call = idempotency.operation("charge").lease(short).key("o-1");
    let (finish, finished) = std::sync::mpsc::channel::<u32>();
    let late = std::thread::spawn(move || {
        // Its process stands still: nothing renews.
        let body = call.run(|_| async { Ok::<_, Error>(finished.recv().unwrap()) });
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(body)
    });
    let stuck = loop {
        let stuck = text(&file.run(&["list", "--stuck", "--json"]));
        if !stuck.is_empty() {
            break stuck;
        }
    };
    let seen: serde_json::Value = serde_json::from_str(&stuck).unwrap();
    finish.send(7).unwrap();
    assert_eq!(late.join().unwrap().unwrap(), 7);
    let forget = file.run(&["forget", "default/charge/o-1", "--seen", seen["owner"].as_str().unwrap()]);
    assert_eq!(forget.status.code(), Some(1), "{}", text(&forget));
    assert_eq!(answer(&idempotency, "o-1").await.unwrap(), 7);
}

#[tokio::test]
async fn results_are_not_shown() {
    let file = File::new("secret");
    let idempotency = file.idempotency().await;
    let call = idempotency.operation("charge").key("o-1");
    call.run(|_| async { Ok::<_, Error>("4111 1111".to_owned()) }).await.unwrap();
    for arguments in [&["inspect", "default/charge/o-1"][..], &["list"], &["list", "--json"]] {
        let shown = text(&file.run(arguments));
        assert!(shown.contains("completed") && !shown.contains("4111"), "{shown}");
    }
}

#[tokio::test]
async fn it_purges_and_examines() {
    let file = File::new("purge");
    let idempotency = file.idempotency().await;
    let short = idempotency.operation("charge").ttl(std::time::Duration::from_millis(1));
    for key in ["o-1", "o-2"] {
        short.key(key).run(|_| async { Ok::<u32, Error>(1) }).await.unwrap();
    }
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    assert_eq!(text(&file.run(&["purge"])).trim(), "2 expired records deleted");
    assert_eq!(file.run(&["doctor"]).status.code(), Some(0));
}

#[test]
fn wrong_arguments_say_what_is_wrong() {
    let file = File::new("wrong");
    for (arguments, says) in [
        (&["resolve", "k"][..], "--done"),
        (&["resolve", "k", "--done", "1", "--not-done"], "cannot be used with"),
        (&["list", "--state", "lost"], "not-retained"),
        (&["list", "--url", "nosql:"], "`sqlite:`"),
    ] {
        let output = file.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains(says), "{}", text(&output));
    }
    let not_json = {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { drop(file.idempotency().await) });
        file.run(&["resolve", "k", "--done", "{"])
    };
    assert!(text(&not_json).contains("not JSON"), "{}", text(&not_json));
}

/// A mistyped name is not an empty store, in which nothing is stuck.
#[test]
fn a_store_that_is_not_there_is_an_error_and_is_not_made() {
    let file = File::new("typo");
    for arguments in
        [&["list"][..], &["inspect", "k"], &["purge"], &["doctor"], &["resolve", "k", "--not-done"]]
    {
        let output = file.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output));
        assert!(output.stdout.is_empty(), "{}", text(&output));
    }
    assert!(!file.path().exists());
    let parameters = file.run(&["list", "--url", "sqlite:records.db?mode=ro"]);
    assert_eq!(parameters.status.code(), Some(2));
    assert!(text(&parameters).contains("takes no parameters"), "{}", text(&parameters));
}

#[tokio::test]
async fn an_empty_list_says_so_and_a_reader_that_leaves_is_no_failure() {
    let file = File::new("pipe");
    let idempotency = file.idempotency().await;
    let empty = file.run(&["list"]);
    assert_eq!((empty.status.code(), empty.stdout.len()), (Some(0), 0));
    assert!(text(&empty).contains("no such records"), "{}", text(&empty));

    answer(&idempotency, "o-1").await.unwrap();
    let url = format!("sqlite:{}", file.path().display());
    let mut program = Command::new(env!("CARGO_BIN_EXE_idempotent"));
    let mut child =
        program.args(["list", "--url", &url]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(output.stderr.is_empty(), "{}", text(&output));
}

/// A server that takes connections and says nothing.
#[test]
fn a_store_that_does_not_answer_is_not_waited_for_without_end() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let mut tried = 0;
    for (scheme, database) in [("postgres", "shop"), ("mysql", "shop"), ("redis", "0")] {
        let url = format!("{scheme}://127.0.0.1:{port}/{database}");
        let program = env!("CARGO_BIN_EXE_idempotent");
        let output =
            Command::new(program).args(["inspect", "k", "--timeout", "1", "--url", &url]).output().unwrap();
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{scheme}: {said}");
        if !said.contains("needs the feature") {
            tried += 1;
            assert!(said.contains("answer"), "{scheme}: {said}");
        }
    }
    // Those of the features that this program was made with.
    assert!(tried > 0 || cfg!(not(any(feature = "postgres", feature = "mysql", feature = "redis"))));
}
