//! Granting the right to run, or showing what stands in the way.
//!
//! What most calls need, a first attempt or a replay, is done by plain commands, which cost the server a third of what a
//! script does: `SET … NX GET` writes the first attempt or shows the record that is there, and the expiry that the server
//! gave the key says when that was. Whatever has to be judged is left to the script.

use std::time::Instant;

use redis::{Cmd, Pipeline, RedisError, ServerError, ServerErrorKind, Value};

use super::record::{Raw, fingerprint_bytes, first_attempt, lease_micros, span_micros};
use super::{RedisStore, fault};
use crate::store::{Grant, Reserve, Reserved, StoreResult, TakeOver};

/// What plain commands could find out.
enum Plain {
    Done(Reserved),
    /// Ask the script.
    Undecided,
}

impl RedisStore {
    pub(super) async fn reserve_record(&self, request: &Reserve<'_>) -> StoreResult<Reserved> {
        let key = self.redis_key(request.key);
        if self.plain_commands()
            && let Plain::Done(reserved) = self.reserve_plainly(&key, request).await?
        {
            return Ok(reserved);
        }
        self.reserve_by_script(&key, request).await
    }

    async fn reserve_plainly(&self, key: &[u8], request: &Reserve<'_>) -> StoreResult<Plain> {
        let (first, expires_after) = first_attempt(request);
        let asked = Instant::now();
        let known = self.inner.clock.at(asked);
        let count = if known.is_some() { 2 } else { 3 };
        let mut commands = Pipeline::with_capacity(count);
        let mut set = Cmd::with_capacity(7, key.len() + first.len() + 40);
        set.arg("SET").arg(key).arg(first).arg("NX").arg("GET").arg("PX").arg(expires_after);
        let mut expiry = Cmd::with_capacity(2, key.len() + 11);
        expiry.arg("PEXPIRETIME").arg(key);
        commands.add_command(set).add_command(expiry);
        if known.is_none() {
            commands.cmd("TIME");
        }
        let answers =
            self.link().ask_all(&commands, count).await.map_err(|error| fault::error(error, true))?;
        let mut answers = answers.into_iter();
        let (shown, expires, time) = (answers.next(), answers.next(), answers.next());
        let now = match (known, time.as_ref().and_then(time_micros)) {
            (_, Some(time)) => {
                self.inner.clock.answered(asked, time);
                Some(time)
            }
            (known, None) => known,
        };
        let expires = match expires {
            Some(Value::Int(expires)) => u64::try_from(expires).ok(),
            Some(Value::ServerError(_)) => {
                self.use_scripts_only();
                None
            }
            _ => None,
        };
        match (shown, expires, now) {
            (Some(Value::ServerError(error)), ..) => self.without_plain_commands(error),
            // What is missing was not allowed, or is not known to this server.
            (Some(Value::Nil | Value::BulkString(_)), None, _) | (Some(Value::BulkString(_)), _, None) => {
                Ok(Plain::Undecided)
            }
            (Some(Value::Nil), Some(expires), _) => {
                // In a whole lease another attempt may have taken over, and then the expiry is that of its record.
                if asked.elapsed() >= request.lease.duration.mul_f32(0.9) {
                    return Ok(Plain::Undecided);
                }
                let fence = expires.saturating_sub(expires_after).saturating_mul(1000);
                Ok(Plain::Done(Reserved::Granted(Grant { attempt: 1, fence, steps: Vec::new() })))
            }
            (Some(Value::BulkString(bytes)), Some(expires), Some(now)) => {
                Ok(shown_plainly(request, &bytes, expires, now).map_or(Plain::Undecided, Plain::Done))
            }
            (answer, ..) => Err(fault::unexpected(&answer.unwrap_or(Value::Nil))),
        }
    }

    /// What to do after the server refused the plain command. Nothing was written.
    fn without_plain_commands(&self, error: ServerError) -> StoreResult<Plain> {
        match error.kind() {
            // An older server, or one that does not allow it.
            Some(ServerErrorKind::ResponseError | ServerErrorKind::NoPerm) => {
                self.use_scripts_only();
                Ok(Plain::Undecided)
            }
            // A full server still shows what it has, but not to a command that might write.
            None if error.code() == "OOM" => Ok(Plain::Undecided),
            _ => Err(fault::error(RedisError::from(error), true)),
        }
    }

    async fn reserve_by_script(&self, key: &[u8], request: &Reserve<'_>) -> StoreResult<Reserved> {
        let policy = match request.take_over {
            TakeOver::Always => "a",
            TakeOver::BeforeEffects => "e",
            TakeOver::BetweenSteps => "s",
        };
        let fingerprint = fingerprint_bytes(&request.fingerprint);
        let arguments = |command: &mut Cmd| {
            command.arg(request.owner.as_bytes()).arg(&fingerprint).arg(lease_micros(request.lease.duration));
            command.arg(span_micros(request.lease.unknown_ttl)).arg(policy).arg(request.max_attempts);
            command.arg(request.key.operation().as_str());
        };
        let script = &self.inner.scripts.reserve;
        let answer = script.run(self.link(), key, arguments).await;
        let answer = answer.map_err(|error| fault::error(error, true))?;
        let shown = Shown::from(answer)?;
        let raw = Raw::decode(&shown.bytes, None).ok_or_else(|| fault::unreadable("content"))?;
        if !shown.granted {
            let record = raw.record(request.key.clone(), shown.now, shown.expires_in);
            return record.map(Reserved::Held).ok_or_else(|| fault::unreadable("content"));
        }
        self.wait_for_replicas(key).await?;
        let steps = raw.steps().ok_or_else(|| fault::unreadable("steps"))?;
        Ok(Reserved::Granted(Grant { attempt: raw.attempt(), fence: raw.fence(), steps }))
    }
}

/// The record that stands in the way, if nothing about it has to be judged: it is settled, or somebody else's and alive.
fn shown_plainly(request: &Reserve<'_>, bytes: &[u8], expires: u64, now: u64) -> Option<Reserved> {
    let raw = Raw::decode(bytes, Some(expires))?;
    if raw.state == b'r' && (raw.owner == request.owner || raw.lease <= now) {
        return None;
    }
    let expires_in = expires.checked_mul(1000)?.checked_sub(now).filter(|left| *left > 0)?;
    raw.record(request.key.clone(), now, expires_in).map(Reserved::Held)
}

/// The answer to `TIME` in microseconds.
fn time_micros(answer: &Value) -> Option<u64> {
    let (seconds, micros): (u64, u64) = redis::from_redis_value_ref(answer).ok()?;
    seconds.checked_mul(1_000_000)?.checked_add(micros)
}

/// A record as a script shows it.
pub(super) struct Shown {
    granted: bool,
    pub(super) now: u64,
    /// Microseconds until the record expires.
    pub(super) expires_in: u64,
    pub(super) bytes: Vec<u8>,
}

impl Shown {
    /// The same, where there may be no record.
    pub(super) fn from_nil(answer: Value) -> StoreResult<Option<Self>> {
        if answer == Value::Nil { Ok(None) } else { Self::from(answer).map(Some) }
    }

    pub(super) fn from(answer: Value) -> StoreResult<Self> {
        let parts = match answer {
            Value::Array(parts) => <[Value; 4]>::try_from(parts).map_err(Value::Array),
            other => Err(other),
        };
        match parts {
            Ok([Value::Int(tag), Value::Int(now), Value::Int(left), Value::BulkString(bytes)]) => Ok(Self {
                granted: tag == 1,
                now: u64::try_from(now).unwrap_or(0),
                // -1: somebody has made the key one that never expires.
                expires_in: u64::try_from(left)
                    .map_or(u64::MAX / 1000, |left| left.max(1).saturating_mul(1000)),
                bytes,
            }),
            Ok(_) => Err(fault::unexpected(&Value::Array(Vec::new()))),
            Err(answer) => Err(fault::unexpected(&answer)),
        }
    }
}
