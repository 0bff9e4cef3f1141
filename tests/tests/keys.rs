//! What a call's key looks like, and that no two different ones do.

use std::collections::{BTreeMap, HashMap};

use idempotent_runtime::fingerprint::Fingerprinter;
use idempotent_runtime::key::{KeyParts, OperationName, names_fit};
use proptest::collection::vec;
use proptest::prelude::*;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::{Value, json};

const CHARGE: OperationName = OperationName::from_static("charge");

fn key(parts: KeyParts) -> String {
    parts.into_key("shop", &CHARGE, None).expect("it serializes").as_str().to_owned()
}

/// The text of one part.
fn part<T: Serialize + ?Sized>(value: &T) -> String {
    let mut parts = KeyParts::new();
    parts.part("it", value);
    key(parts).strip_prefix("shop/charge/").expect("the names").to_owned()
}

fn is_digest(part: &str) -> bool {
    part.len() == 65 && part.starts_with('~')
}

fn is_missing<T: Serialize + ?Sized>(value: &T) -> bool {
    let mut parts = KeyParts::new();
    parts.part("before", &1);
    parts.part("it", value);
    parts.part("after", &None::<u8>);
    assert!(matches!(parts.missing(), Some("it" | "after")));
    parts.missing() == Some("it")
}

#[derive(serde::Serialize)]
struct Id<T>(T);

#[derive(serde::Serialize)]
enum Region {
    #[serde(rename = "eu-west")]
    EuWest,
    #[serde(rename = "7")]
    Seven,
    Other(u8),
}

#[test]
fn scalars_are_readable() {
    let id = uuid::Uuid::from_u128(0x1234_5678_9abc_def0_1234_5678_9abc_def0);
    assert_eq!(part("ord_1"), "ord_1");
    assert_eq!(part("Müller"), "Müller");
    assert_eq!(part(&'x'), "x");
    assert_eq!(part(&42_u8), "42");
    assert_eq!(part(&-42_i64), "-42");
    assert_eq!(part(&u128::MAX), "340282366920938463463374607431768211455");
    assert_eq!(part(&i128::MIN), "-170141183460469231731687303715884105728");
    assert_eq!(part(&true), "true");
    assert_eq!(part(&id), "12345678-9abc-def0-1234-56789abcdef0");
    assert_eq!(part(&Some(Id(Some(7)))), "7");
    assert_eq!(part(&Region::EuWest), "eu-west");
}

#[test]
fn strings_never_read_as_numbers_or_booleans() {
    assert_eq!(part("42"), "'42");
    assert_eq!(part("-42"), "'-42");
    assert_eq!(part("007"), "'007");
    assert_eq!(part("true"), "'true");
    assert_eq!(part("'42"), "''42");
    assert_eq!(part(&Region::Seven), "'7");
    assert_eq!(part(&'7'), "'7");
    // These can be nothing but strings.
    for plain in ["4.2", "-", "4e2", "+4", "٤", "True", "o'clock"] {
        assert_eq!(part(plain), plain);
    }
}

#[test]
fn what_would_confuse_is_escaped() {
    assert_eq!(part("a/b~c!d%e"), "a%2Fb%7Ec%21d%25e");
    assert_eq!(part("a b\n\0\u{7f}\u{85}\u{2003}"), "a%20b%0A%00%7F%C2%85%E2%80%83");
    assert_eq!(part("a#b:c{}"), "a#b:c{}");
    assert_eq!(part("日本 é"), "日本%20é");
}

#[test]
fn everything_else_is_a_digest() {
    let hashed: HashMap<_, _> = (0..20).map(|i| (i, i)).collect();
    let sorted: BTreeMap<_, _> = (0..20).map(|i| (i, i)).collect();
    assert_eq!(part(&hashed), part(&sorted));
    let all = [
        part(&1.0),
        part(&f64::NAN),
        part(&[1, 2]),
        part(&(1, 2, 3)),
        part(&[2, 1]),
        part(&Region::Other(1)),
        part(&sorted),
        part(&json!({"a": 1})),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(is_digest(one), "{one}");
        assert!(!all[..at].contains(one));
    }
    assert_eq!(part(&vec![1, 2]), part(&(1, 2)));
}

#[test]
fn json_values_are_what_they_hold_with_arbitrary_precision_too() {
    #[derive(serde::Serialize)]
    #[serde(rename = "$serde_json::private::Number")]
    struct Number {
        #[serde(rename = "$serde_json::private::Number")]
        text: &'static str,
    }
    for text in ["0", "42", "-42", "18446744073709551615", "1.5", "-0", "1e3", "100000000000000000000"] {
        let plain: Value = serde_json::from_str(text).expect("a number");
        assert_eq!(part(&Number { text }), part(&plain), "{text}");
    }
    assert_eq!(part(&json!("42")), "'42");
}

#[test]
fn a_tuple_as_the_whole_key_is_one_part_for_each_element() {
    let whole = |value: &dyn Fn(&mut KeyParts)| {
        let mut parts = KeyParts::new();
        value(&mut parts);
        assert_eq!(parts.missing(), None);
        key(parts)
    };
    assert_eq!(whole(&|parts| parts.parts("key", &("a", &42, ("b", 1.5)))), {
        let mut parts = KeyParts::new();
        parts.part("key", "a");
        parts.part("key", &42);
        parts.part("key", &("b", 1.5));
        key(parts)
    });
    assert_eq!(whole(&|parts| parts.parts("key", "a")), "shop/charge/a");
    let mut parts = KeyParts::new();
    parts.parts("key", &("a", None::<u8>));
    assert_eq!(parts.missing(), Some("key"));
}

#[test]
fn missing_is_what_says_nothing() {
    assert!(is_missing(&None::<u8>));
    assert!(is_missing(&Some(None::<u8>)));
    assert!(is_missing(&()));
    assert!(is_missing(&Value::Null));
    assert!(is_missing(""));
    assert!(is_missing(" \t\n\u{2003}"));
    assert!(is_missing(&json!([])));
    assert!(is_missing(&json!({})));
    assert!(is_missing(&json!([null, null])));
    assert!(is_missing(&json!({"a": null, "b": [null, {}]})));
    assert!(is_missing(&(None::<u8>, ())));
}

#[test]
fn falsy_is_not_missing() {
    assert!(!is_missing(&0));
    assert!(!is_missing(&false));
    assert!(!is_missing(&0.0));
    assert!(!is_missing(&f64::NAN));
    assert!(!is_missing(&json!([0])));
    assert!(!is_missing(&json!({"a": 0})));
    assert!(!is_missing(&json!([""])));
    assert!(!is_missing("null"));
    assert!(!is_missing(&Region::EuWest));
}

#[test]
fn no_part_at_all_is_a_missing_key() {
    assert_eq!(KeyParts::new().missing(), Some("key"));
    assert_eq!(KeyParts::default().missing(), Some("key"));
}

#[test]
fn all_arguments_can_be_the_key() {
    let fingerprint = Fingerprinter::new().finish().expect("nothing to serialize");
    let mut parts = KeyParts::new();
    parts.whole(&fingerprint);
    assert_eq!(parts.missing(), None);
    assert_eq!(key(parts), format!("shop/charge/~{fingerprint}"));
}

#[test]
fn the_literal_text_of_a_template_belongs_to_the_operation() {
    let key = |operation: &str, template| {
        let mut parts = KeyParts::new();
        parts.part("id", &1);
        parts.into_key("shop", &operation.into(), template).expect("it serializes").as_str().to_owned()
    };
    assert_eq!(key("charge", Some("pay-{}")), "shop/charge!pay-{}/1");
    assert_eq!(key("charge", Some("a/{}!")), "shop/charge!a%2F{}%21/1");
    assert_eq!(key("charge!pay-{}", None), "shop/charge%21pay-{}/1");
}

#[test]
fn long_keys_keep_their_names_and_the_rest_is_a_digest() {
    let long = |text: &str, template: Option<&str>| {
        let mut parts = KeyParts::new();
        parts.part("id", text);
        parts.into_key("shop", &CHARGE, template).expect("it serializes").as_str().to_owned()
    };
    let fits = "x".repeat(255 - "shop/charge/".len());
    assert_eq!(long(&fits, None), format!("shop/charge/{fits}"));
    let over = long(&format!("{fits}x"), None);
    assert!(is_digest(over.strip_prefix("shop/charge/").expect("the names")), "{over}");
    assert_ne!(over, long(&format!("{fits}y"), None));
    assert_ne!(over, long(&format!("{fits}x"), Some("a")));
    assert_eq!(over, long(&format!("{fits}x"), None));
    // 10 KB that triple when escaped.
    assert_eq!(long(&"\0".repeat(10_000), Some("a")).len(), over.len());
}

#[test]
fn names_fit_into_180_bytes_once_escaped() {
    assert!(names_fit(&"n".repeat(80), &"o".repeat(100)));
    assert!(!names_fit(&"n".repeat(81), &"o".repeat(100)));
    assert!(names_fit("", &"/".repeat(60)));
    assert!(!names_fit("n", &"/".repeat(60)));
    let mut parts = KeyParts::new();
    parts.part("id", &"x".repeat(200));
    let key = parts.into_key(&"n".repeat(80), &"o".repeat(100).into(), None).expect("it serializes");
    assert!(key.as_str().len() <= 255);
}

#[test]
fn the_first_error_is_told_with_its_selector() {
    struct Failing(&'static str);
    impl Serialize for Failing {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom(self.0))
        }
    }
    let mut parts = KeyParts::new();
    parts.part("fine", &1);
    parts.part("list", &[Failing("first")]);
    parts.part("scalar", &Failing("second"));
    assert_eq!(parts.missing(), None);
    let error = parts.into_key("shop", &CHARGE, None).expect_err("it does not serialize");
    assert_eq!((error.selector, error.reason.as_str()), ("list", "first"));
}

#[test]
fn debugging_shows_no_part() {
    let mut parts = KeyParts::new();
    parts.part("pin", "0000");
    assert_eq!(format!("{parts:?}"), "KeyParts { count: 1, missing: None, failed: false, .. }");
}

#[test]
fn a_key_is_made_in_few_allocations() {
    let counted = allocation_counter::measure(|| {
        let mut parts = KeyParts::new();
        parts.part("tenant", "acme");
        parts.part("id", &42);
        std::hint::black_box(parts.into_key("shop", &CHARGE, None).expect("it serializes"));
    });
    assert!(counted.count_total <= 2, "{counted:?}");
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Integer(i128),
    Bool(bool),
    Float(u64),
    List(Vec<i8>),
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Integer(integer) => integer.serialize(serializer),
            Self::Bool(bool) => bool.serialize(serializer),
            Self::Float(bits) => f64::from_bits(*bits).serialize(serializer),
            Self::List(list) => list.serialize(serializer),
        }
    }
}

type Call = (String, String, Option<String>, Vec<Part>);

/// Few characters, most of them special, so that a clash would be found.
fn call() -> impl Strategy<Value = Call> {
    let part = prop_oneof![
        "[a1'/~!% -]{0,3}|true|.{0,3}|a{250}[ab]".prop_map(Part::Text),
        prop_oneof![-12..12_i128, any::<i128>()].prop_map(Part::Integer),
        any::<bool>().prop_map(Part::Bool),
        (0..2_u64).prop_map(Part::Float),
        vec(0..2_i8, 0..3).prop_map(Part::List),
    ];
    ("[a/!%]{0,2}", "[a/!%]{0,2}", proptest::option::of("[a/!%]{0,2}"), vec(part, 0..3))
}

fn text((namespace, operation, template, all): &Call) -> String {
    let mut parts = KeyParts::new();
    for part in all {
        parts.part("it", part);
    }
    let key = parts.into_key(namespace, &operation.as_str().into(), template.as_deref());
    key.expect("it serializes").as_str().to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn different_calls_have_different_keys(a in call(), b in call()) {
        prop_assert_eq!(text(&a) == text(&b), a == b);
        prop_assert!(text(&a).len() <= 255);
    }

    #[test]
    fn different_parts_have_different_texts(a in call(), b in call()) {
        let with = |parts: &Call| text(&(String::new(), String::new(), None, parts.3.clone()));
        prop_assert_eq!(with(&a) == with(&b), a.3 == b.3);
    }
}
