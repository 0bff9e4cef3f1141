//! What is left out, and how paths get there.

use serde::Serialize;
use serde_json::json;

use super::{Newtype, Skip, of, without};

#[derive(Serialize)]
struct Order {
    id: u8,
    #[serde(rename = "requested-at")]
    requested_at: u8,
    lines: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    sku: &'static str,
    seen: u8,
}

fn order(requested_at: u8, seen: u8) -> Order {
    Order { id: 1, requested_at, lines: vec![Line { sku: "a", seen }, Line { sku: "b", seen }] }
}

#[test]
fn names_are_the_serialized_ones() {
    let skip: Skip = &[&["requested-at"]];
    assert_eq!(without(&order(1, 1), skip), without(&order(2, 1), skip));
    assert_ne!(without(&order(1, 1), skip), without(&order(1, 2), skip));
    assert_ne!(without(&order(1, 1), &[&["requested_at"]]), without(&order(2, 1), &[&["requested_at"]]));
}

#[test]
fn paths_go_through_sequences_options_and_newtypes() {
    let wrapped = |seen| Some(Newtype(Some((order(1, seen), 5))));
    let skip: Skip = &[&["lines", "seen"]];
    assert_eq!(without(&wrapped(1), skip), without(&wrapped(2), skip));
    assert_ne!(of(&wrapped(1)), of(&wrapped(2)));
}

#[test]
fn paths_go_through_enum_content() {
    #[derive(Serialize)]
    enum Payment {
        Card(Line),
        Many(Line, Line),
        Cash { seen: u8, place: Line },
    }
    let line = |seen| Line { sku: "a", seen };
    let skip: Skip = &[&["seen"], &["place", "seen"]];
    let card = |seen| without(&Payment::Card(line(seen)), skip);
    let many = |seen| without(&Payment::Many(line(seen), line(seen)), skip);
    let cash = |seen| without(&Payment::Cash { seen, place: line(seen) }, skip);
    assert_eq!((card(1), many(1), cash(1)), (card(2), many(2), cash(2)));
}

#[test]
fn paths_go_through_flattened_fields_and_maps() {
    #[derive(Serialize)]
    struct Flat {
        id: u8,
        #[serde(flatten)]
        line: Line,
    }
    let flat = |seen| without(&Flat { id: 1, line: Line { sku: "a", seen } }, &[&["seen"]]);
    assert_eq!(flat(1), flat(2));

    let long = "a key of more than sixty-three bytes, so that its length stands in a byte of its own";
    let value = json!({"a": {"b": 1, "c": 2}, "list": [{"b": 1}, {"b": 2}], long: 1});
    let left = json!({"a": {"c": 2}, "list": [{}, {}]});
    let skip: Skip = &[
        &["a", "b"],
        &["list", "b"],
        &["a key of more than sixty-three bytes, so that its length stands in a byte of its own"],
    ];
    assert_eq!(without(&value, skip), of(&left));
}

#[test]
fn keys_that_are_variants_have_names_and_numbers_have_none() {
    #[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
    enum Side {
        Left,
        Right,
    }
    use std::collections::BTreeMap;
    let both = BTreeMap::from([(Side::Left, 1), (Side::Right, 2)]);
    assert_eq!(without(&both, &[&["Right"]]), of(&BTreeMap::from([(Side::Left, 1)])));
    let numbers = BTreeMap::from([(1, 1)]);
    assert_eq!(without(&numbers, &[&["1"]]), of(&numbers));
}

#[test]
fn a_path_to_nowhere_or_above_a_name_does_nothing() {
    let whole = of(&order(1, 1));
    let nowhere: [Skip; 3] = [&[&["seen"]], &[&["lines", "sku", "x"]], &[&["x", "lines"]]];
    for skip in nowhere {
        assert_eq!(without(&order(1, 1), skip), whole);
    }
    assert_ne!(without(&order(1, 1), &[&["lines"]]), whole);
}

#[test]
fn there_may_be_hundreds_of_paths() {
    static SKIP: [&[&str]; 301] = {
        let mut paths: [&[&str]; 301] = [&["lines", "x"]; 301];
        paths[150] = &["requested-at"];
        paths[300] = &["lines", "seen"];
        paths
    };
    assert_eq!(without(&order(1, 1), &SKIP), without(&order(2, 2), &SKIP));
    assert_ne!(without(&order(1, 1), &SKIP[..300]), without(&order(2, 2), &SKIP[..300]));
}

#[test]
fn an_empty_path_leaves_out_the_argument() {
    let mut none = super::Fingerprinter::new();
    none.argument("other", &None::<u8>);
    assert_eq!(without(&1, &[&[]]), none.finish().expect("it serializes"));
}
