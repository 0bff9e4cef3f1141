//! A record in bytes, as `lua/record.lua` says.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use crate::fingerprint::Fingerprint;
use crate::key::RecordKey;
use crate::store::{OwnerToken, Record, Reserve, Settled, State, Step, StepState, Stored};

/// The bytes before the operation.
const HEAD: usize = 130;
const DAY_MICROS: u64 = 24 * 60 * 60 * 1_000_000;
/// So that a point in time plus both stays an integer that a Lua number holds exactly: 35 years.
const MAX_LEASE: u64 = 365 * 35 * DAY_MICROS;
/// 140 years.
const MAX_SPAN: u64 = 365 * 140 * DAY_MICROS;

/// A span in microseconds; what is longer than nothing is at least one.
fn micros(span: Duration, most: u64) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX).min(most)
}

/// A lease in microseconds.
pub(super) fn lease_micros(lease: Duration) -> u64 {
    micros(lease, MAX_LEASE)
}

/// How long a record is remembered, in microseconds.
pub(super) fn span_micros(span: Duration) -> u64 {
    micros(span, MAX_SPAN)
}

/// How long a record is kept, in milliseconds. Two are the least, so that the next generation's fence is greater.
pub(super) fn keep_millis(keep: Duration) -> u64 {
    span_micros(keep).div_ceil(1000).max(2)
}

/// The version and digest, as they are stored.
pub(super) fn fingerprint_bytes(fingerprint: &Fingerprint) -> [u8; 33] {
    let mut bytes = [fingerprint.version(); 33];
    bytes.iter_mut().skip(1).zip(fingerprint.digest()).for_each(|(to, from)| *to = *from);
    bytes
}

/// The letter of a settled state, and what is kept behind the operation.
pub(super) fn settled_parts(settled: &Settled) -> (&'static str, Vec<u8>) {
    let letter = match settled {
        Settled::Completed(_) => "c",
        Settled::Failed(_) => "f",
        Settled::NotRetained => "n",
        Settled::Unknown => "u",
    };
    let rest = settled.stored().map(|stored| {
        let mut bytes = Vec::with_capacity(10 + stored.bytes.len());
        bytes.extend_from_slice(&digits::<10>(u64::from(stored.version)));
        bytes.extend_from_slice(&stored.bytes);
        bytes
    });
    (letter, rest.unwrap_or_default())
}

/// A first attempt that has not been stamped by the server's clock yet, and after how many milliseconds it expires.
pub(super) fn first_attempt(request: &Reserve<'_>) -> (Vec<u8>, u64) {
    let operation = request.key.operation().as_bytes();
    let (lease, unknown) = (lease_micros(request.lease.duration), span_micros(request.lease.unknown_ttl));
    let mut bytes = Vec::with_capacity(HEAD + operation.len());
    bytes.extend_from_slice(b"1r00");
    bytes.extend_from_slice(request.owner.as_bytes());
    bytes.push(request.fingerprint.version());
    bytes.extend_from_slice(request.fingerprint.digest());
    bytes.extend_from_slice(b"000000000100000000000000000000000000000000");
    bytes.extend_from_slice(&digits::<16>(lease));
    bytes.extend_from_slice(&digits::<16>(unknown));
    bytes.extend_from_slice(&digits::<3>(u64::try_from(operation.len()).unwrap_or(u64::MAX)));
    bytes.extend_from_slice(operation);
    (bytes, (lease + unknown).div_ceil(1000).max(2))
}

/// A number in `N` decimal digits.
fn digits<const N: usize>(mut number: u64) -> [u8; N] {
    let mut text = [b'0'; N];
    for digit in text.iter_mut().rev() {
        *digit += u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
    text
}

/// A record taken apart; the bytes behind the head are borrowed.
pub(super) struct Raw<'a> {
    pub(super) state: u8,
    pub(super) owner: OwnerToken,
    effects: bool,
    fingerprint: Fingerprint,
    attempt: u32,
    fence: u64,
    created: u64,
    /// When the lease ends, in microseconds.
    pub(super) lease: u64,
    operation: &'a str,
    rest: &'a [u8],
}

impl<'a> Raw<'a> {
    /// `expires`: when the server will drop the key, in milliseconds. Needed for a record that is not stamped.
    pub(super) fn decode(bytes: &'a [u8], expires: Option<u64>) -> Option<Self> {
        let mut reader = Reader(bytes);
        let [b'1', state, effects, _] = *reader.array::<4>()? else { return None };
        let owner = OwnerToken::from_bytes(*reader.array()?);
        let [version] = *reader.array()?;
        let fingerprint = Fingerprint::from_parts(version, *reader.array()?);
        let attempt = u32::try_from(reader.number(10)?).ok()?;
        let (mut fence, mut created) = (reader.number(16)?, reader.number(16)?);
        let (mut lease, unknown) = (reader.number(16)?, reader.number(16)?);
        let operation = reader.counted(3)?;
        if fence == 0 {
            created = expires?.checked_sub((lease + unknown).div_ceil(1000).max(2))?.checked_mul(1000)?;
            (fence, lease) = (created, created.checked_add(lease)?);
        }
        Some(Self {
            state,
            owner,
            effects: effects == b'1',
            fingerprint,
            attempt,
            fence,
            created,
            lease,
            operation: std::str::from_utf8(operation).ok()?,
            rest: reader.0,
        })
    }

    pub(super) fn operation(&self) -> &str {
        self.operation
    }

    pub(super) fn attempt(&self) -> u32 {
        self.attempt
    }

    pub(super) fn fence(&self) -> u64 {
        self.fence
    }

    /// The steps, if they are what this version writes.
    pub(super) fn steps(&self) -> Option<Vec<Step>> {
        let mut reader = Reader(if matches!(self.state, b'r' | b'u') { self.rest } else { &[] });
        let mut steps = Vec::new();
        while !reader.0.is_empty() {
            let [state] = *reader.array()?;
            let name = std::str::from_utf8(reader.counted(5)?).ok()?;
            let result = reader.counted(10)?;
            let state = match state {
                b'b' => StepState::Begun,
                b'd' => StepState::Done(result.into()),
                _ => return None,
            };
            steps.push(Step { name: name.into(), state });
        }
        Some(steps)
    }

    /// The record as callers see it at `now`, with so many microseconds until it expires.
    pub(super) fn record(&self, key: RecordKey, now: u64, expires_in: u64) -> Option<Record> {
        Some(Record {
            key,
            owner: self.owner,
            attempt: self.attempt,
            fence: self.fence,
            fingerprint: self.fingerprint,
            state: match self.state {
                b'r' => State::Running {
                    lease_left: Duration::from_micros(self.lease.saturating_sub(now)),
                    effects_begun: self.effects,
                },
                b'c' => State::Settled(Settled::Completed(self.stored()?)),
                b'f' => State::Settled(Settled::Failed(self.stored()?)),
                b'n' => State::Settled(Settled::NotRetained),
                b'u' => State::Settled(Settled::Unknown),
                _ => return None,
            },
            steps: self.steps()?,
            created_at: UNIX_EPOCH + Duration::from_micros(self.created),
            expires_in: Duration::from_micros(expires_in),
        })
    }

    fn stored(&self) -> Option<Stored> {
        let mut reader = Reader(self.rest);
        let version = u32::try_from(reader.number(10)?).ok()?;
        Some(Stored { version, bytes: Arc::from(reader.0) })
    }
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(count)?;
        self.0 = left;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// A number in so many decimal digits.
    fn number(&mut self, count: usize) -> Option<u64> {
        self.take(count)?.iter().try_fold(0_u64, |number, digit| {
            let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
            number.checked_mul(10)?.checked_add(digit)
        })
    }

    /// Bytes after their count in so many decimal digits.
    fn counted(&mut self, digits: usize) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number(digits)?).ok()?;
        self.take(count)
    }
}
