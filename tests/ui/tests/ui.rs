//! What is refused, and with which words: a program for each rule, and the messages beside it.
//!
//! The messages are those of one compiler, [`COMPILER`]; with another one only the accepted shapes are compiled, and the
//! test says so. Where the messages changed on purpose, set `TRYBUILD=overwrite`, run this, and read the difference.

use std::collections::BTreeSet;
use std::process::Command;

/// The compiler whose words are in the `.stderr` files. To move on: change this, and write them anew.
const COMPILER: &str = "rustc 1.95.0 ";

#[test]
fn refused() -> std::io::Result<()> {
    for program in std::fs::read_dir("fail")? {
        // Without its messages a program would be accepted with any.
        let program = program?.path();
        let words = program.with_extension("stderr");
        assert!(words.exists() || std::env::var_os("TRYBUILD").is_some(), "{} is missing", words.display());
    }
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version =
        String::from_utf8_lossy(&Command::new(rustc).arg("--version").output()?.stdout).into_owned();
    if !version.starts_with(COMPILER) {
        println!("not compared: the messages are those of {COMPILER}and this is {version}");
        return Ok(());
    }
    trybuild::TestCases::new().compile_fail("fail/*.rs");
    Ok(())
}

/// The table of messages in the attribute's documentation names every one that is ours.
#[test]
fn every_message_is_explained() -> std::io::Result<()> {
    let page = std::fs::read_to_string("../../idempotent-runtime/src/docs/attribute.md")?;
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `` ")?.split_once(" `` |"))
        .map(|(message, _)| message.trim().split('…').collect())
        .collect();
    assert!(rows.len() > 30, "the table is gone");
    let mut unexplained = BTreeSet::new();
    let mut unseen: BTreeSet<_> = rows.iter().collect();
    for file in std::fs::read_dir("fail")? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "stderr") {
            let text = std::fs::read_to_string(path)?;
            let messages = text.lines().filter_map(|line| {
                let ours = line.strip_prefix("error: ").filter(|message| !is_the_compilers(message));
                ours.or_else(|| line.strip_prefix("error[E0277]: ").filter(|message| is_ours(message)))
            });
            for message in messages {
                unseen.retain(|row| !fits(message, row));
                if !rows.iter().any(|row| fits(message, row)) {
                    unexplained.insert(message.to_owned());
                }
            }
        }
    }
    assert!(unexplained.is_empty(), "not in the table: {unexplained:#?}");
    assert!(unseen.is_empty(), "no program is refused with these words: {unseen:#?}");
    Ok(())
}

/// Whether the parts stand in the message in their order, the first one at its beginning.
fn fits(message: &str, parts: &[&str]) -> bool {
    let Some((first, others)) = parts.split_first() else { return false };
    let Some(mut rest) = message.strip_prefix(first) else { return false };
    for part in others {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    true
}

/// What `error:` may say without a number, and is the compiler's own.
fn is_the_compilers(message: &str) -> bool {
    [
        "variable does not need to be mutable",
        "use of deprecated",
        "unused ",
        "unreachable ",
        "documentation comments cannot",
        "implementation of `Deserialize` is not general enough",
        "future cannot be sent between threads safely",
        "trivial numeric cast",
        "aborting due to",
    ]
    .iter()
    .any(|own| message.starts_with(own))
}

/// What our traits say when they are not implemented.
fn is_ours(message: &str) -> bool {
    [
        "#[idempotent]",
        "fingerprinted",
        "part of a key",
        "replay",
        "`on_error`",
        "`reconcile`",
        "`store`",
        "stored",
        "refused",
    ]
    .iter()
    .any(|word| message.contains(word))
}

/// A file that `pass/mod.rs` does not name would not be compiled, and nobody would see it.
#[test]
fn every_accepted_shape_is_compiled() -> std::io::Result<()> {
    let listed = std::fs::read_to_string("pass/mod.rs")?;
    for file in std::fs::read_dir("pass")? {
        let name = file?.file_name().to_string_lossy().trim_end_matches(".rs").to_owned();
        assert!(name == "mod" || listed.contains(&format!("pub mod {name};")), "pass/mod.rs lacks {name}");
    }
    Ok(())
}
