//! A row of the records table, as a database gave it, and the record that it is.

use std::time::{Duration, UNIX_EPOCH};

use crate::fingerprint::Fingerprint;
use crate::key::RecordKey;
use crate::store::{OwnerToken, Record, Settled, State, Step, Stored};

/// The form of a record that this version of the crate writes. One of another form is left alone.
const VERSION: i64 = 1;

/// The longest span that is told from forever: 200 years. It leaves room for sums of two in every type of time.
const LONGEST: Duration = Duration::from_secs(200 * 365 * 24 * 60 * 60);

/// `duration` in microseconds, rounded up, so that what is longer than nothing stays so; at most 200 years.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.min(LONGEST).as_nanos().div_ceil(1000)).unwrap_or(i64::MAX)
}

/// The columns of a settled state: its name, the version of the result, and the result.
pub(crate) fn encode(settled: &Settled) -> (&'static str, Option<i64>, Option<&[u8]>) {
    let stored = settled.stored();
    (settled.name().as_str(), stored.map(|stored| stored.version.into()), stored.map(|stored| &*stored.bytes))
}

/// The columns of a row, before anybody has looked at what is in them. Spans are in microseconds and may be negative.
#[derive(Debug)]
pub(crate) struct RawRecord<'r> {
    pub(crate) version: i64,
    pub(crate) state: &'r str,
    pub(crate) owner: &'r [u8],
    pub(crate) attempt: i64,
    pub(crate) fence: i64,
    pub(crate) fingerprint_version: i64,
    pub(crate) fingerprint: &'r [u8],
    pub(crate) effects_begun: bool,
    pub(crate) lease_left: Option<i64>,
    /// Since the Unix epoch.
    pub(crate) created_at: i64,
    pub(crate) expires_in: i64,
    pub(crate) result_version: Option<i64>,
    pub(crate) result: Option<&'r [u8]>,
    pub(crate) steps: Vec<Step>,
}

impl RawRecord<'_> {
    /// The record kept under `key`, or the column that this version cannot read.
    pub(crate) fn decode(self, key: RecordKey) -> Result<Record, &'static str> {
        if self.version != VERSION {
            return Err("version");
        }
        let state = match self.state {
            "running" => State::Running {
                lease_left: span(self.lease_left.ok_or("lease_until")?),
                effects_begun: self.effects_begun,
            },
            "completed" => State::Settled(Settled::Completed(self.stored()?)),
            "failed" => State::Settled(Settled::Failed(self.stored()?)),
            "not_retained" => State::Settled(Settled::NotRetained),
            "unknown" => State::Settled(Settled::Unknown),
            _ => return Err("state"),
        };
        Ok(Record {
            key,
            owner: OwnerToken::from_bytes(self.owner.try_into().map_err(|_| "owner")?),
            attempt: self.attempt.try_into().map_err(|_| "attempt")?,
            fence: self.fence.try_into().map_err(|_| "fence")?,
            fingerprint: Fingerprint::from_parts(
                self.fingerprint_version.try_into().map_err(|_| "fingerprint_version")?,
                self.fingerprint.try_into().map_err(|_| "fingerprint")?,
            ),
            state,
            steps: self.steps,
            created_at: UNIX_EPOCH + span(self.created_at),
            expires_in: span(self.expires_in),
        })
    }

    fn stored(&self) -> Result<Stored, &'static str> {
        let version = self.result_version.ok_or("result_version")?;
        Ok(Stored {
            version: version.try_into().map_err(|_| "result_version")?,
            bytes: self.result.ok_or("result")?.into(),
        })
    }
}

/// A span in microseconds; zero when it is over.
fn span(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw<'r>() -> RawRecord<'r> {
        RawRecord {
            version: 1,
            state: "completed",
            owner: &[1; 16],
            attempt: 1,
            fence: 1,
            fingerprint_version: 1,
            fingerprint: &[2; 32],
            effects_begun: false,
            lease_left: None,
            created_at: 0,
            expires_in: 1,
            result_version: Some(1),
            result: Some(b"x"),
            steps: Vec::new(),
        }
    }

    #[test]
    fn a_column_that_cannot_be_read_is_named() {
        let decode = |raw: RawRecord<'_>| raw.decode(RecordKey::new("o", "k")).map(|_| ());
        assert_eq!(decode(raw()), Ok(()));
        assert_eq!(decode(RawRecord { version: 2, ..raw() }), Err("version"));
        assert_eq!(decode(RawRecord { state: "paused", ..raw() }), Err("state"));
        assert_eq!(decode(RawRecord { owner: &[1; 15], ..raw() }), Err("owner"));
        assert_eq!(decode(RawRecord { attempt: -1, ..raw() }), Err("attempt"));
        assert_eq!(decode(RawRecord { attempt: 1 << 32, ..raw() }), Err("attempt"));
        assert_eq!(decode(RawRecord { fence: -1, ..raw() }), Err("fence"));
        assert_eq!(decode(RawRecord { fingerprint_version: 256, ..raw() }), Err("fingerprint_version"));
        assert_eq!(decode(RawRecord { fingerprint: &[], ..raw() }), Err("fingerprint"));
        assert_eq!(decode(RawRecord { result: None, ..raw() }), Err("result"));
        assert_eq!(decode(RawRecord { result_version: None, ..raw() }), Err("result_version"));
        assert_eq!(decode(RawRecord { state: "running", ..raw() }), Err("lease_until"));
    }

    #[test]
    fn spans_are_rounded_up_and_bounded() {
        assert_eq!(micros(Duration::ZERO), 0);
        assert_eq!(micros(Duration::from_nanos(1)), 1);
        assert_eq!(micros(Duration::from_nanos(1_001)), 2);
        assert_eq!(micros(Duration::MAX), micros(LONGEST));
    }
}
