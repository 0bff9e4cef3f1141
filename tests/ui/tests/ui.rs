//! One program a rule: those in `pass/` compile, those in `fail/` give exactly the messages beside them.
//!
//! The messages are those of one compiler (see `rust-toolchain.toml`). Where they changed on purpose, set
//! `TRYBUILD=overwrite`, run this, and read the difference.

#[test]
fn accepted() {
    trybuild::TestCases::new().pass("pass/*.rs");
}

#[test]
fn refused() {
    trybuild::TestCases::new().compile_fail("fail/*.rs");
}
