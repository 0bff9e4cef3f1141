//! Contents that cannot be copied.

use std::convert::Infallible;

use bytes::Bytes;
use idempotent_runtime::client::{BodyFactory, ClientError};
use reqwest::Body;

use crate::script::{Act, OK, Server, client};

fn stream() -> Body {
    let chunks = ["one", "two"].map(|chunk| Ok::<_, Infallible>(Bytes::from_static(chunk.as_bytes())));
    Body::wrap_stream(futures_util::stream::iter(chunks))
}

#[tokio::test]
async fn a_stream_is_sent_once_with_its_key() {
    let server = Server::doing([OK]).await;
    assert_eq!(client().post(server.url()).body(stream()).send().await.unwrap().status(), 201);
    assert_eq!(server.keys()[0].len(), 36);

    let server = Server::doing([Act::Reset, OK]).await;
    let error = client().post(server.url()).body(stream()).send().await.unwrap_err();
    assert!(matches!(ClientError::of(&error), Some(ClientError::OutcomeUnknown { tries: 1, .. })), "{error}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_stream_that_can_be_made_again_is_sent_again() {
    let server = Server::doing([Act::Reset, Act::Answer(503, "", ""), OK]).await;
    let request = client().post(server.url()).body(stream()).with_extension(BodyFactory::new(stream));
    assert_eq!(request.send().await.unwrap().status(), 201);
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|request| request.content == seen[0].content && request.key() == seen[0].key()));
}

#[tokio::test]
async fn a_form_of_several_parts_is_sent_once() {
    let server = Server::doing([Act::Reset, OK]).await;
    let form = reqwest::multipart::Form::new().text("amount", "250");
    let content = reqwest::Client::new().post(server.url()).multipart(form).build().unwrap();
    let error = client().execute(content).await.unwrap_err();
    assert!(ClientError::of(&error).and_then(ClientError::key).is_some());
    assert_eq!(server.seen().len(), 1);
}
