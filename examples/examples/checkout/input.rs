//! Reads the requests, line by line.

use std::fs;
use std::io;
use std::path::Path;

use crate::request::Request;

/// What a file of requests holds.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) requests: Vec<Request>,
    pub(crate) bad_lines: Vec<BadLine>,
}

/// A line that is no request.
#[derive(Debug)]
pub(crate) struct BadLine {
    pub(crate) number: usize,
    pub(crate) reason: String,
}

impl Input {
    /// Reads the file at `path`. A bad line is set aside, and the lines after it are read all the same.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let text = fs::read(path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        let mut input = Self { requests: Vec::new(), bad_lines: Vec::new() };
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice(line) {
                Ok(request) => input.requests.push(request),
                Err(error) => input.bad_lines.push(BadLine { number, reason: without_position(&error) }),
            }
        }
        Ok(input)
    }
}

/// What the error says, without "at line 1": to the reader of the file this is another line.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => format!("{reason} (column {})", error.column()),
        None => text,
    }
}
