//! The documentation names only what is there: tests in `docs/guarantees.md`, files in links.

use std::fs;
use std::path::{Path, PathBuf};

/// Every file under a folder whose name ends so, but for what is built.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            if !name.starts_with("target") && !name.starts_with('.') {
                files(&path, ending, found);
            }
        } else if path.extension().is_some_and(|extension| extension == ending) {
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
    files(&root.join("tests/tests"), "rs", &mut paths);
    files(&root.join("tests/model"), "rs", &mut paths);
    files(&root.join("tests/interleavings"), "rs", &mut paths);
    files(&root.join("idempotent-runtime/src/testing"), "rs", &mut paths);
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

/// Where links lead that have to work on docs.rs and crates.io as well.
const HERE: &str = "https://github.com/idempotent-rs/idempotent/blob/main/";

/// The file that a link in the text of `path` leads to, if it is one of this repository.
fn file_of(link: &str, path: &Path, root: &Path) -> Option<PathBuf> {
    let link = link.split('#').next().unwrap();
    match link.strip_prefix(HERE) {
        Some(file) => Some(root.join(file)),
        // The rest is outside, a place on the same page, or a name for rustdoc.
        None if link.is_empty() || link.contains(':') || !link.contains(['.', '/']) => None,
        None => Some(path.parent().unwrap().join(link)),
    }
}

/// All that stands between `](` and `)`, and what begins with [`HERE`] anywhere.
fn links(text: &str) -> Vec<String> {
    let ends = |c: char| c.is_whitespace() || ")>\"`".contains(c);
    let mut found: Vec<String> =
        text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned).collect();
    found.extend(text.split(HERE).skip(1).map(|rest| HERE.to_owned() + rest.split(ends).next().unwrap()));
    found
}

#[test]
fn every_link_to_a_file_leads_to_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut paths = Vec::new();
    files(root, "md", &mut paths);
    files(&root.join("idempotent-runtime/src"), "rs", &mut paths);
    let (mut dead, mut followed) = (Vec::new(), 0);
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        // In code `](` is none.
        let only_absolute = path.extension().is_some_and(|extension| extension == "rs");
        for link in links(&text).into_iter().filter(|link| !only_absolute || link.starts_with(HERE)) {
            let Some(file) = file_of(&link, &path, root) else { continue };
            followed += 1;
            if !file.exists() {
                dead.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(followed > 20, "{followed}");
    assert!(dead.is_empty(), "{dead:#?}");
}

/// The README is the first page on docs.rs and on crates.io too, where a path of this repository leads nowhere; on GitHub
/// nothing hides a line.
#[test]
fn the_readme_is_whole_wherever_it_is_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let path = root.join("README.md");
    let text = fs::read_to_string(&path).unwrap();
    let relative: Vec<_> = links(&text)
        .into_iter()
        .filter(|link| !link.starts_with("https:") && file_of(link, &path, root).is_some())
        .collect();
    assert!(relative.is_empty(), "{relative:#?}");
    // Nor, in code, what only rustdoc hides.
    let code = text.split("```").skip(1).step_by(2).filter(|block| block.starts_with("rust"));
    let hidden: Vec<_> =
        code.flat_map(str::lines).filter(|line| *line == "#" || line.starts_with("# ")).collect();
    assert!(hidden.is_empty(), "{hidden:#?}");
}
