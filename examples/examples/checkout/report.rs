//! Tells what happened: a line for each request, then the counts.

use std::io::{self, Write};

use indicatif::{ProgressBar, ProgressStyle};

use crate::answer::{Answer, Counts};
use crate::arguments::Files;
use crate::input::Input;
use crate::ledger::Balance;
use crate::request::Request;

/// The report of one run, on standard output. Complaints and the progress bar go to standard error.
#[derive(Debug)]
pub(crate) struct Report {
    counts: Counts,
    bad_lines: Vec<usize>,
    /// Draws nothing where standard error is no terminal.
    progress: ProgressBar,
    written: io::Result<()>,
}

impl Report {
    /// Says where everything is, and which lines of the input are no requests.
    pub(crate) fn begin(files: &Files, input: &Input) -> Self {
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} requests, {elapsed}");
        let progress = ProgressBar::new(u64::try_from(input.requests.len()).unwrap_or(u64::MAX))
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let bad_lines = input.bad_lines.iter().map(|line| line.number).collect();
        let mut report = Self { counts: Counts::default(), bad_lines, progress, written: Ok(()) };

        report.line(&format!("input     {} ({} requests)", files.input.display(), input.requests.len()));
        match &files.database {
            Some(database) => report.line(&format!("database  {}", database.display())),
            None => report.line("database  none: every request is charged, whatever came before"),
        }
        report.line(&format!("ledger    {}\n", files.ledger.display()));
        for line in &input.bad_lines {
            eprintln!("{}:{}: not a request: {}", files.input.display(), line.number, line.reason);
        }
        report
    }

    /// What happened to one request.
    pub(crate) fn row(&mut self, request: &Request, answer: &Answer) {
        self.counts.add(answer.kind);
        // What clients send is shown escaped, or it could write anything on the terminal.
        let shown = |text: &str| text.escape_debug().to_string();
        let id = shown(&request.id);
        let order = request.order.id.as_deref().filter(|id| !id.is_empty()).map_or("-".to_owned(), shown);
        let note =
            if request.note.is_empty() { String::new() } else { format!("  ({})", shown(&request.note)) };
        self.line(&format!("{id:<8} {order:<8} {:<11}  {}{note}", answer.kind, answer.text));
        self.progress.inc(1);
    }

    /// The counts and the balance.
    pub(crate) fn end(mut self, balance: &Balance) -> io::Result<()> {
        self.progress.finish_and_clear();
        self.line("");
        if !self.bad_lines.is_empty() {
            let numbers: Vec<_> = self.bad_lines.iter().map(ToString::to_string).collect();
            self.line(&format!("{} bad lines left out: {}", numbers.len(), numbers.join(", ")));
        }
        self.line(&self.counts.to_string());
        self.line(&balance.to_string());
        self.written
    }

    /// Prints a line between two states of the progress bar. If nobody reads any more, that must not stop payments
    /// that are on their way: the error is kept for the end.
    fn line(&mut self, line: &str) {
        if self.written.is_ok() {
            self.written = self.progress.suspend(|| writeln!(io::stdout(), "{line}"));
        }
    }
}
