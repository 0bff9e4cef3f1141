//! What the README shows of HTTP and of the client, compiled and run word for word: a crate's own documentation tests cannot
//! have the features for it.

use axum::{Router, routing::post};
use idempotent_runtime::http::{IdempotencyLayer, Principal};

use idempotent_runtime::client::{IdempotencyMiddleware, RequestKey, redirects};
use reqwest_middleware::ClientBuilder;

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};

use idempotent_runtime::Idempotency;
use idempotent_runtime::client::Exchange;
use idempotent_runtime::stores::MemoryStore;
use tokio::net::TcpListener;

static PAID: AtomicU32 = AtomicU32::new(0);

async fn pay() -> String {
    format!("payment {}", PAID.fetch_add(1, Ordering::Relaxed))
}

async fn serve() -> Result<String, Box<dyn Error>> {
    let idempotency = Idempotency::new(MemoryStore::new());
    let layer = IdempotencyLayer::builder(&idempotency, Principal::single_tenant()).required().build()?;
    let app = Router::new().route("/payments", post(pay)).layer(layer);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/payments", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(url)
}

async fn ask(url: &str, order_id: &str) -> Result<reqwest::Response, Box<dyn Error>> {
    let payment = "{\"amount\":250}";
    let inner = reqwest::Client::builder().redirect(redirects()).build()?;
    let client = ClientBuilder::new(inner).with(IdempotencyMiddleware::new()).build();
    let request = client.post(url).body(payment).with_extension(RequestKey::derived(["payment", order_id]));
    let response = request.send().await?;
    Ok(response)
}

#[tokio::test]
async fn the_service_and_the_client_of_the_readme_pay_once() {
    let url = serve().await.unwrap();
    for replayed in [false, true] {
        let response = ask(&url, "order-1").await.unwrap();
        let exchange = response.extensions().get::<Exchange>().cloned().unwrap();
        assert_eq!(exchange.replayed, replayed);
        assert_eq!(response.text().await.unwrap(), "payment 0");
    }
    assert_eq!(PAID.load(Ordering::Relaxed), 1);
}

#[test]
fn the_snippets_of_the_readme_are_the_code_above() {
    let readme = include_str!("../../README.md");
    let snippets: Vec<_> = readme.split("```rust,ignore\n").skip(1).collect();
    assert_eq!(snippets.len(), 2);
    let here: Vec<&str> = include_str!("readme.rs").lines().map(str::trim).collect();
    for snippet in snippets {
        let snippet = snippet.split("```").next().unwrap();
        let missing: Vec<_> = snippet.lines().filter(|line| !here.contains(&line.trim())).collect();
        assert!(missing.is_empty(), "{missing:#?}");
    }
}
