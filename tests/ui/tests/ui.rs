//! What is refused, and with which words: a program for each rule, and the messages beside it.
//!
//! The messages are those of one compiler (see `rust-toolchain.toml`). Where they changed on purpose, set
//! `TRYBUILD=overwrite`, run this, and read the difference.

#[test]
fn refused() {
    trybuild::TestCases::new().compile_fail("fail/*.rs");
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
