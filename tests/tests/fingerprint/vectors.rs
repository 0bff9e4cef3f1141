//! Digests that may never change: records in stores were made with them.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;

use idempotent_runtime::fingerprint::Fingerprinter;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::{Newtype, Pair, Shape, Unit, number, of, without};

#[derive(Deserialize)]
struct Vector {
    description: String,
    /// Names and values, or `None` when JSON can't express them.
    arguments: Option<Vec<(String, Value)>>,
    digest: String,
}

fn published() -> Vec<Vector> {
    serde_json::from_str(include_str!("../../vectors/fingerprint-v1.json")).expect("a list of vectors")
}

#[test]
fn vectors_in_json_hold() {
    for Vector { description, arguments, digest } in published() {
        let Some(arguments) = arguments else { continue };
        let mut all = Fingerprinter::new();
        for (name, value) in &arguments {
            all.argument(name, value);
        }
        assert_eq!(all.finish().expect("it serializes").to_string(), digest, "{description}");
    }
}

#[derive(Serialize)]
struct Order {
    id: u64,
    coupon: Option<&'static str>,
    amount: f64,
    lines: Vec<(char, u8)>,
}

struct Bytes(&'static [u8]);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

#[test]
fn vectors_in_rust_hold() {
    let order = || Order { id: 1, coupon: None, amount: 12.5, lines: vec![('a', 1), ('b', 2)] };
    let computed = BTreeMap::from([
        ("a struct with a field that is None", of(&order())),
        ("a struct without its lines", without(&order(), &[&["lines"]])),
        ("unit variant", of(&Shape::Empty)),
        ("newtype variant of None", of(&Shape::One(None))),
        ("tuple variant", of(&Shape::Two(1, 2))),
        ("struct variant", of(&Shape::Named { x: 1, y: None })),
        ("unit struct", of(&Unit)),
        ("tuple struct", of(&Pair(1, "a"))),
        ("Some of None in a newtype", of(&Newtype(Some(None::<u8>)))),
        ("largest u128", of(&u128::MAX)),
        ("smallest i128", of(&i128::MIN)),
        ("NaN", of(&f64::NAN)),
        ("negative zero", of(&-0.0)),
        ("0.1 as f32", of(&0.1_f32)),
        ("bytes", of(&Bytes(b"\0\x01\xff"))),
        ("text by Display", of(&Ipv4Addr::LOCALHOST)),
        ("map with integers as keys", of(&HashMap::from([(256, "c"), (1, "a"), (-1, "b")]))),
        ("JSON number beyond 128 bits", of(&number("340282366920938463463374607431768211457"))),
        ("JSON number beyond floats", of(&number("-0.1000000000000000055511151231257827"))),
        ("no arguments", Fingerprinter::new().finish().expect("nothing to serialize")),
        ("under the secret `secret`", of(&1).keyed(b"secret")),
    ]);
    let published = published();
    let in_rust = published.iter().filter(|vector| vector.arguments.is_none());
    let in_rust: BTreeMap<_, _> =
        in_rust.map(|vector| (vector.description.as_str(), vector.digest.clone())).collect();
    let computed: BTreeMap<_, _> =
        computed.into_iter().map(|(name, digest)| (name, digest.to_string())).collect();
    assert_eq!(computed, in_rust);
}
