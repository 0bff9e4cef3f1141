//! What the service says of itself.

use axum::Json;
use axum::extract::State;
use axum::response::Html;
use pulldown_cmark::{Options, Parser, html};
use serde_json::{Value, json};

use crate::App;

/// The document of `OpenAPI`. Its parameter and its problems are those that the layer really has.
pub(crate) async fn openapi(State(app): State<App>) -> Json<Value> {
    let policy = app.layer.policy();
    let key = json!({
        "name": policy.header,
        "in": "header",
        "required": policy.required,
        "description": format!("A key of the client's choice: {}. Kept for {} s.", policy.syntax, policy.ttl_seconds),
        "schema": { "type": "string", "minLength": policy.min_key_bytes, "maxLength": policy.max_key_bytes },
    });
    let mut responses = serde_json::Map::new();
    for problem in &policy.problems {
        let described = responses.entry(problem.status.to_string()).or_insert_with(|| {
            json!({ "description": "", "content": { "application/problem+json": { "schema": { "type": "object" } } } })
        });
        let text = described["description"].as_str().unwrap_or_default();
        described["description"] =
            [text, problem.title].join(if text.is_empty() { "" } else { "; or: " }).into();
    }
    let operation = |summary: &str, properties: Value| {
        let mut responses = responses.clone();
        responses.insert("201".into(), json!({ "description": "It is done." }));
        let schema = json!({ "type": "object", "properties": properties });
        json!({ "post": {
            "summary": summary,
            "parameters": [key],
            "requestBody": { "required": true, "content": { "application/json": { "schema": schema } } },
            "responses": responses,
        }})
    };
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer", "minimum": 0 }));
    Json(json!({
        "openapi": "3.1.0",
        "info": { "title": "Payments", "version": "1.0.0" },
        "paths": {
            "/payments": operation("Charge an order", json!({ "order_id": text, "amount": number, "currency": text })),
            "/refunds": operation("Give back a part of a payment", json!({ "payment_id": text, "amount": number })),
        },
        "x-idempotency": policy,
    }))
}

/// The policy for people. A refusal for a missing key links to it, and says that it is HTML.
pub(crate) async fn policy(State(app): State<App>) -> Html<String> {
    let markdown = app.layer.policy().to_markdown();
    let mut page =
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Idempotency keys</title>\n\
                    <h1>Idempotency keys</h1>\n"
            .to_owned();
    html::push_html(&mut page, Parser::new_ext(&markdown, Options::ENABLE_TABLES));
    Html(page)
}
