//! `docs/guarantees.md` names only tests that are there.

use std::fs;
use std::path::{Path, PathBuf};

/// Every Rust file under a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Whether one of the files is of the module that a name begins with, and has the function that it ends with.
fn is_there(name: &str, files: &[(String, String)]) -> bool {
    let mut modules: Vec<&str> = name.split("::").collect();
    let function = format!("fn {}(", modules.pop().unwrap());
    files.iter().any(|(path, text)| {
        // The parts of the path, in which the modules come in their order.
        let mut parts = path.split('/');
        modules.iter().all(|module| parts.any(|part| part == *module)) && text.contains(&function)
    })
}

#[test]
fn every_test_that_the_guarantees_name_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut paths = Vec::new();
    files(&root.join("tests/tests"), &mut paths);
    files(&root.join("tests/model"), &mut paths);
    files(&root.join("tests/interleavings"), &mut paths);
    files(&root.join("idempotent-runtime/src/testing"), &mut paths);
    let read = |path: PathBuf| {
        let name = path.with_extension("").display().to_string();
        (name.replace('\\', "/"), fs::read_to_string(path).unwrap())
    };
    let files: Vec<_> = paths.into_iter().map(read).collect();
    let guarantees = fs::read_to_string(root.join("docs/guarantees.md")).unwrap();
    let quoted = guarantees.split('`').skip(1).step_by(2);
    let is_name = |text: &&str| {
        text.contains("::")
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c))
    };
    let names: Vec<&str> = quoted.filter(is_name).collect();
    assert!(names.len() > 100, "{}", names.len());
    let missing: Vec<_> = names.into_iter().filter(|name| !is_there(name, &files)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(!is_there("faults::no_such_test", &files));
}
