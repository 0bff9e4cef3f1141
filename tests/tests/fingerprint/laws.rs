//! Laws, tried on random values.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::{of, without};

/// A JSON value with the entries of its maps in the order in which they stand.
#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Null,
    Unit,
    Bool(bool),
    Integer(i128),
    Float(u64),
    Text(String),
    Bytes(Vec<u8>),
    Some(Box<Tree>),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Unit => serializer.serialize_unit(),
            Self::Bool(bool) => serializer.serialize_bool(*bool),
            Self::Integer(integer) => serializer.serialize_i128(*integer),
            Self::Float(bits) => serializer.serialize_f64(f64::from_bits(*bits)),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => serializer.serialize_bytes(bytes),
            Self::Some(inner) => serializer.serialize_some(inner),
            Self::List(list) => serializer.collect_seq(list),
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(None)?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl Tree {
    /// The form in which equal values are equal: maps sorted, `Some` only around `None`.
    fn normal(&self) -> Self {
        match self {
            Self::List(list) => Self::List(list.iter().map(Self::normal).collect()),
            Self::Map(entries) => {
                let mut entries: Vec<_> =
                    entries.iter().map(|(key, value)| (key.clone(), value.normal())).collect();
                entries.sort_by(|a, b| a.0.cmp(&b.0));
                Self::Map(entries)
            }
            Self::Some(inner) => match inner.normal() {
                inner @ (Self::Null | Self::Some(_)) => Self::Some(Box::new(inner)),
                inner => inner,
            },
            Self::Float(bits) if f64::from_bits(*bits).is_nan() => Self::Float(f64::NAN.to_bits()),
            scalar => scalar.clone(),
        }
    }

    /// The same with all maps the other way round.
    fn reversed(&self) -> Self {
        match self {
            Self::List(list) => Self::List(list.iter().map(Self::reversed).collect()),
            Self::Map(entries) => {
                Self::Map(entries.iter().rev().map(|(key, value)| (key.clone(), value.reversed())).collect())
            }
            Self::Some(inner) => Self::Some(Box::new(inner.reversed())),
            scalar => scalar.clone(),
        }
    }
}

/// Few and small values, so that equal and nearly equal ones come up often.
fn tree() -> impl Strategy<Value = Tree> {
    let scalar = prop_oneof![
        Just(Tree::Null),
        Just(Tree::Unit),
        any::<bool>().prop_map(Tree::Bool),
        prop_oneof![-3..3_i128, any::<i128>()].prop_map(Tree::Integer),
        prop_oneof![Just(0.0_f64.to_bits()), any::<u64>()].prop_map(Tree::Float),
        "[ab]{0,3}|.{60,70}".prop_map(Tree::Text),
        vec(0..3_u8, 0..3).prop_map(Tree::Bytes),
    ];
    scalar.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Tree::Some(Box::new(inner))),
            vec(inner.clone(), 0..4).prop_map(Tree::List),
            btree_map("[ab]{0,2}|.{0,3}", inner, 0..4).prop_map(|map| Tree::Map(map.into_iter().collect())),
        ]
    })
}

fn json() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,5}".prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[abc]", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// As `serde_json` serializes with its feature `arbitrary_precision`.
struct Precise<'a>(&'a Value);

impl Serialize for Precise<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        const NUMBER: &str = "$serde_json::private::Number";
        match self.0 {
            Value::Number(number) => {
                let mut fields = serializer.serialize_struct(NUMBER, 1)?;
                fields.serialize_field(NUMBER, &number.to_string())?;
                fields.end()
            }
            Value::Array(list) => serializer.collect_seq(list.iter().map(Precise)),
            Value::Object(map) => {
                serializer.collect_map(map.iter().map(|(key, value)| (key, Precise(value))))
            }
            other => other.serialize(serializer),
        }
    }
}

fn remove(value: &mut Value, path: &[&str]) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|item| remove(item, path)),
        Value::Object(map) => descend(map, path),
        _ => {}
    }
}

fn descend(map: &mut Map<String, Value>, path: &[&str]) {
    match path {
        [last] => drop(map.remove(*last)),
        [name, rest @ ..] => {
            if let Some(value) = map.get_mut(*name) {
                remove(value, rest);
            }
        }
        [] => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn equal_values_and_no_others_have_equal_fingerprints(a in tree(), b in tree()) {
        prop_assert_eq!(of(&a) == of(&b), a.normal() == b.normal());
        prop_assert_eq!(of(&a), of(&a.normal()));
    }

    #[test]
    fn neighbours_do_not_run_into_each_other(a in vec(tree(), 0..4), b in vec(tree(), 0..4)) {
        let normal = |list: &[Tree]| Tree::List(list.to_vec()).normal();
        prop_assert_eq!(of(&a) == of(&b), normal(&a) == normal(&b));
    }

    #[test]
    fn the_order_of_map_entries_does_not_matter(value in tree()) {
        prop_assert_eq!(of(&value), of(&value.reversed()));
    }

    #[test]
    fn the_width_of_an_integer_does_not_matter(integer: i64) {
        let fingerprint = of(&integer);
        prop_assert_eq!(of(&i128::from(integer)), fingerprint);
        if let Ok(narrow) = i32::try_from(integer) { prop_assert_eq!(of(&narrow), fingerprint); }
        if let Ok(natural) = u64::try_from(integer) { prop_assert_eq!(of(&natural), fingerprint); }
        if let Ok(natural) = u128::try_from(integer) { prop_assert_eq!(of(&natural), fingerprint); }
    }

    #[test]
    fn arbitrary_precision_does_not_matter(value in json()) {
        prop_assert_eq!(of(&Precise(&value)), of(&value));
    }

    #[test]
    fn skipping_is_removing(value in json()) {
        let paths: &[&[&str]] = &[&["a"], &["b", "a"], &["b", "c"], &["c", "b", "a"]];
        let mut left = value.clone();
        for path in paths {
            remove(&mut left, path);
        }
        prop_assert_eq!(without(&value, &[&["a"], &["b", "a"], &["b", "c"], &["c", "b", "a"]]), of(&left));
    }
}

/// Two texts of the same float, equally short and equally near: not every program writes the same.
#[test]
fn a_float_between_two_shortest_texts_is_one_number() {
    let value: Value = serde_json::from_str("-251483851687027.62").unwrap();
    let other: Value = serde_json::from_str("-251483851687027.63").unwrap();
    assert_eq!(of(&Precise(&value)), of(&value));
    assert_eq!(of(&value), of(&other));
}
