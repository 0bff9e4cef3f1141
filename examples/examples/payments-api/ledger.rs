//! What was charged, in a file that only grows. It knows no keys: a charge that is entered twice is charged twice.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: File,
}

/// One line.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) order: String,
    /// In the smallest unit of the currency; less than zero for a refund.
    pub(crate) amount: i64,
}

/// What the ledger says in all.
#[derive(Debug, Serialize)]
pub(crate) struct Balance {
    charges: usize,
    orders: usize,
    duplicates: usize,
}

impl Ledger {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Adds a line, and returns when a power cut could not undo it.
    pub(crate) fn enter(&self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        (&self.file).write_all(&line)?;
        self.file.sync_data()
    }

    /// Counts the charges of each order.
    pub(crate) fn balance(&self) -> io::Result<Balance> {
        let mut orders: HashMap<String, usize> = HashMap::new();
        for line in std::fs::read_to_string(&self.path)?.lines() {
            let entry: Entry = serde_json::from_str(line)?;
            if entry.amount >= 0 {
                *orders.entry(entry.order).or_default() += 1;
            }
        }
        let charges = orders.values().sum();
        Ok(Balance { charges, orders: orders.len(), duplicates: charges - orders.len() })
    }
}
