//! The other processes: started by a test, told by the environment what to do, and gone with whoever started them.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use idempotent_runtime::stores;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::bodies::Process;
use crate::ledger::Ledger;
use crate::modes::Mode;
use crate::places::Place;
use crate::points::{self, Point};
use crate::trapped::Trapped;
use crate::{crowd, poison, traffic, zombies};

const ROLE: &str = "IDEMPOTENT_TEST_ROLE";
const URL: &str = "IDEMPOTENT_TEST_URL";
const LEDGER: &str = "IDEMPOTENT_TEST_LEDGER";
const NUMBER: &str = "IDEMPOTENT_TEST_NUMBER";
const TRAP: &str = "IDEMPOTENT_TEST_TRAP";

/// How long anything may take that has to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// What the other processes do; nothing in an ordinary run.
#[test]
fn in_another_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let said = |name| std::env::var(name).unwrap();
    let (ledger, number) = (PathBuf::from(said(LEDGER)), said(NUMBER).parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Trapped::new(stores::open(&said(URL)).await.unwrap());
        let process: Arc<Process> = Process::new(store, &ledger, number);
        if let Ok(trap) = std::env::var(TRAP) {
            let words: Vec<&str> = trap.split(' ').collect();
            let [signal, point, mode, nth] = words[..] else { panic!("{trap}") };
            let (point, mode) = (Point::of(point), Mode::of(mode));
            match signal {
                "KILL" => points::kill_at(point, mode, nth.parse().unwrap(), Ledger::open(&ledger)),
                _ => points::stop_at(point, mode, Ledger::open(&ledger)),
            }
        }
        match role.as_str() {
            "traffic" => traffic::run(&process, std::env::var(TRAP).is_ok()).await,
            "zombie" => zombies::call(&process).await,
            "crowd" => crowd::call(&process).await,
            "poison" => poison::call(&process).await,
            other => panic!("no role {other}"),
        }
        process.idempotency.shutdown().await;
    });
}

/// What a process is told.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) role: &'static str,
    pub(crate) number: u32,
    /// The signal, the point, the kind of call, and the how manieth.
    pub(crate) trap: Option<(&'static str, Point, Mode, u32)>,
}

/// A process that a test has started. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    task: Task,
}

impl Worker {
    pub(crate) fn start(place: &Place, task: Task) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "worker::in_another_process", "--nocapture"]);
        command.env(ROLE, task.role).env(URL, &place.url).env(LEDGER, place.ledger());
        command.env(NUMBER, task.number.to_string());
        // For the emulator of DynamoDB, which lets everybody in.
        command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
        if let Some((signal, point, mode, nth)) = task.trap {
            command.env(TRAP, format!("{signal} {point:?} {} {nth}", mode.word()));
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { input: child.stdin.take(), output, child, task }
    }

    /// Whether there is a point at which it dies.
    pub(crate) fn is_trapped(&self) -> bool {
        self.task.trap.is_some()
    }

    /// Kills it at this moment.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it has died of its trap.
    pub(crate) fn die(&mut self) {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let signal = std::os::unix::process::ExitStatusExt::signal(&status);
                assert_eq!(signal, Some(9), "{:?} ended otherwise: {status}", self.task);
                return;
            }
            assert!(started.elapsed() < PATIENCE, "{:?} did not come to where it should die", self.task);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Tells it to end what it has begun, and waits for that.
    pub(crate) fn end(mut self) {
        drop(self.input.take());
        let status: ExitStatus = self.child.wait().unwrap();
        assert!(status.success(), "{:?}: {status}", self.task);
    }

    /// Waits until it stands still.
    pub(crate) fn stand_still(&self) {
        let status = waitpid(Some(self.pid()), WaitOptions::UNTRACED).unwrap();
        let stopped = status.is_some_and(|(_, status)| status.stopped());
        assert!(stopped, "{:?} ended before it stood still", self.task);
    }

    pub(crate) fn go_on(&self) {
        kill_process(self.pid(), Signal::CONT).unwrap();
    }

    /// The next line that it says.
    pub(crate) fn hear(&mut self) -> String {
        loop {
            let line = self.output.next().unwrap_or_else(|| panic!("{:?} says no more", self.task)).unwrap();
            if let Some((_, said)) = line.split_once("said: ") {
                return said.to_owned();
            }
        }
    }

    /// Says a line to it.
    pub(crate) fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it listens");
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says a line to whoever has started this process.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "said: {line}").and_then(|()| out.flush()).unwrap();
}

/// The next line that this process is told; `None` when nobody is there any more.
pub(crate) fn listen() -> Option<String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line).unwrap();
    (read > 0).then(|| line.trim_end().to_owned())
}
