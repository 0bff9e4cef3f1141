//! A row of an SQL store.

#[path = "../../../idempotent-runtime/src/stores/sql/row.rs"]
mod row;

use crate::key::RecordKey;

pub(super) fn read(data: &[u8]) {
    let Some((numbers, rest)) = data.split_first_chunk::<64>() else { return };
    let number = |at: usize| {
        let part = numbers.get(at * 8..at * 8 + 8).and_then(|part| part.try_into().ok());
        i64::from_le_bytes(part.unwrap_or_default())
    };
    let [flags, rest @ ..] = rest else { return };
    let states = ["running", "completed", "failed", "not_retained", "unknown", "other"];
    let (owner, rest) = rest.split_at(rest.len().min(usize::from(flags & 16) + 1));
    let (fingerprint, result) = rest.split_at(rest.len().min(32));
    let raw = row::RawRecord {
        version: number(0) & 3,
        state: states[usize::from(*flags) % states.len()],
        owner,
        attempt: number(1),
        fence: number(2),
        fingerprint_version: number(3) & 0x1ff,
        fingerprint,
        effects_begun: flags & 1 == 0,
        lease_left: (flags & 2 == 0).then(|| number(4)),
        created_at: number(5),
        expires_in: number(6),
        result_version: (flags & 4 == 0).then(|| number(7)),
        result: (flags & 8 == 0).then_some(result),
        steps: Vec::new(),
    };
    let _ = raw.decode(RecordKey::new("charge", "key"));
}
