//! What the gateway has charged, in a file that only grows.

use std::collections::HashSet;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::request::Amount;

/// One line of the ledger.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Charge {
    pub(crate) id: String,
    pub(crate) order: Option<String>,
    pub(crate) amount: Amount,
    pub(crate) card: String,
}

/// The file of charges. It knows no keys, and takes two charges for one order as gladly as one.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: File,
}

impl Ledger {
    /// Opens the ledger, and makes it if there is none.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let ledger = Self { path: path.to_owned(), file: open(path).map_err(naming(path))? };
        if !ledger.file.metadata()?.is_file() {
            let reason = format!("{} is no file that charges can be kept in", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        // Whatever is in the way (the input, say, given as the ledger by mistake), it is said before anything is charged.
        ledger.balance()?;
        ledger.end_last_line().map_err(naming(path))?;
        Ok(ledger)
    }

    /// A line that was cut short must not swallow the next one.
    fn end_last_line(&self) -> io::Result<()> {
        let mut file = &self.file;
        if file.metadata()?.len() > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        Ok(())
    }

    /// Adds a charge, and returns when a power cut could not undo it.
    pub(crate) fn append(&self, charge: &Charge) -> io::Result<()> {
        let mut line = serde_json::to_vec(charge)?;
        line.push(b'\n');
        // In one write, so that charges of the same moment do not mix.
        (&self.file).write_all(&line)?;
        self.file.sync_data()
    }

    /// Counts what is in the file, by this run and by all before it.
    pub(crate) fn balance(&self) -> io::Result<Balance> {
        let mut balance = Balance::default();
        let lines = BufReader::new(File::open(&self.path).map_err(naming(&self.path))?).lines();
        for (number, line) in (1..).zip(lines) {
            match serde_json::from_str(&line.map_err(naming(&self.path))?) {
                Ok(charge) => balance.add(charge),
                // The process ended while it wrote this line, so nobody was told of a charge.
                Err(error) if error.is_eof() => {}
                Err(_) => {
                    let reason = format!("line {number} of {} is not a charge", self.path.display());
                    return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
                }
            }
        }
        Ok(balance)
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new().create(true).read(true).append(true).open(path)
}

fn naming(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// How many charges there are, for how many orders.
#[derive(Debug, Default)]
pub(crate) struct Balance {
    charges: usize,
    orders: HashSet<String>,
    without_order: usize,
}

impl Balance {
    fn add(&mut self, charge: Charge) {
        self.charges += 1;
        match charge.order {
            Some(order) if !order.is_empty() => _ = self.orders.insert(order),
            // Nobody can tell whether two of these are for the same order, so each passes for an order of its own.
            _ => self.without_order += 1,
        }
    }

    fn orders(&self) -> usize {
        self.orders.len() + self.without_order
    }

    /// The charges beyond the first for each order.
    pub(crate) fn duplicates(&self) -> usize {
        self.charges - self.orders()
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (charges, orders, duplicates) = (self.charges, self.orders(), self.duplicates());
        write!(f, "ledger: {charges} charges for {orders} orders, {duplicates} duplicates")
    }
}
