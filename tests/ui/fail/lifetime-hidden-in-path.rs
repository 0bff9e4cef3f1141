//! A lifetime that a path hides is reported at the path, as in the plain function.

use ui_tests::*;

#[derive(Serialize)]
struct Reference<'a>(&'a str);

#[idempotent(key = "reference.0")]
async fn charge(reference: Reference) -> Result<u64, Failure> {
    let _ = reference.0;
    Ok(1)
}

fn main() {}
