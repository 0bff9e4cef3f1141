//! What makes two calls' arguments the same, and what does not.

#![expect(clippy::items_after_statements, reason = "types stand beside their one use")]

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use idempotent_runtime::fingerprint::{Fingerprint, Fingerprinter, Skip};
use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

mod laws;
mod shapes;
mod skipping;
mod vectors;

fn without<T: Serialize + ?Sized>(value: &T, skip: Skip) -> Fingerprint {
    let mut arguments = Fingerprinter::new();
    arguments.argument_without("value", value, skip);
    arguments.finish().expect("it serializes")
}

fn of<T: Serialize + ?Sized>(value: &T) -> Fingerprint {
    without(value, &[])
}

fn reason<T: Serialize + ?Sized>(value: &T) -> String {
    let mut arguments = Fingerprinter::new();
    arguments.argument("fine", &1);
    arguments.argument("order", value);
    arguments.argument("later", &2);
    let error = arguments.finish().expect_err("it does not serialize");
    assert_eq!(error.argument, "order");
    error.reason
}

#[derive(Serialize)]
struct Newtype<T>(T);

#[derive(Serialize)]
struct Pair(u8, &'static str);

#[derive(Serialize)]
struct Unit;

#[derive(Serialize)]
enum Shape {
    Empty,
    One(Option<u8>),
    Two(u8, u8),
    Named { x: u8, y: Option<u8> },
}

/// A number as `serde_json` writes it with its feature `arbitrary_precision`.
#[derive(Serialize)]
#[serde(rename = "$serde_json::private::Number")]
struct Number {
    #[serde(rename = "$serde_json::private::Number")]
    text: &'static str,
}

const fn number(text: &'static str) -> Number {
    Number { text }
}

#[test]
fn integers_are_their_value_whatever_their_width() {
    let five = of(&5_u8);
    for same in [of(&5_i8), of(&5_u16), of(&5_i64), of(&5_usize), of(&5_u128), of(&5_i128)] {
        assert_eq!(same, five);
    }
    assert_eq!(of(&-300_i16), of(&-300_i128));
    assert_eq!(of(&i64::MIN), of(&i128::from(i64::MIN)));
    assert_eq!(of(&u64::MAX), of(&u128::from(u64::MAX)));
    assert_ne!(of(&u128::MAX), of(&(u128::MAX - 1)));
    assert_ne!(of(&-1), of(&0));
    assert_ne!(of(&-1), of(&u64::MAX));
    assert_ne!(of(&(1_u64 << 53)), of(&((1_u64 << 53) + 1)));
}

#[test]
fn floats_are_their_bits_and_never_integers() {
    assert_eq!(of(&1.5_f32), of(&1.5_f64));
    assert_ne!(of(&1.0), of(&1));
    assert_ne!(of(&0.0), of(&-0.0));
    assert_eq!(of(&f64::NAN), of(&-f64::NAN));
    assert_eq!(of(&f64::from_bits(f64::NAN.to_bits() | 1)), of(&f32::NAN));
    assert_ne!(of(&f64::INFINITY), of(&f64::NEG_INFINITY));
}

#[test]
fn types_do_not_meet() {
    let all = [
        of(&1),
        of(&1.0),
        of("1"),
        of(&true),
        of("true"),
        of(&false),
        of(&()),
        of(&None::<u8>),
        of(""),
        of(&[0_u8; 0]),
        of(&json!({})),
        of(&Shape::Empty),
        of("Empty"),
        of(&[1]),
        of(&[[1]]),
        of(&[1, 1]),
        of(&Some(None::<u8>)),
        of(&Some(Some(None::<u8>))),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(!all[..at].contains(one), "number {at} is like an earlier one");
    }
}

#[test]
fn wrappers_are_what_they_wrap() {
    assert_eq!(of(&Some(7)), of(&7));
    assert_eq!(of(&Some(Some(7))), of(&7));
    assert_eq!(of(&Newtype("a")), of("a"));
    assert_eq!(of(&'a'), of("a"));
    assert_eq!(of(&Unit), of(&()));
    assert_eq!(of(&Pair(1, "a")), of(&(1, "a")));
    assert_eq!(of(&vec![1, 2]), of(&(1, 2)));
    assert_eq!(of(&Newtype(Some(None::<u8>))), of(&Some(Newtype(None::<u8>))));
}

#[test]
fn a_field_that_is_none_is_not_there() {
    #[derive(Serialize)]
    struct Old {
        a: u8,
    }
    #[derive(Serialize)]
    struct New<T> {
        coupon: Option<T>,
        a: Option<u8>,
    }
    let new = |coupon| of(&New { coupon, a: Some(1) });
    assert_eq!(new(None), of(&Old { a: 1 }));
    assert_ne!(new(Some(Some(1))), of(&Old { a: 1 }));
    assert_ne!(new(Some(None)), of(&Old { a: 1 }));
    // A map says null on purpose, and every field of a tuple has its place.
    assert_ne!(of(&json!({"a": 1, "b": null})), of(&json!({"a": 1})));
    assert_ne!(of(&(1, None::<u8>)), of(&(1,)));
}

#[test]
fn variants_are_their_names() {
    #[derive(Serialize)]
    enum Reordered {
        #[serde(rename = "Two")]
        Both(u8, u8),
        Empty,
    }
    assert_eq!(of(&Shape::Empty), of(&Reordered::Empty));
    assert_eq!(of(&Shape::Two(1, 2)), of(&Reordered::Both(1, 2)));
    assert_ne!(of(&Shape::One(None)), of(&Shape::One(Some(0))));
    assert_eq!(of(&Shape::Named { x: 1, y: None }), of(&Shape::Named { x: 1, y: None }));
    assert_ne!(of(&Shape::Named { x: 1, y: None }), of(&Shape::Named { x: 1, y: Some(1) }));
}

#[test]
fn arguments_are_told_apart_by_name_and_order() {
    let of = |arguments: &[(&str, u8)]| {
        let mut all = Fingerprinter::new();
        for (name, value) in arguments {
            all.argument(name, value);
        }
        all.finish().expect("they serialize")
    };
    assert_ne!(of(&[("a", 1)]), of(&[("b", 1)]));
    assert_ne!(of(&[("a", 1), ("b", 2)]), of(&[("b", 2), ("a", 1)]));
    assert_ne!(of(&[("a", 1)]), of(&[]));
}

#[test]
fn maps_have_no_order_at_any_depth() {
    let entries: Vec<(String, BTreeMap<u8, u8>)> =
        (0..50_u8).map(|i| (format!("key-{i}"), (0..i).map(|j| (j, i)).collect())).collect();
    let sorted: BTreeMap<_, _> = entries.iter().cloned().collect();
    for _ in 0..5 {
        // Each has hash seeds of its own.
        let hashed: HashMap<_, HashMap<_, _>> =
            entries.iter().rev().map(|(key, inner)| (key, inner.iter().rev().collect())).collect();
        assert_eq!(of(&hashed), of(&sorted));
    }
}

#[test]
fn maps_with_keys_that_look_alike_have_no_order_either() {
    // Behind the head of the key, these entries begin with the same bytes.
    let a = (Value::from("a"), 1);
    let b = (Value::from(97), 1);
    let c = (json!(["a"]), 1);
    struct Entries<'a>(Vec<&'a (Value, i32)>);
    impl Serialize for Entries<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
        }
    }
    let first = of(&Entries(vec![&a, &b, &c]));
    for order in [[&a, &c, &b], [&b, &a, &c], [&b, &c, &a], [&c, &a, &b], [&c, &b, &a]] {
        assert_eq!(of(&Entries(order.to_vec())), first);
    }
}

#[test]
fn json_numbers_are_the_same_with_arbitrary_precision() {
    for text in
        ["0", "7", "-7", "18446744073709551615", "-9223372036854775808", "1.5", "1.10", "-0", "-0.0", "1e2"]
            .into_iter()
            .chain([
                "0.1",
                "1e308",
                "5e-324",
                "1E+2",
                "100000000000000000000",
                "0.30000000000000004",
                "1e-7",
                "0.0",
            ])
    {
        let plain: Value = serde_json::from_str(text).expect("a number");
        assert_eq!(of(&number(text)), of(&plain), "{text}");
    }
    assert_eq!(of(&number("340282366920938463463374607431768211455")), of(&u128::MAX));
    assert_eq!(of(&number("-170141183460469231731687303715884105728")), of(&i128::MIN));
}

#[test]
fn json_numbers_are_exact_beyond_floats() {
    let all = [
        "18446744073709551617",
        "18446744073709551618",
        "340282366920938463463374607431768211456",
        "340282366920938463463374607431768211457",
        "-340282366920938463463374607431768211457",
        "340282366920938463463374607431768211457.0",
        "0.1000000000000000055511151231257827",
        "0.1000000000000000055511151231257828",
        "0.1",
        "1e400",
        "1e401",
        "1e-400",
        "0.0",
        "1e99999999999999999999",
        "1e99999999999999999998",
    ];
    for (at, one) in all.into_iter().enumerate() {
        for other in &all[..at] {
            assert_ne!(of(&number(one)), of(&number(other)), "{one} {other}");
        }
    }
    assert_eq!(of(&number("12345678901234567890.5")), of(&number("1.234567890123456789050e+19")));
}

#[test]
fn text_that_only_displays_is_the_same_text() {
    struct Displayed<'a>(&'a str);
    impl Serialize for Displayed<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let (half, rest) = self.0.split_at(self.0.len() / 2);
            serializer.collect_str(&format_args!("{half}{rest}"))
        }
    }
    for len in [0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 5000] {
        let text = "x".repeat(len);
        assert_eq!(of(&Displayed(&text)), of(&text), "{len}");
    }
}

#[test]
fn an_error_names_its_argument_and_stays() {
    struct Failing;
    impl Serialize for Failing {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("no"))
        }
    }
    assert_eq!(reason(&Failing), "no");
    assert_eq!(reason(&vec![HashMap::from([("a", Some(Failing))])]), "no");

    struct Ignoring;
    impl Serialize for Ignoring {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            let _ = map.serialize_entry("a", &[Failing]);
            map.end()
        }
    }
    assert_eq!(reason(&Ignoring), "an error inside was ignored");

    struct Changing(std::cell::Cell<usize>);
    impl fmt::Display for Changing {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.set(self.0.get() + 1);
            f.write_str(&"x".repeat(200 + self.0.get()))
        }
    }
    impl Serialize for Changing {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }
    assert_eq!(
        reason(&Changing(std::cell::Cell::default())),
        "it displays as one text at first, and as another afterwards"
    );
}

#[test]
fn what_is_nested_without_end_is_refused() {
    struct Endless;
    impl Serialize for Endless {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut seq = serializer.serialize_seq(None)?;
            seq.serialize_element(&Some(Newtype(HashMap::from([(1, Endless)]))))?;
            seq.end()
        }
    }
    assert_eq!(reason(&Endless), "nested deeper than 128 levels");

    let nested = |levels: usize| (0..levels).fold(Value::Null, |inner, _| json!([inner]));
    of(&nested(128));
    assert_eq!(reason(&nested(129)), "nested deeper than 128 levels");
}

#[test]
fn without_maps_nothing_is_allocated() {
    #[derive(Serialize)]
    struct Everything {
        id: u64,
        #[serde(rename = "long name with more than sixty-three characters, for the other head")]
        text: String,
        addresses: Vec<std::net::Ipv6Addr>,
        shapes: [Shape; 3],
        nothing: Option<u8>,
        letter: char,
        float: f64,
        big: (u128, i128),
    }
    let everything = Everything {
        id: 1,
        text: "x".repeat(5000),
        addresses: vec!["::1".parse().expect("an address"); 40],
        shapes: [Shape::One(None), Shape::Two(1, 2), Shape::Named { x: 1, y: Some(2) }],
        nothing: None,
        letter: 'ä',
        float: 0.1,
        big: (u128::MAX, i128::MIN),
    };
    static MANY: [&[&str]; 100] = [&["addresses", "nowhere"]; 100];
    let counted = allocation_counter::measure(|| {
        let mut arguments = Fingerprinter::new();
        arguments.argument_without("everything", &everything, &MANY);
        arguments.argument("number", &number("1234567890.12345678901234567890"));
        std::hint::black_box(arguments.finish().expect("it serializes"));
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn maps_take_no_more_memory_than_the_largest() {
    let large: HashMap<u32, String> = (0..1000).map(|i| (i, "x".repeat(100))).collect();
    let peak = |maps: usize| {
        let maps = vec![&large; maps];
        i64::try_from(
            allocation_counter::measure(|| {
                std::hint::black_box(of(&maps));
            })
            .bytes_max,
        )
        .expect("small")
    };
    assert_eq!(peak(1), peak(20));
}

#[test]
fn a_secret_changes_the_digest_and_keeps_the_version() {
    let plain = of("0000");
    let keyed = plain.keyed(b"secret");
    assert_eq!(keyed, plain.keyed(b"secret"));
    assert_ne!(keyed, plain);
    assert_ne!(keyed, plain.keyed(b"other"));
    assert_ne!(keyed, of("0001").keyed(b"secret"));
    assert_ne!(Fingerprint::from_parts(2, *plain.digest()).keyed(b"secret").digest(), keyed.digest());
    assert_eq!(keyed.version(), Fingerprint::VERSION);
}

#[test]
fn debugging_shows_no_argument() {
    let mut arguments = Fingerprinter::new();
    arguments.argument("pin", "0000");
    assert_eq!(format!("{arguments:?}"), "Fingerprinter { failed: false, .. }");
}
