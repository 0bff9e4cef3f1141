//! Reading the tables of the documentation.

use std::fs;
use std::path::Path;

/// The text of `docs/operations.md`.
pub fn operations() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md")).unwrap()
}

/// The cells of the first table after `heading`, without its head and without the marks of code.
pub fn rows(text: &str, heading: &str) -> Vec<Vec<String>> {
    let heading = format!("{heading}\n");
    let section = text.split_once(&heading).unwrap_or_else(|| panic!("no {heading}")).1;
    let lines =
        section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| {
        line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    };
    let rows: Vec<_> = lines.skip(2).map(cells).collect();
    assert!(rows.len() > 2, "the table under {heading} has {} rows", rows.len());
    rows
}
