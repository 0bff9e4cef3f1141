//! The warehouse, the gateway, the carrier and the mail server, and what they have done, in a file that only grows.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use idempotent_runtime::{Error, attempt};

use crate::Part;

#[derive(Debug)]
pub(crate) struct World {
    path: PathBuf,
    ledger: File,
    crash_after: Option<Part>,
}

impl World {
    pub(crate) fn open(path: &Path, crash_after: Option<Part>) -> io::Result<Self> {
        let ledger = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { path: path.to_owned(), ledger, crash_after })
    }

    /// Does a part of an order. What it gives is what the others will say of it.
    pub(crate) async fn act(&self, part: Part, order: &str) -> Result<String, Error> {
        // A real service is given this key too: the same on every attempt, it tells the service what it has done before.
        let key = attempt()?.downstream_key(&format!("{part:?}"));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        if let Err(error) = self.write_down(part, order, &key) {
            // The simulation itself has failed, and says so.
            eprintln!("the ledger cannot be written: {error}");
            std::process::exit(2);
        }
        let done = match part {
            Part::Reserve => "two bags are set aside",
            Part::Charge => "receipt 4711",
            Part::Ship => "parcel 0815",
            Part::Mail => "the mail is on its way",
        };
        println!("{done}");
        Ok(done.to_owned())
    }

    fn write_down(&self, part: Part, order: &str, key: &str) -> io::Result<()> {
        if std::fs::read_to_string(&self.path)?.contains(key) {
            return Ok(());
        }
        let line = serde_json::json!({ "act": format!("{part:?}"), "order": order, "key": key });
        (&self.ledger).write_all(format!("{line}\n").as_bytes())?;
        self.ledger.sync_data()
    }

    /// Dies as a process does that is killed: nothing of it is left to tidy up.
    pub(crate) fn may_crash(&self, part: Part) {
        if self.crash_after == Some(part) {
            println!("the process dies");
            std::process::abort();
        }
    }

    /// How many acts there are, and how many of them were done more than once.
    pub(crate) fn count(&self) -> io::Result<(usize, usize)> {
        let text = std::fs::read_to_string(&self.path)?;
        let mut acts: HashMap<String, usize> = HashMap::new();
        for line in text.lines() {
            let mut act: serde_json::Value = serde_json::from_str(line)?;
            // What was done under two keys was done twice.
            act.get_mut("key").map(serde_json::Value::take);
            *acts.entry(act.to_string()).or_default() += 1;
        }
        Ok((acts.values().sum(), acts.values().filter(|times| **times > 1).count()))
    }
}
