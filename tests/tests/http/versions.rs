//! HTTP/1.0, HTTP/1.1 and HTTP/2.

use std::time::Duration;

use crate::support::{Server, Shop, problem, seen};

fn http2() -> reqwest::Client {
    reqwest::Client::builder().http2_prior_knowledge().no_gzip().build().unwrap()
}

#[tokio::test]
async fn a_request_may_come_again_over_another_version() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let new = |key: &'static str| http2().post(server.url("/orders")).header("idempotency-key", key);
    let old = |key: &'static str| server.post("/orders").header("idempotency-key", key);
    assert!(!seen(new("a")).await.1);
    assert_eq!(seen(old("a")).await, (201, true, "{\"id\":1}".to_owned()));
    assert!(!seen(old("b")).await.1);
    let replay = new("b").send().await.unwrap();
    assert_eq!(replay.version(), axum::http::Version::HTTP_2);
    assert_eq!(replay.headers()["idempotent-replayed"], "true");
}

#[tokio::test]
async fn a_stream_that_is_reset_does_not_interrupt_the_handler() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let client = http2();
    let request = || client.post(server.url("/slow")).header("idempotency-key", "a");
    let gone = tokio::spawn(seen(request()));
    shop.begun.notified().await;
    gone.abort();
    assert_eq!(problem(request()).await, (409, "in-progress".to_owned()));
    shop.finish.notify_one();
    while seen(request()).await.0 != 200 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(shop.handled(), 1);
}

#[tokio::test]
async fn an_old_client_gets_no_chunks() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    for _ in 0..2 {
        let answer =
            server.raw(b"POST /orders HTTP/1.0\r\nidempotency-key: a\r\ncontent-length: 0\r\n\r\n").await;
        assert!(answer.contains("201 Created"), "{answer}");
        assert!(!answer.to_lowercase().contains("transfer-encoding"), "{answer}");
        assert!(answer.ends_with("{\"id\":1}"), "{answer}");
    }
}
