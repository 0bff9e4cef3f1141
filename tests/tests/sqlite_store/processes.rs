//! Several processes at one file. The others are this test binary again, told by the environment what to do.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use idempotent_runtime::store::{
    Lease, OwnerToken, Reserve, Reserved, Settled, State, Store, StoreErrorKind, Write,
};
use idempotent_runtime::stores::SqliteStore;

use crate::support::*;

const ROLE: &str = "IDEMPOTENT_TEST_ROLE";
const FILE: &str = "IDEMPOTENT_TEST_FILE";
const KEYS: usize = 150;

/// What the other processes do; nothing in an ordinary run.
#[test]
fn in_another_process() {
    let (Ok(role), Ok(file)) = (std::env::var(ROLE), std::env::var(FILE)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        match role.as_str() {
            "race" => race(Path::new(&file)).await,
            "work" => work(Path::new(&file)).await,
            "fill" => fill(Path::new(&file)).await,
            "open" => {
                let error = SqliteStore::open(&*file).await.unwrap_err();
                say(&format!("{:?} {}", error.kind(), words(&error)));
            }
            other => panic!("no role {other}"),
        }
    });
}

fn command(role: &str, file: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "processes::in_another_process", "--nocapture"])
        .env(ROLE, role)
        .env(FILE, file)
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
    // At once and whole, also if the process is about to be killed.
    let mut out = std::io::stdout().lock();
    writeln!(out, "said: {line}").and_then(|()| out.flush()).unwrap();
}

/// Reserves every key, from many tasks, and says which it got.
async fn race(file: &Path) {
    let store = SqliteStore::open(file).await.unwrap();
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
fn winners(file: &Path) -> HashMap<usize, (u32, u64)> {
    let mut children: Vec<_> = (0..3).map(|_| command("race", file).spawn().unwrap()).collect();
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
    let folder = Folder::new();
    for (attempt, _) in winners(&folder.file()).into_values() {
        assert_eq!(attempt, 1);
    }
}

#[tokio::test]
async fn each_take_over_has_one_winner_among_processes() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).await.unwrap();
    let lease = Lease { duration: Duration::ZERO, ..LEASE };
    let mut fences = HashMap::new();
    for n in 0..KEYS {
        let k = key(&n.to_string());
        let reserve = Reserve { lease, ..request(&k, OwnerToken::random()) };
        let Reserved::Granted(grant) = store.reserve(reserve).await.unwrap() else { panic!("held") };
        fences.insert(n, grant.fence);
    }
    for (n, (attempt, fence)) in winners(&folder.file()) {
        assert_eq!(attempt, 2);
        assert!(fence > fences[&n]);
    }
}

/// Completes one key after the other in many tasks, and says each when the store has acknowledged it.
async fn work(file: &Path) {
    let store = SqliteStore::open(file).await.unwrap();
    for task in 0..16 {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0.. {
                let (k, owner) = (key(&format!("{task}-{n}")), OwnerToken::random());
                grant(&store, &k, owner).await;
                store.complete(&k, owner, &completed(k.as_str()), KEEP).await.unwrap();
                say(&format!("{task}-{n}"));
            }
        });
    }
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn every_acknowledged_completion_survives_a_kill() {
    for round in 1..=3 {
        let folder = Folder::new();
        let mut child = command("work", &folder.file()).spawn().unwrap();
        let mut output = lines(&mut child);
        let mut acknowledged: Vec<_> = output.by_ref().take(150 * round).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged.extend(output);

        let store = SqliteStore::open(folder.file()).await.unwrap();
        assert!(acknowledged.len() >= 150 * round);
        for name in &acknowledged {
            let k = key(name);
            let record = store.load(&k).await.unwrap().unwrap_or_else(|| panic!("{name} is gone"));
            assert_eq!(record.state, State::Settled(completed(k.as_str())), "{name}");
        }
    }
}

/// Completes keys until the file may not grow any more, says those that were acknowledged, and goes on asking.
async fn fill(file: &Path) {
    let store = SqliteStore::open(file).await.unwrap();
    let result = "x".repeat(16 * 1024);
    let mut errors = 0;
    for n in 0..200 {
        let (k, owner) = (key(&n.to_string()), OwnerToken::random());
        let mut error = store.reserve(request(&k, owner)).await.err();
        if error.is_none() {
            match store.complete(&k, owner, &completed(&result), KEEP).await {
                Ok(write) => {
                    assert_eq!(write, Write::Applied);
                    say(&n.to_string());
                }
                Err(failed) => error = Some(failed),
            }
        }
        if let Some(error) = error {
            assert!(matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Full), "{error:?}");
            errors += 1;
        }
        if errors == 5 {
            // What is there can still be read.
            assert_eq!(held(&store, &key("0")).await.state, State::Settled(completed(&result)));
            say("full");
            return;
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_disk_without_room_is_told_to_the_callers_and_loses_nothing() {
    let folder = Folder::new();
    // The shell's limit on the size of a file stands in for a full disk.
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 2000; exec \"$0\" --exact processes::in_another_process --nocapture",
        ])
        .arg(std::env::current_exe().unwrap())
        .env(ROLE, "fill")
        .env(FILE, folder.file())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said: Vec<_> = lines(&mut child).collect();
    assert!(child.wait().unwrap().success());
    assert_eq!(said.pop().as_deref(), Some("full"));
    assert!(!said.is_empty());
    let store = SqliteStore::open(folder.file()).await.unwrap();
    for name in said {
        assert!(matches!(held(&store, &key(&name)).await.state, State::Settled(Settled::Completed(_))));
    }
    grant(&store, &key("more"), OwnerToken::random()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_handles_at_one_file_see_each_other() {
    let folder = Folder::new();
    let one = SqliteStore::open(folder.file()).await.unwrap();
    let two = SqliteStore::open(folder.file()).await.unwrap();
    let (k, owner) = (key("1"), OwnerToken::random());
    grant(&one, &k, owner).await;
    assert_eq!(held(&two, &k).await.owner, owner);
    two.complete(&k, owner, &Settled::NotRetained, KEEP).await.unwrap();
    assert_eq!(held(&one, &k).await.state, State::Settled(Settled::NotRetained));

    // Both at work at once: neither starves, nor fails.
    let busy: Vec<_> = [one, two]
        .into_iter()
        .enumerate()
        .flat_map(|(handle, store)| (0..8).map(move |task| (handle, task, store.clone())))
        .map(|(handle, task, store)| {
            tokio::spawn(async move {
                for n in 0..25 {
                    let (k, owner) = (key(&format!("{handle}-{task}-{n}")), OwnerToken::random());
                    grant(&store, &k, owner).await;
                    store.complete(&k, owner, &completed("x"), KEEP).await.unwrap();
                }
            })
        })
        .collect();
    for task in busy {
        task.await.unwrap();
    }
}

/// Run as another user, because nothing is read-only to root.
#[cfg(unix)]
#[test]
fn a_read_only_directory_and_file_are_refused() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    let folder = Folder::new();
    let run = || {
        let mut command = command("open", &folder.file());
        if std::fs::metadata(folder.path()).unwrap().uid() == 0 {
            command.uid(65534).gid(65534);
        }
        let mut child = match command.spawn() {
            Ok(child) => child,
            // The other user may not even see the test binary here.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return None,
            Err(error) => panic!("{error}"),
        };
        let said = lines(&mut child).last();
        assert!(child.wait().unwrap().success());
        said
    };
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
    let Some(said) = run() else { return };
    assert!(said.starts_with(&format!("{:?}", StoreErrorKind::Refused)), "{said}");
    assert!(said.contains("records.db") && said.contains("permissions"), "{said}");

    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    beside(&folder.file()).execute_batch("CREATE TABLE orders (id)").unwrap();
    std::fs::set_permissions(folder.file(), std::fs::Permissions::from_mode(0o444)).unwrap();
    let Some(said) = run() else { return };
    assert!(said.starts_with("Refused") && said.contains("read-only"), "{said}");
}
