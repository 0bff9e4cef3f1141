//! The `checkout` example, run as a user runs it: a program, its files and what it prints.

#![expect(clippy::unwrap_used, reason = "a test stops where something is wrong")]

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tests::examples::program;

const REQUESTS: usize = 277;

#[test]
fn first_run_charges_each_order_once_and_second_run_replays() {
    let place = Place::new("two_runs");
    let first = place.run();
    assert!(first.status.success(), "{}", first.stderr);
    let counts = first.counts();
    // A duplicate that waits longer than it may is answered "in progress" instead of with the result.
    assert_eq!(counts["replayed"] + counts["in progress"], 69, "{counts:?}");
    assert!(counts["in progress"] > 0, "{counts:?}");
    for (kind, count) in
        [("executed", 166), ("key reused", 11), ("refused", 11), ("failed", 15), ("missing key", 5)]
    {
        assert_eq!(counts[kind], count, "{kind}\n{}", first.stdout);
    }
    assert_eq!(first.last_line(), "ledger: 163 charges for 163 orders, 0 duplicates");
    assert_eq!(first.rows().len(), REQUESTS);

    let ledger = fs::read(place.ledger()).unwrap();
    let second = place.run();
    assert!(second.status.success(), "{}", second.stderr);
    assert_eq!(
        second.summary(),
        "executed 0, replayed 243, in progress 0, key reused 11, refused 18, failed 0, missing key 5"
    );
    assert_eq!(second.last_line(), first.last_line());
    assert!(ledger == fs::read(place.ledger()).unwrap(), "the ledger has changed");

    // What is replayed is the first answer itself: the same charge id, the same reason of a decline.
    let answers = first.answers("executed");
    assert!(answers.values().any(|answer| answer.starts_with("declined")));
    for (order, answer) in second.answers("replayed") {
        assert_eq!(answers[&order], answer, "{order}");
    }
}

#[test]
fn killed_twice_on_the_way_it_finishes_without_a_duplicate() {
    let place = Place::new("killed");
    for rows in [40, 150] {
        let mut child = place.command().stdout(Stdio::piped()).spawn().unwrap();
        let printed = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(printed.map(Result::unwrap).filter(|line| line.starts_with("r-")).take(rows).count() == rows);
        kill(&mut child);
        assert!(fs::metadata(place.ledger()).unwrap().len() > 0);
    }

    let third = place.run();
    assert!(third.status.success(), "{}\n{}", third.stdout, third.stderr);
    assert!(third.counts()["replayed"] > 0);
    assert!(third.last_line().ends_with(" orders, 0 duplicates"), "{}", third.last_line());

    // Nothing is left to be done.
    let fourth = place.run();
    assert!(fourth.status.success(), "{}", fourth.stderr);
    let counts = fourth.counts();
    assert_eq!((counts["executed"], counts["failed"], counts["in progress"]), (0, 0, 0), "{counts:?}");
    assert_eq!(fourth.last_line(), third.last_line());
}

#[test]
fn two_programs_at_once_share_the_work() {
    let place = Place::new("two_at_once");
    let runs = thread::scope(|scope| {
        let other = scope.spawn(|| place.run());
        [place.run(), other.join().unwrap()]
    });
    let mut executed = 0;
    for run in &runs {
        assert!(run.status.success(), "{}\n{}", run.last_line(), run.stderr);
        executed += run.counts()["executed"];
    }
    assert_eq!(executed, 166);
    // Whoever ended last has seen the whole ledger.
    assert!(runs.iter().any(|run| run.last_line() == "ledger: 163 charges for 163 orders, 0 duplicates"));
}

#[test]
fn killed_between_charge_and_answer_the_order_is_refused_and_not_charged_again() {
    let place = Place::new("killed_after_charge");
    // The charge is made half way, so there is a second to kill the program in before the answer arrives.
    let input = place.write("input.jsonl", &[request("r-1", "A-1", 500, r#","gateway":{"takes_ms":2000}"#)]);
    let input = ["--input", input.to_str().unwrap()];
    let mut child = place.command().args(input).stdout(Stdio::null()).spawn().unwrap();
    wait_until("there is a charge", || fs::metadata(place.ledger()).is_ok_and(|ledger| ledger.len() > 0));
    kill(&mut child);

    for _ in 0..2 {
        let run = place.run_with(&input);
        assert!(run.status.success(), "{}", run.stderr);
        assert_eq!(run.counts()["refused"], 1, "{}", run.stdout);
        assert_eq!(run.last_line(), "ledger: 1 charges for 1 orders, 0 duplicates");
    }
}

#[test]
fn unprotected_shows_the_doubled_charges() {
    let place = Place::new("unprotected");
    for _ in 0..2 {
        let run = place.run_with(&["--unprotected", "--input", &place.double_click()]);
        assert!(run.status.success(), "{}", run.stderr);
        assert_eq!(run.counts()["executed"], 2);
        // Each such run starts from nothing, so the second one shows the same.
        assert_eq!(run.last_line(), "ledger: 2 charges for 1 orders, 1 duplicates");
    }
    assert!(!place.database().exists() && !place.ledger().exists());

    let run = place.run_with(&["--unprotected"]);
    assert!(run.status.success(), "{}", run.stderr);
    assert_eq!(run.last_line(), "ledger: 254 charges for 168 orders, 86 duplicates");
}

#[test]
fn double_click_is_charged_once() {
    let place = Place::new("double_click");
    let run = place.run_with(&["--input", &place.double_click()]);
    assert_eq!(
        run.summary(),
        "executed 1, replayed 1, in progress 0, key reused 0, refused 0, failed 0, missing key 0"
    );
    assert_eq!(run.last_line(), "ledger: 1 charges for 1 orders, 0 duplicates");
}

#[test]
fn bad_lines_are_reported_by_number_and_left_out() {
    let place = Place::new("bad_lines");
    let input = place.path("input.jsonl");
    let mut text = Vec::new();
    for line in [
        request("r-1", "A-1", 500, "").as_bytes(),
        b"",
        b"{\"id\":\"r-3\"",
        b"not JSON",
        b"\xff\xfe",
        request("r-6", "A-6", 0, "").as_bytes(),
        request("r-7", "A-7", 500, "").replace("500", "-500").as_bytes(),
        request("r-8", "A-8", 500, "").replace("EUR", "ZZZ").as_bytes(),
        request("r-9", "A-9", 500, r#","surprise":1"#).as_bytes(),
        request("r-10", "A-10", 500, "").as_bytes(),
    ] {
        text.extend_from_slice(line);
        text.extend_from_slice(b"\r\n");
    }
    fs::write(&input, text).unwrap();

    let run = place.run_with(&["--input", input.to_str().unwrap()]);
    assert!(run.status.success(), "{}", run.stderr);
    assert!(run.stdout.contains("7 bad lines left out: 3, 4, 5, 6, 7, 8, 9\n"), "{}", run.stdout);
    for number in 3..=9 {
        let place = format!("input.jsonl:{number}: not a request: ");
        assert!(run.stderr.contains(&place), "{place}\n{}", run.stderr);
    }
    assert_eq!(run.counts()["executed"], 2);
    assert_eq!(run.last_line(), "ledger: 2 charges for 2 orders, 0 duplicates");
}

#[test]
fn a_ledger_with_a_duplicate_fails_the_run() {
    let place = Place::new("duplicate_in_ledger");
    let charge = |id: &str| {
        format!(r#"{{"id":"{id}","order":"A-0","amount":{{"cents":5,"currency":"EUR"}},"card":"x"}}"#)
    };
    place.write("checkout.db.ledger.jsonl", &[charge("ch_1"), charge("ch_2")]);
    let run = place.run_with(&["--input", &place.double_click()]);
    assert_eq!(run.status.code(), Some(1));
    assert_eq!(run.last_line(), "ledger: 3 charges for 2 orders, 1 duplicates");
}

#[test]
fn a_ledger_line_that_was_cut_short_is_no_charge() {
    let place = Place::new("cut_short");
    fs::write(place.ledger(), r#"{"id":"ch_1","order":"A-1","amo"#).unwrap();
    let run = place.run_with(&["--input", &place.double_click()]);
    assert!(run.status.success(), "{}", run.stderr);
    assert_eq!(run.last_line(), "ledger: 1 charges for 1 orders, 0 duplicates");
}

#[test]
fn a_file_that_is_no_ledger_is_left_alone() {
    let place = Place::new("no_ledger");
    let input = place.double_click();
    let before = fs::read(&input).unwrap();
    let run = place.run_with(&["--input", &input, "--ledger", &input]);
    assert_eq!(run.status.code(), Some(2));
    assert!(run.stderr.contains("line 1 of "), "{}", run.stderr);
    assert_eq!(fs::read(&input).unwrap(), before);
}

#[test]
fn database_and_ledger_are_two_files() {
    let place = Place::new("one_file");
    let run = place.run_with(&["--ledger", place.database().to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(2));
    assert!(!place.database().exists());
}

#[test]
fn a_file_that_is_no_ledger_is_left_alone_to_its_last_byte() {
    let place = Place::new("no_ledger_without_newline");
    let notes = place.path("notes.txt");
    fs::write(&notes, "no newline at the end").unwrap();
    let run = place.run_with(&["--input", &place.double_click(), "--ledger", notes.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(2));
    assert_eq!(fs::read_to_string(&notes).unwrap(), "no newline at the end");
}

#[test]
fn database_and_ledger_are_two_files_whatever_their_names() {
    let place = Place::new("one_file_two_names");
    let run = place.run_with(&["--input", &place.double_click(), "--ledger", "./checkout.db"]);
    assert_eq!(run.status.code(), Some(2), "{}", run.stdout);
    assert!(run.stderr.contains("cannot be one file"), "{}", run.stderr);
}

#[test]
fn a_missing_input_is_named() {
    let run = Place::new("missing_input").run_with(&["--input", "no/such.jsonl"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(run.stderr.contains("no/such.jsonl"), "{}", run.stderr);
}

#[test]
fn help_explains_arguments_and_counts() {
    let run = Place::new("help").run_with(&["--help"]);
    assert!(run.status.success());
    for word in ["--input", "--database", "--ledger", "--unprotected", "key reused", "Exit code"] {
        assert!(run.stdout.contains(word), "{word}\n{}", run.stdout);
    }
}

/// A folder for the files of one test, and the program's current directory.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("checkout").join(test);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn database(&self) -> PathBuf {
        self.path("checkout.db")
    }

    fn ledger(&self) -> PathBuf {
        self.path("checkout.db.ledger.jsonl")
    }

    fn write(&self, name: &str, lines: &[String]) -> PathBuf {
        fs::write(self.path(name), lines.join("\n") + "\n").unwrap();
        self.path(name)
    }

    fn double_click(&self) -> String {
        let lines = [request("r-1", "A-1", 500, ""), request("r-2", "A-1", 500, "")];
        self.write("double_click.jsonl", &lines).to_str().unwrap().to_owned()
    }

    /// The program with a database of the test's own, and so with a ledger of its own.
    fn command(&self) -> Command {
        let mut command = Command::new(program("checkout"));
        command.arg("--database").arg(self.database()).current_dir(&self.0);
        command
    }

    fn run(&self) -> Run {
        self.run_with(&[])
    }

    fn run_with(&self, arguments: &[&str]) -> Run {
        let output = self.command().args(arguments).output().unwrap();
        Run {
            status: output.status,
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn request(id: &str, order: &str, cents: u32, more: &str) -> String {
    format!(
        r#"{{"id":"{id}","order":{{"id":"{order}","customer":"c-1","amount":{{"cents":{cents},"currency":"EUR"}},"card":"tok_visa"}}{more}}}"#
    )
}

/// What a finished run has left behind.
struct Run {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

impl Run {
    fn rows(&self) -> Vec<&str> {
        self.stdout.lines().filter(|line| line.starts_with("r-")).collect()
    }

    fn last_line(&self) -> &str {
        self.stdout.lines().last().unwrap()
    }

    fn summary(&self) -> &str {
        self.stdout.lines().nth_back(1).unwrap()
    }

    /// The counts of the summary. They add up to the rows.
    fn counts(&self) -> HashMap<&str, usize> {
        let counts: HashMap<_, _> = self
            .summary()
            .split(", ")
            .map(|count| count.rsplit_once(' ').unwrap())
            .map(|(kind, count)| (kind, count.parse().unwrap()))
            .collect();
        assert_eq!(counts.values().sum::<usize>(), self.rows().len(), "{}", self.stdout);
        counts
    }

    /// What each order with an answer of this kind was told.
    fn answers(&self, kind: &str) -> HashMap<String, String> {
        let answer = |row: &str| {
            let order = row.split_whitespace().nth(1)?;
            let (_, answer) = row.split_once(kind)?;
            let (answer, _note) = answer.split_once("  (").unwrap_or((answer, ""));
            Some((order.to_owned(), answer.trim().to_owned()))
        };
        self.rows().into_iter().filter_map(answer).collect()
    }
}

/// As `kill -9` does.
fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
