//! Between a serialized result and the bytes that a store keeps: the codec, the size limit, the version.

use std::borrow::Cow;

use crate::call::Call;
use crate::events;
use crate::outcome::Unrecorded;

/// The bytes to keep for a result, or why it cannot be kept.
pub(crate) fn seal(call: &Call, encoded: Result<Vec<u8>, serde_json::Error>) -> Result<Vec<u8>, Unrecorded> {
    let encoded = encoded.map_err(Into::into).and_then(|plain| match &call.core.settings.codec {
        Some(codec) => codec.encode(&call.key, plain),
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
