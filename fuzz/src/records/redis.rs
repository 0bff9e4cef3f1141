//! A value of the Redis store.

#[path = "../../../idempotent-runtime/src/stores/redis/record.rs"]
mod record;

use crate::key::RecordKey;

pub(super) fn read(data: &[u8]) {
    let Some((numbers, bytes)) = data.split_first_chunk::<24>() else { return };
    let number = |at: usize| {
        let part = numbers.get(at..at + 8).and_then(|part| part.try_into().ok());
        u64::from_le_bytes(part.unwrap_or_default())
    };
    for expires in [None, Some(number(0))] {
        let Some(raw) = record::Raw::decode(bytes, expires) else { continue };
        let key = RecordKey::new(raw.operation(), "key");
        raw.steps();
        if let Some(record) = raw.record(key, number(8), number(16)) {
            assert_eq!(record.attempt, raw.attempt());
            assert_eq!(record.fence, raw.fence());
        }
    }
}
