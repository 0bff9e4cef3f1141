//! What the whole attribute promises for any input, on token streams.

use std::fmt::Write as _;
use std::str::FromStr as _;

use proc_macro2::{TokenStream, TokenTree};

use crate::expand_attribute;

const ATTRIBUTE: &str = r#"key = "tenant-{order.tenant.id}-{order.id}", ttl = "24h", lease = "30s", wait = "5s",
    name = "charge", skip(gateway, order.requested_at, "order.some-name", T, N), store = self.idempotency,
    on_error = |error| decide(error), on_crash = "retry", on_missing_key = "run", version = 2, detached,
    crate = crate::facade::idempotent_runtime"#;

const FUNCTION: &str = r"
    /// Charges.
    #[allow(unused)]
    pub(crate) async fn charge<'a, T: Clone, const N: usize>(
        self: Arc<Self>,
        gateway: Gateway,
        mut order: Order,
        #[cfg(unix)] State(pool, _): State<Pool>,
    ) -> Result<Receipt, ChargeError>
    where
        T: Send,
    {
        #![allow(dead_code)]
        let unique_marker_of_the_body = gateway.charge(order).await?;
        Ok(unique_marker_of_the_body)
    }
";

fn tokens(source: &str) -> TokenStream {
    TokenStream::from_str(source).expect("the test's own source")
}

fn expanded(attribute: &str, item: &str) -> String {
    expand_attribute(tokens(attribute), tokens(item)).to_string()
}

/// All tokens in a row, groups opened.
fn flat(stream: TokenStream) -> Vec<String> {
    let mut all = Vec::new();
    for token in stream {
        if let TokenTree::Group(group) = &token {
            all.push(format!("{:?}", group.delimiter()));
            all.extend(flat(group.stream()));
            all.push("end".into());
        } else {
            all.push(token.to_string());
        }
    }
    all
}

#[test]
fn expands_without_errors() {
    let output = expanded(ATTRIBUTE, FUNCTION);
    assert!(!output.contains("compile_error"), "{output}");
    syn::parse_str::<syn::File>(&output).expect("the expansion is valid");
}

#[test]
fn the_same_input_gives_the_same_output() {
    let first = expanded(ATTRIBUTE, FUNCTION);
    for _ in 0..100 {
        assert_eq!(expanded(ATTRIBUTE, FUNCTION), first);
    }
}

#[test]
fn the_signature_is_kept_token_for_token_and_first() {
    let head = FUNCTION.split("#![allow").next().expect("a head").trim().trim_end_matches('{');
    let head = flat(tokens(head));
    let output = flat(expand_attribute(tokens(ATTRIBUTE), tokens(FUNCTION)));
    assert_eq!(output.get(..head.len()), Some(head.as_slice()));
}

#[test]
fn the_body_is_there_once() {
    let output = expanded(ATTRIBUTE, FUNCTION);
    assert_eq!(output.matches("let unique_marker_of_the_body").count(), 1, "{output}");
}

#[test]
fn after_a_mistake_the_function_is_there_as_it_was() {
    let wrong = "key = \"nobody.id\", tttl = 1, key = 2, skip(T, N)";
    let output = flat(expand_attribute(tokens(wrong), tokens(FUNCTION)));
    let plain = flat(tokens(&format!("#[allow(unused_variables)] {FUNCTION}")));
    assert_eq!(output.get(..plain.len()), Some(plain.as_slice()));
    assert_eq!(output.iter().filter(|token| *token == "compile_error").count(), 4, "{output:?}");
}

/// Where a token stands: the first and the last line and column.
type Place = [usize; 4];

/// All tokens but delimiters, with their places.
fn placed(stream: TokenStream) -> Vec<(Place, String)> {
    let mut all = Vec::new();
    for token in stream {
        if let TokenTree::Group(group) = &token {
            all.extend(placed(group.stream()));
        } else {
            let (start, end) = (token.span().start(), token.span().end());
            all.push(([start.line, start.column, end.line, end.column], token.to_string()));
        }
    }
    all
}

/// Hovering, completion and "go to definition" follow a token to the first one of the expansion that has its place. So
/// every token of the function and of a value without quotes has its own place there, and is the first that has it.
#[test]
fn every_token_of_the_user_is_found_at_its_place() {
    let function = tokens(FUNCTION);
    // Below the function, so that no place is that of two tokens.
    let values = [
        ("key", "order.id"),
        ("store", "self.idempotency.clone()"),
        ("on_error", "|error| decide(error)"),
        ("reconcile", "gateway.find(&order.id)"),
    ];
    let mut attribute = "\n".repeat(100) + "name = \"charge\", skip(gateway, T, N)";
    let mut expected = placed(function.clone());
    for (option, value) in values {
        let _ = writeln!(attribute, ", {option} =");
        let line = attribute.matches('\n').count();
        attribute.push_str(value);
        let own = placed(tokens(&("\n".repeat(line) + value)));
        expected.extend(own);
    }
    let output = placed(expand_attribute(tokens(&attribute), function));
    assert!(!output.iter().any(|(_, text)| text == "compile_error"), "{output:?}");
    for (place, _) in &expected {
        let at = |all: &[(Place, String)]| -> Vec<String> {
            all.iter().filter(|(at, _)| at == place).map(|(_, text)| text.clone()).collect()
        };
        // Several at one place are those of a documentation comment.
        let (own, found) = (at(&expected), at(&output));
        assert!(found.starts_with(&own), "{found:?} at {place:?}");
    }
}

#[test]
fn a_half_typed_body_expands_and_keeps_its_tokens() {
    let half = "async fn charge(order: Order) -> Result<Receipt, ChargeError> { let id = order. }";
    let output = expanded("key = \"order.id\"", half);
    assert!(!output.contains("compile_error"), "{output}");
    assert!(
        output.starts_with("async fn charge (order : Order) -> Result < Receipt , ChargeError >"),
        "{output}"
    );
    assert!(output.contains("{ let id = order . }"), "{output}");
}

#[test]
fn a_half_typed_attribute_keeps_the_function() {
    for half in [
        "key",
        "key =",
        "key = order.",
        "key = \"order.",
        "skip(",
        "skip(order",
        "crate = ::",
        "on_error = |",
    ] {
        let Ok(half) = TokenStream::from_str(half) else { continue };
        let output = flat(expand_attribute(half, tokens(FUNCTION)));
        let plain = flat(tokens(&format!("#[allow(unused_variables)] {FUNCTION}")));
        assert_eq!(output.get(..plain.len()), Some(plain.as_slice()));
        assert!(output.iter().any(|token| token == "compile_error"));
    }
}

/// No input makes it panic: prefixes, and inputs with a token less, of the attribute and of the function.
#[test]
fn never_panics() {
    let cut = |stream: TokenStream| {
        let all: Vec<TokenTree> = stream.into_iter().collect();
        let prefixes = (0..all.len()).map(|end| all.iter().take(end).cloned().collect::<TokenStream>());
        let without = (0..all.len()).map(|gap| {
            let kept =
                all.iter().enumerate().filter(|(index, _)| *index != gap).map(|(_, token)| token.clone());
            kept.collect::<TokenStream>()
        });
        prefixes.chain(without).collect::<Vec<_>>()
    };
    for attribute in cut(tokens(ATTRIBUTE)) {
        expand_attribute(attribute, tokens(FUNCTION));
    }
    for item in cut(tokens(FUNCTION)) {
        expand_attribute(tokens(ATTRIBUTE), item);
    }
}

/// As above, with tokens from both in an order that a small generator chooses.
#[test]
fn never_panics_on_noise() {
    let mut words = flat(tokens(&format!("{ATTRIBUTE} {FUNCTION}")));
    words.retain(|word| word != "end" && !["Parenthesis", "Brace", "Bracket"].contains(&word.as_str()));
    words.extend(
        ["(a, b)", "{ x }", "[y]", "\"\"", "\"{\"", "\"a.\"", "'z'", "1.5", "r#fn"].map(String::from),
    );
    let mut state: u64 = 7;
    for _ in 0..2_000 {
        let mut noise = String::new();
        for _ in 0..8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let index = usize::try_from(state >> 33).unwrap_or_default() % words.len();
            let _ = write!(noise, "{} ", words.get(index).map_or("", String::as_str));
        }
        let Ok(noise) = TokenStream::from_str(&noise) else { continue };
        expand_attribute(noise.clone(), tokens(FUNCTION));
        expand_attribute(tokens(ATTRIBUTE), noise.clone());
        expand_attribute(noise.clone(), noise);
    }
}

/// Golden files: the code that usual functions become. `UPDATE_SNAPSHOTS=1` writes them anew.
mod snapshots {
    use super::{expand_attribute, tokens};

    fn check(name: &str, attribute: &str, item: &str) {
        let output = expand_attribute(tokens(attribute), tokens(item));
        let file = syn::parse2(output).expect("the expansion is valid");
        let output = prettyplease::unparse(&file);
        let path = format!("{}/src/tests/{name}.rs", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(&path, &output).expect("the folder is there");
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(output, golden, "{path} differs; see above how to update it");
    }

    #[test]
    fn plain() {
        check(
            "plain",
            r#"key = "order.id", ttl = "24h", skip(gateway)"#,
            "pub async fn charge(gateway: &Gateway, order: Order) -> Result<Receipt, ChargeError> {
                gateway.charge(order).await
            }",
        );
    }

    #[test]
    fn method() {
        check(
            "method",
            r#"key = "self.tenant.id, order.id", name = "charge", store = self.idempotency, on_error = decide"#,
            "pub async fn charge(&self, mut order: Order, _note: String) -> Result<Receipt, ChargeError> {
                order.amount += 1;
                self.gateway.charge(order).await
            }",
        );
    }

    #[test]
    fn template_and_policies() {
        check(
            "template_and_policies",
            r#"key = "charge-{order.id}", on_error = "replay", on_crash = "retry", on_missing_key = "run",
               lease = "1m", wait = "5s", version = 3, skip(order.requested_at, "order.some-name")"#,
            "async fn charge(order: &Order) -> Reply { Ok(pay(order).await?) }",
        );
    }

    #[test]
    fn patterns_and_detached() {
        check(
            "patterns_and_detached",
            r#"key = "*", detached, skip(pool)"#,
            "async fn charge(State(pool): State<Pool>, Json(order): Json<Order>, #[cfg(unix)] uid: u32) -> Reply {
                pool.charge(order).await
            }",
        );
    }

    #[test]
    fn reconciled() {
        check(
            "reconciled",
            r#"key = "order.id", skip(gateway), reconcile = gateway.find(&order.id)"#,
            "async fn charge(gateway: &Gateway, order: Order) -> Result<Receipt, ChargeError> {
                gateway.charge(order).await
            }",
        );
    }

    #[test]
    fn transaction() {
        check(
            "transaction",
            r#"key = "order.id", transaction = tx, on_error = decide"#,
            "async fn charge(tx: &mut Transaction<'_, Postgres>, order: Order) -> Reply { pay(tx, order).await }",
        );
    }

    #[test]
    fn boxed() {
        check(
            "boxed",
            r#"key = self.tenant.id, name = "charge""#,
            "fn charge<'life0, 'async_trait>(&'life0 self, __arg1: Json<Order>)
                -> ::core::pin::Pin<Box<dyn ::core::future::Future<Output = Reply> + ::core::marker::Send + 'async_trait>>
            where 'life0: 'async_trait, Self: 'async_trait {
                Box::pin(async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<Reply> {
                        #[allow(unreachable_code)]
                        return __ret;
                    }
                    let __self = self;
                    let Json(order) = { let __arg1 = __arg1; __arg1 };
                    let __ret: Reply = { __self.gateway.charge(order).await };
                    #[allow(unreachable_code)]
                    __ret
                })
            }",
        );
    }
}
