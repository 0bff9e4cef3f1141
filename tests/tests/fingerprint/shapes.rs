//! Laws, tried on random values of every kind that serde knows.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde::ser::{
    Serialize, SerializeMap, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
    SerializeTupleVariant, Serializer,
};

use super::of;

type Fields = Vec<(&'static str, Shape)>;

/// A value as serde is told of it.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    None,
    Some(Box<Shape>),
    Unit,
    UnitStruct,
    Bool(bool),
    /// An integer, and the width to begin with when looking for one that it fits.
    Integer(i128, u8),
    F32(u32),
    F64(u64),
    Char(char),
    Text(String),
    Bytes(Vec<u8>),
    Newtype(Box<Shape>),
    List(Vec<Shape>),
    Tuple(Vec<Shape>),
    TupleStruct(Vec<Shape>),
    Struct(Fields),
    Map(Vec<(String, Shape)>),
    UnitVariant(&'static str),
    NewtypeVariant(&'static str, Box<Shape>),
    TupleVariant(&'static str, Vec<Shape>),
    StructVariant(&'static str, Fields),
}

fn integer<S: Serializer>(integer: i128, width: u8, serializer: S) -> Result<S::Ok, S::Error> {
    macro_rules! narrowest {
        ($($at:literal $method:ident),*) => {$(
            if width <= $at && let Ok(narrow) = integer.try_into() {
                return serializer.$method(narrow);
            }
        )*};
    }
    narrowest!(0 serialize_u8, 1 serialize_i8, 2 serialize_u16, 3 serialize_i16, 4 serialize_u32, 5 serialize_i32);
    narrowest!(6 serialize_u64, 7 serialize_i64, 8 serialize_u128);
    serializer.serialize_i128(integer)
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_none(),
            Self::Some(inner) => serializer.serialize_some(inner),
            Self::Unit => serializer.serialize_unit(),
            Self::UnitStruct => serializer.serialize_unit_struct("U"),
            Self::Bool(bool) => serializer.serialize_bool(*bool),
            Self::Integer(value, width) => integer(*value, *width, serializer),
            Self::F32(bits) => serializer.serialize_f32(f32::from_bits(*bits)),
            Self::F64(bits) => serializer.serialize_f64(f64::from_bits(*bits)),
            Self::Char(char) => serializer.serialize_char(*char),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => serializer.serialize_bytes(bytes),
            Self::Newtype(inner) => serializer.serialize_newtype_struct("N", inner),
            Self::List(items) => serializer.collect_seq(items),
            Self::Tuple(items) => {
                let mut tuple = serializer.serialize_tuple(items.len())?;
                items.iter().try_for_each(|item| tuple.serialize_element(item))?;
                tuple.end()
            }
            Self::TupleStruct(items) => {
                let mut tuple = serializer.serialize_tuple_struct("T", items.len())?;
                items.iter().try_for_each(|item| tuple.serialize_field(item))?;
                tuple.end()
            }
            Self::Struct(fields) => {
                let mut fielded = serializer.serialize_struct("S", fields.len())?;
                fields.iter().try_for_each(|(name, field)| fielded.serialize_field(name, field))?;
                fielded.end()
            }
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(None)?;
                entries.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
            Self::UnitVariant(name) => serializer.serialize_unit_variant("E", 0, name),
            Self::NewtypeVariant(name, inner) => serializer.serialize_newtype_variant("E", 1, name, inner),
            Self::TupleVariant(name, items) => {
                let mut tuple = serializer.serialize_tuple_variant("E", 2, name, items.len())?;
                items.iter().try_for_each(|item| tuple.serialize_field(item))?;
                tuple.end()
            }
            Self::StructVariant(name, fields) => {
                let mut fielded = serializer.serialize_struct_variant("E", 3, name, fields.len())?;
                fields.iter().try_for_each(|(name, field)| fielded.serialize_field(name, field))?;
                fielded.end()
            }
        }
    }
}

fn all(items: &[Shape]) -> Vec<Shape> {
    items.iter().map(Shape::normal).collect()
}

fn present(fields: &Fields) -> Fields {
    let fields = fields.iter().map(|(name, field)| (*name, field.normal()));
    fields.filter(|(_, field)| *field != Shape::None).collect()
}

impl Shape {
    /// The form in which values are equal that the documentation calls equal.
    fn normal(&self) -> Self {
        match self {
            Self::Some(inner) => match inner.normal() {
                inner @ (Self::None | Self::Some(_)) => Self::Some(Box::new(inner)),
                inner => inner,
            },
            Self::UnitStruct => Self::Unit,
            Self::Integer(value, _) => Self::Integer(*value, 0),
            Self::F32(bits) => Self::F64(f64::from(f32::from_bits(*bits)).to_bits()).normal(),
            Self::F64(bits) if f64::from_bits(*bits).is_nan() => Self::F64(f64::NAN.to_bits()),
            Self::Char(char) => Self::Text(char.to_string()),
            Self::Newtype(inner) => inner.normal(),
            Self::List(items) | Self::Tuple(items) | Self::TupleStruct(items) => Self::List(all(items)),
            Self::Struct(fields) => Self::Struct(present(fields)),
            Self::Map(entries) => {
                let mut entries: Vec<_> =
                    entries.iter().map(|(key, value)| (key.clone(), value.normal())).collect();
                entries.sort_by(|a, b| a.0.cmp(&b.0));
                Self::Map(entries)
            }
            Self::NewtypeVariant(name, inner) => Self::NewtypeVariant(name, Box::new(inner.normal())),
            Self::TupleVariant(name, items) => Self::TupleVariant(name, all(items)),
            Self::StructVariant(name, fields) => Self::StructVariant(name, present(fields)),
            other => other.clone(),
        }
    }
}

fn name() -> impl Strategy<Value = &'static str> {
    select(&["a", "b"][..])
}

/// Few and small values of many kinds, so that nearly equal ones come up often.
fn shape() -> impl Strategy<Value = Shape> {
    let scalar = prop_oneof![
        Just(Shape::None),
        Just(Shape::Unit),
        Just(Shape::UnitStruct),
        any::<bool>().prop_map(Shape::Bool),
        (prop_oneof![-2..3_i128, any::<i64>().prop_map(i128::from), any::<i128>()], 0..10_u8)
            .prop_map(|(value, width)| Shape::Integer(value, width)),
        prop_oneof![Just(0), Just(f32::NAN.to_bits()), any::<u32>()].prop_map(Shape::F32),
        prop_oneof![Just(0), Just(f64::NAN.to_bits()), any::<u64>()].prop_map(Shape::F64),
        select(&['a', 'b', 'é'][..]).prop_map(Shape::Char),
        "[ab]{0,2}".prop_map(Shape::Text),
        vec(0..3_u8, 0..3).prop_map(Shape::Bytes),
        name().prop_map(Shape::UnitVariant),
    ];
    scalar.prop_recursive(3, 16, 3, |inner| {
        let fields = || vec((name(), inner.clone()), 0..2);
        let items = || vec(inner.clone(), 0..3);
        prop_oneof![
            inner.clone().prop_map(|inner| Shape::Some(Box::new(inner))),
            inner.clone().prop_map(|inner| Shape::Newtype(Box::new(inner))),
            items().prop_map(Shape::List),
            items().prop_map(Shape::Tuple),
            items().prop_map(Shape::TupleStruct),
            fields().prop_map(Shape::Struct),
            btree_map("[ab]{0,2}", inner.clone(), 0..3)
                .prop_map(|entries| Shape::Map(entries.into_iter().collect())),
            (name(), inner.clone()).prop_map(|(name, inner)| Shape::NewtypeVariant(name, Box::new(inner))),
            (name(), items()).prop_map(|(name, items)| Shape::TupleVariant(name, items)),
            (name(), fields()).prop_map(|(name, fields)| Shape::StructVariant(name, fields)),
        ]
    })
}

#[derive(Clone, Debug, PartialEq, serde::Serialize)]
struct Plain {
    a: Option<u8>,
    b: u8,
    c: Option<String>,
}

/// The same, told to leave out what is `None`.
#[derive(serde::Serialize)]
struct Sparse {
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<u8>,
    b: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    c: Option<String>,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize)]
struct Flat {
    id: u8,
    #[serde(flatten)]
    plain: Plain,
    #[serde(flatten)]
    more: BTreeMap<String, i64>,
}

fn plain() -> impl Strategy<Value = Plain> {
    let (a, c) = (proptest::option::of(0..2_u8), proptest::option::of("[x]{0,1}"));
    (a, 0..2_u8, c).prop_map(|(a, b, c)| Plain { a, b, c })
}

fn flat() -> impl Strategy<Value = Flat> {
    let more = btree_map("[yz]", -1..1_i64, 0..3);
    (0..2_u8, plain(), more).prop_map(|(id, plain, more)| Flat { id, plain, more })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn values_of_all_kinds_are_the_same_when_the_documentation_says_so(a in shape(), b in shape()) {
        prop_assert_eq!(of(&a) == of(&b), a.normal() == b.normal());
        prop_assert_eq!(of(&a), of(&a.normal()));
    }

    #[test]
    fn what_stands_around_a_value_never_swallows_a_difference(a in shape(), b in shape(), around in shape()) {
        let inside = |inner: &Shape| Shape::List(vec![inner.clone(), around.clone(), inner.clone()]);
        prop_assert_eq!(of(&inside(&a)) == of(&inside(&b)), a.normal() == b.normal());
    }

    #[test]
    fn leaving_out_what_is_none_changes_nothing(a in plain(), b in plain()) {
        let sparse = Sparse { a: a.a, b: a.b, c: a.c.clone() };
        prop_assert_eq!(of(&sparse), of(&a));
        prop_assert_eq!(of(&a) == of(&b), a == b);
    }

    #[test]
    fn flattened_fields_are_entries_of_a_map_in_any_order(a in flat(), b in flat()) {
        prop_assert_eq!(of(&a) == of(&b), a == b);
        let mut entries = vec![
            ("c".to_owned(), a.plain.c.clone().map_or(Shape::None, Shape::Text)),
            ("b".to_owned(), Shape::Integer(a.plain.b.into(), 0)),
            ("a".to_owned(), a.plain.a.map_or(Shape::None, |a| Shape::Integer(a.into(), 0))),
        ];
        entries.extend(a.more.iter().map(|(key, value)| (key.clone(), Shape::Integer((*value).into(), 9))));
        entries.push(("id".to_owned(), Shape::Integer(a.id.into(), 3)));
        prop_assert_eq!(of(&Shape::Map(entries)), of(&a));
    }
}
