//! The programs of the package `examples`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The program of an example, built first: whoever runs this package's tests alone has not built it yet.
///
/// # Panics
/// When it does not build.
pub fn program(name: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", "examples", "--example", name])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "the example does not build");
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut messages =
        messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    messages
        .find_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
        .expect("cargo names the executable")
}
