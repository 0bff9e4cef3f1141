//! Reading the content of a request, once, within its limits.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};

use super::problem::Problem;

/// What a request brought along.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) bytes: Bytes,
    /// SHA-256 of `bytes`, taken while they arrived.
    pub(super) digest: [u8; 32],
}

/// Reads it all. When this fails, or is dropped, nothing has been reserved yet.
pub(super) async fn read<B>(body: B, limit: usize, patience: Duration) -> Result<Content, Problem>
where
    B: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
{
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(Problem::TOO_LARGE);
    }
    let reading = read_up_to(body, limit, announced);
    tokio::time::timeout(patience, reading).await.unwrap_or(Err(Problem::INCOMPLETE))
}

async fn read_up_to<B>(body: B, limit: usize, announced: usize) -> Result<Content, Problem>
where
    B: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
{
    let mut body = std::pin::pin!(body);
    let (mut digest, mut bytes) = (Sha256::new(), BytesMut::new());
    let mut only = Bytes::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            // What an outer limit says is that it was too large, and only its text tells that from a lost connection.
            return Err(frame.err().map_or(Problem::INCOMPLETE, |error| trouble(&*error.into())));
        };
        // Trailers say nothing that a handler with the whole content would miss.
        let Ok(mut data) = frame.into_data() else { continue };
        if data.remaining() > limit - bytes.len() - only.len() {
            return Err(Problem::TOO_LARGE);
        }
        // The first chunk is mostly all there is: then it is handed on as it came, and never copied.
        let chunk = data.copy_to_bytes(data.remaining());
        digest.update(&chunk);
        if bytes.is_empty() && only.is_empty() {
            only = chunk;
        } else {
            if bytes.is_empty() {
                bytes.reserve(announced.max(only.len() + chunk.len()));
                bytes.extend_from_slice(&std::mem::take(&mut only));
            }
            bytes.extend_from_slice(&chunk);
        }
    }
    let bytes = if only.is_empty() { bytes.freeze() } else { only };
    Ok(Content { bytes, digest: digest.finalize().into() })
}

fn trouble(error: &(dyn std::error::Error + 'static)) -> Problem {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<http_body_util::LengthLimitError>() {
            return Problem::TOO_LARGE;
        }
        cause = error.source();
    }
    Problem::INCOMPLETE
}
