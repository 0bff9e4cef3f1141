//! A response as bytes, and back. Headers keep their order, their number and every byte; the content is stored as it is.
//!
//! ```text
//! version  1 byte: 1
//! form     1 byte: 0 with content, 1 without: it was a stream, or too large
//! status   2 bytes
//! headers  2 bytes: how many; then for each 2 bytes and the name, 4 bytes and the value
//! content  the rest
//! ```
//!
//! All numbers are big-endian.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::headers::KeptHeaders;

const VERSION: u8 = 1;

/// A response that was stored.
#[derive(Debug)]
pub(super) struct StoredResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// `None`: it was not stored.
    pub(super) content: Option<Bytes>,
}

/// The bytes to store. `None` for a response that no record can hold: with more than 65,535 headers, or longer ones than
/// four gigabytes.
pub(super) fn encode(
    status: StatusCode,
    headers: &HeaderMap,
    kept: &KeptHeaders,
    content: Option<&[u8]>,
) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(256 + content.map_or(0, <[u8]>::len));
    bytes.extend([VERSION, u8::from(content.is_none())]);
    bytes.extend(status.as_u16().to_be_bytes());
    bytes.extend(u16::try_from(kept.of(headers).count()).ok()?.to_be_bytes());
    for (name, value) in kept.of(headers) {
        bytes.extend(u16::try_from(name.as_str().len()).ok()?.to_be_bytes());
        bytes.extend(name.as_str().as_bytes());
        bytes.extend(u32::try_from(value.len()).ok()?.to_be_bytes());
        bytes.extend(value.as_bytes());
    }
    bytes.extend(content.unwrap_or_default());
    Some(bytes)
}

/// The response again. `None`: these are not the bytes of one.
pub(super) fn decode(bytes: &[u8]) -> Option<StoredResponse> {
    let mut rest = bytes;
    let [VERSION, form @ (0 | 1)] = *take(&mut rest)? else { return None };
    let status = StatusCode::from_u16(u16::from_be_bytes(*take(&mut rest)?)).ok()?;
    let mut headers = HeaderMap::new();
    for _ in 0..u16::from_be_bytes(*take(&mut rest)?) {
        let length = usize::from(u16::from_be_bytes(*take(&mut rest)?));
        let name = HeaderName::from_bytes(rest.split_off(..length)?).ok()?;
        let length = usize::try_from(u32::from_be_bytes(*take(&mut rest)?)).ok()?;
        let value = HeaderValue::from_bytes(rest.split_off(..length)?).ok()?;
        headers.try_append(name, value).ok()?;
    }
    let content = match form {
        0 => Some(Bytes::copy_from_slice(rest)),
        _ if rest.is_empty() => None,
        _ => return None,
    };
    Some(StoredResponse { status, headers, content })
}

fn take<'b, const N: usize>(rest: &mut &'b [u8]) -> Option<&'b [u8; N]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> (HeaderMap, Vec<u8>) {
        let mut headers = HeaderMap::new();
        headers.append("content-type", HeaderValue::from_static("application/json"));
        headers.append("link", HeaderValue::from_static("</a>; rel=next"));
        headers.append("link", HeaderValue::from_static("</b>; rel=prev"));
        headers.append("x-name", HeaderValue::from_bytes(b"caf\xe9").expect("obs-text is allowed"));
        headers.append("set-cookie", HeaderValue::from_static("session=1"));
        let status = StatusCode::from_u16(299).expect("three digits");
        let bytes = encode(status, &headers, &KeptHeaders::default(), Some(b"\xff\x00{}"));
        (headers, bytes.expect("a small response fits"))
    }

    #[test]
    fn a_response_comes_back_as_it_was() {
        let (mut headers, bytes) = example();
        let stored = decode(&bytes).expect("it was encoded here");
        headers.remove("set-cookie");
        assert_eq!(stored.status.as_u16(), 299);
        assert_eq!(stored.headers, headers);
        assert_eq!(stored.content.as_deref(), Some(b"\xff\x00{}".as_slice()));
    }

    #[test]
    fn a_response_without_content_says_so() {
        let bytes = encode(StatusCode::OK, &HeaderMap::new(), &KeptHeaders::default(), None);
        assert!(decode(&bytes.expect("it fits")).expect("it was encoded here").content.is_none());
    }

    #[test]
    fn a_record_that_was_cut_off_or_is_of_another_version_is_no_response() {
        let (_, bytes) = example();
        // The content is what is left, so only what comes before it can be seen to be missing.
        for length in 0..bytes.len() - 4 {
            assert!(decode(&bytes[..length]).is_none(), "cut off at {length}");
        }
        assert!(decode(&[&[2], &bytes[1..]].concat()).is_none());
        assert!(decode(&[&[1, 2], &bytes[2..]].concat()).is_none());
    }

    /// Whatever the bytes are, they are a response or none.
    #[test]
    fn a_changed_bit_never_panics() {
        let (_, bytes) = example();
        for at in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[at / 8] ^= 1 << (at % 8);
            let _ = decode(&changed);
        }
    }
}
