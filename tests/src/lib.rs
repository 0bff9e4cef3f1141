//! What the test binaries under `tests/` share.
