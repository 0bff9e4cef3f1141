//! What really happened: a file that only grows, which every process writes to, and which takes everything twice if it is
//! told twice.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file. Each line is written whole, and is on the disk before the writer goes on.
#[derive(Debug)]
pub(crate) struct Ledger {
    file: File,
    path: PathBuf,
}

/// One line: what happened, to which key, and more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) what: What,
    pub(crate) key: String,
    /// The effect's or the step's name, the outcome, or the point.
    pub(crate) detail: String,
    /// The value that the run made, or that a caller was given.
    pub(crate) value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// An effect happened.
    Ran,
    /// The library said that the result of a step is stored.
    Kept,
    /// A caller was given a result.
    Given,
    /// A process died at a point, in the name of this key's attempt.
    Died,
}

const ALL: [What; 4] = [What::Ran, What::Kept, What::Given, What::Died];

impl Ledger {
    pub(crate) fn open(path: &Path) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        Self { file, path: path.to_owned() }
    }

    pub(crate) fn write(&self, what: What, key: &str, detail: &str, value: &str) {
        // One write of a short line to a file that is open for appending is never mixed with another's.
        (&self.file).write_all(format!("{what:?} {key} {detail} {value}\n").as_bytes()).unwrap();
        self.file.sync_data().unwrap();
    }

    /// How long it is.
    pub(crate) fn len(&self) -> u64 {
        self.file.metadata().unwrap().len()
    }

    /// Everything, in the order in which it was written.
    pub(crate) fn read(&self) -> Vec<Entry> {
        let text = std::fs::read_to_string(&self.path).unwrap();
        // A line that is being written just now is not there yet.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(parse).collect()
    }
}

fn parse(line: &str) -> Entry {
    let words: Vec<&str> = line.split(' ').collect();
    let [what, key, detail, value] = words[..] else { panic!("half a line in the ledger: {line}") };
    let what = ALL.into_iter().find(|known| format!("{known:?}") == what).expect(line);
    Entry { what, key: key.to_owned(), detail: detail.to_owned(), value: value.to_owned() }
}
