//! What the field may say, as it arrives on a socket.

use axum::http::HeaderName;
use idempotent_runtime::http::{IdempotencyLayerBuilder, Syntax};

use crate::support::{Server, Shop, layer, problem, routes, seen};

fn line(value: &str) -> Vec<u8> {
    format!("idempotency-key: {value}\r\n").into_bytes()
}

#[tokio::test]
async fn both_forms_of_a_key_are_one_key() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    assert_eq!(server.raw_post("/orders", &line("\"k\"")).await.status, 201);
    let retry = server.raw_post("/orders", &line("k")).await;
    assert!(retry.text.contains("idempotent-replayed: true"), "{}", retry.text);
    // Spaces around it, and parameters after it, say nothing.
    assert!(server.raw_post("/orders", &line("  \"k\";v=1 ")).await.text.contains("idempotent-replayed"));
    assert_eq!(shop.handled(), 1);
}

#[tokio::test]
async fn the_case_of_a_key_matters_and_that_of_the_name_does_not() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    server.raw_post("/orders", &line("abc")).await;
    server.raw_post("/orders", b"IDEMPOTENCY-KEY: abc\r\n").await;
    assert_eq!(shop.handled(), 1);
    server.raw_post("/orders", &line("ABC")).await;
    assert_eq!(shop.handled(), 2);
}

#[tokio::test]
async fn every_uuid_is_a_key_without_quotes() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    for number in 0..1_000_u128 {
        let id = uuid::Uuid::from_u128(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
        assert_eq!(
            seen(server.post("/orders").header("idempotency-key", id.to_string())).await.0,
            201,
            "{id}"
        );
    }
    assert_eq!(shop.handled(), 1_000);
}

#[tokio::test]
async fn a_value_that_names_no_key_is_refused_and_never_ignored() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    let long = format!("idempotency-key: \"{}\"\r\n", "a".repeat(256));
    let huge = format!("idempotency-key: {}\r\n", "a".repeat(32 * 1024));
    let lines: &[&[u8]] = &[
        b"idempotency-key: \"\"\r\n",
        b"idempotency-key:\r\n",
        b"idempotency-key: \"a\"\r\nidempotency-key: \"b\"\r\n",
        b"idempotency-key: \"a\"\r\nidempotency-key: \"a\"\r\n",
        b"idempotency-key: a, b\r\n",
        b"idempotency-key: abc;v=1\r\n",
        b"idempotency-key: \"abc\r\n",
        b"idempotency-key: \"a\tb\"\r\n",
        b"idempotency-key: caf\xe9\r\n",
        b"idempotency-key: a b\r\n",
        long.as_bytes(),
        huge.as_bytes(),
    ];
    for line in lines {
        let answer = server.raw_post("/orders", line).await;
        assert_eq!(answer.status, 400, "{:?}", String::from_utf8_lossy(line));
        assert!(answer.text.contains("\"invalid-key\""), "{}", answer.text);
    }
    // These never reach the layer.
    for line in [b"idempotency-key: a\x00b\r\n".as_slice(), b"idempotency-key: a\r\n b\r\n"] {
        assert_eq!(server.raw_post("/orders", line).await.status, 400);
    }
    assert_eq!(shop.handled(), 0);
}

#[tokio::test]
async fn strict_takes_the_string_in_quotes_only() {
    let shop = Shop::default();
    let server = Server::start(routes(&shop, layer(|builder| builder.syntax(Syntax::Strict)))).await;
    for bare in ["ab03978e-40d5-43e8-bc93-6894a57f9324", "123", "?1", ":YWJj:"] {
        assert_eq!(server.raw_post("/orders", &line(bare)).await.status, 400, "{bare}");
    }
    assert_eq!(server.raw_post("/orders", &line("\"123\"")).await.status, 201);
}

#[tokio::test]
async fn another_name_counts_only_when_it_is_given() {
    let shop = Shop::default();
    let server = Server::shop(&shop).await;
    for _ in 0..2 {
        assert!(!seen(server.post("/orders").header("x-idempotency-key", "a")).await.1);
    }
    assert_eq!(shop.handled(), 2);

    let alias = HeaderName::from_static("x-idempotency-key");
    let server = Server::start(routes(&shop, layer(|builder| builder.alias(alias)))).await;
    assert!(!seen(server.post("/orders").header("x-idempotency-key", "a")).await.1);
    assert!(seen(server.post("/orders").header("idempotency-key", "a")).await.1);
    let both = |key| server.post("/orders").header("idempotency-key", "a").header("x-idempotency-key", key);
    assert!(seen(both("a")).await.1);
    assert_eq!(problem(both("b")).await, (400, "invalid-key".to_owned()));
}

#[tokio::test]
async fn a_key_is_not_looked_for_in_the_query_or_the_content() {
    let shop = Shop::default();
    let server = Server::start(routes(&shop, layer(IdempotencyLayerBuilder::required))).await;
    let request = server.post("/orders?idempotency-key=a").body("{\"idempotency_key\":\"a\"}");
    assert_eq!(problem(request).await, (400, "missing-key".to_owned()));
}

#[tokio::test]
async fn a_missing_key_is_refused_where_one_is_required() {
    let shop = Shop::default();
    let docs = "https://api.example.com/docs#retries";
    let server = Server::start(routes(&shop, layer(|builder| builder.required().docs_url(docs)))).await;
    // The content announced here is never sent, so the answer does not wait for it.
    let request = "POST /orders HTTP/1.1\r\nhost: shop\r\nconnection: close\r\ncontent-length: 5\r\n\r\n";
    let answer = server.raw(request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains(&format!("link: <{docs}>; rel=\"describedby\"; type=\"text/html\"")), "{answer}");
    assert!(answer.contains("\"title\":\"Idempotency-Key is missing\""), "{answer}");
    assert!(answer.contains("the header Idempotency-Key"), "{answer}");
    assert_eq!(problem(server.post("/orders").header("idempotency-key", "\"\"")).await.1, "invalid-key");
    assert_eq!(shop.handled(), 0);
}
