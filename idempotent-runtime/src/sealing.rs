//! Between a result and the bytes that a store keeps: the serializer, the codec, the size limit, the version.

use std::borrow::Cow;
use std::cell::Cell;

use serde::Serialize;

use crate::call::Call;
use crate::events;
use crate::outcome::Unrecorded;

/// As much memory as a thread keeps for the next result that it serializes.
const MOST_KEPT: usize = 64 * 1024;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Gives the serialized `value` to `keep`.
///
/// It is written where the thread has written the one before, since what a store keeps is a copy in any case. While it is
/// written there is nothing there, so that a `Serialize` which makes a call of its own gets memory of its own.
pub(crate) fn serialized<T: Serialize, K>(
    value: &T,
    keep: impl FnOnce(Result<&[u8], serde_json::Error>) -> K,
) -> K {
    let mut bytes = SCRATCH.take();
    bytes.clear();
    let written = serde_json::to_writer(&mut bytes, value);
    let kept = keep(written.map(|()| bytes.as_slice()));
    if bytes.capacity() <= MOST_KEPT {
        SCRATCH.set(bytes);
    }
    kept
}

/// The bytes to keep for a result, or why it cannot be kept.
pub(crate) fn seal<'b>(
    call: &Call,
    encoded: Result<Cow<'b, [u8]>, serde_json::Error>,
) -> Result<Cow<'b, [u8]>, Unrecorded> {
    let encoded = encoded.map_err(Into::into).and_then(|plain| match &call.core.settings.codec {
        Some(codec) => codec.encode(&call.key, plain.into_owned()).map(Cow::Owned),
        None => Ok(plain),
    });
    match encoded {
        Ok(bytes) if call.core.max_result_bytes().is_some_and(|limit| bytes.len() > limit) => {
            Err(Unrecorded::TooLarge)
        }
        Ok(bytes) => Ok(bytes),
        Err(error) => {
            events::not_serializable(call, &*error);
            Err(Unrecorded::NotSerializable)
        }
    }
}

/// The serialized result of version `version` again, or why it cannot be read. The reason never quotes it.
pub(crate) fn open<'b>(call: &Call, version: u32, bytes: &'b [u8]) -> Result<Cow<'b, [u8]>, String> {
    let expected = call.version;
    if version != expected {
        return Err(format!(
            "it was stored by version {version} of the result type, and this program has version {expected}"
        ));
    }
    match &call.core.settings.codec {
        None => Ok(Cow::Borrowed(bytes)),
        Some(codec) => {
            let decoded = codec.decode(&call.key, bytes);
            decoded.map(Cow::Owned).map_err(|_| "the codec could not decode it".to_owned())
        }
    }
}

/// What is said of a result that the deserializer refused: where it refused, but not the text of its error, which may
/// quote the result.
pub(crate) fn misfit(error: &serde_json::Error) -> String {
    format!("it does not fit the result type (at line {}, column {})", error.line(), error.column())
}
