//! What the workspace forbids, and the attribute allows: a crate of its own, with its own lints.

#![deny(warnings, missing_docs, unsafe_op_in_unsafe_fn, unused_unsafe, clippy::all, clippy::pedantic)]

use idempotent_runtime::{Error, idempotent};

/// Reads a number.
///
/// # Safety
/// `at` holds the address of a number that nobody writes to.
///
/// # Errors
/// Those of the library.
#[idempotent(key = "at")]
pub async unsafe fn read(at: usize) -> Result<u32, Error> {
    let at: *const u32 = std::ptr::with_exposed_provenance(at);
    // SAFETY: the caller's promise.
    Ok(unsafe { *at })
}

/// A callback of another language, perhaps.
///
/// # Errors
/// Those of the library.
#[idempotent(key = "id")]
#[allow(improper_ctypes_definitions, reason = "what the compiler says of the plain function")]
pub async extern "C" fn callback(id: u32) -> Result<u32, Error> {
    Ok(id)
}
