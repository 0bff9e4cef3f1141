//! Where the runtime is, when the caller's manifest gives it another name.
//!
//! Read only as far as one question needs: which dependency has `package = "idempotent-runtime"`? Lines are enough for
//! that; where they mislead, `crate = …` says it.

use std::path::{Path, PathBuf};

const PACKAGE: &str = "idempotent-runtime";
const CRATE: &str = "idempotent_runtime";

/// The name under which the crate that is being compiled knows the runtime.
pub(crate) fn runtime() -> String {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .and_then(|folder| renamed(&PathBuf::from(folder)))
        .unwrap_or_else(|| CRATE.to_owned())
}

fn renamed(folder: &Path) -> Option<String> {
    let own = std::fs::read_to_string(folder.join("Cargo.toml")).ok()?;
    let name = match renamed_in(&own) {
        Found::Plain => return None,
        Found::As(name) => name,
        // `idem = { workspace = true }`: the package is named where the workspace is.
        Found::Nothing => inherited(folder).filter(|name| mentions(&own, name))?,
    };
    Some(name.replace('-', "_"))
}

fn inherited(folder: &Path) -> Option<String> {
    let manifests =
        folder.ancestors().skip(1).filter_map(|at| std::fs::read_to_string(at.join("Cargo.toml")).ok());
    let root =
        manifests.into_iter().find(|text| text.lines().any(|line| line.trim().starts_with("[workspace")))?;
    match renamed_in(&root) {
        Found::As(name) => Some(name),
        Found::Plain | Found::Nothing => None,
    }
}

#[derive(Debug, PartialEq)]
enum Found {
    /// A dependency under its own name.
    Plain,
    As(String),
    Nothing,
}

fn renamed_in(manifest: &str) -> Found {
    let mut found = Found::Nothing;
    let mut table = "";
    for line in manifest.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[') {
            table = header.trim_start_matches('[').split(']').next().unwrap_or_default().trim();
            if is_dependency_table(table, PACKAGE) {
                return Found::Plain;
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        // `idem.workspace = true` and `idem.package = "…"` are dotted keys.
        let (key, below) = key.trim().split_once('.').unwrap_or((key.trim(), ""));
        let key = key.trim_matches('"');
        if in_dependencies(table) {
            if key == PACKAGE {
                return Found::Plain;
            }
            if is_package(value) || (below.trim() == "package" && is_quoted_package(value)) {
                found = Found::As(key.to_owned());
            }
        } else if key == "package"
            && is_quoted_package(value)
            && let Some((_, name)) = table.rsplit_once("dependencies.")
        {
            found = Found::As(name.trim_matches('"').to_owned());
        }
    }
    found
}

fn in_dependencies(table: &str) -> bool {
    ["dependencies", "dev-dependencies", "build-dependencies"]
        .iter()
        .any(|name| table == *name || table.strip_suffix(name).is_some_and(|before| before.ends_with('.')))
}

/// `[dependencies.idempotent-runtime]`
fn is_dependency_table(table: &str, name: &str) -> bool {
    table
        .rsplit_once('.')
        .is_some_and(|(before, last)| in_dependencies(before) && last.trim_matches('"') == name)
}

/// `{ version = "1", package = "idempotent-runtime" }`
fn is_package(value: &str) -> bool {
    value
        .split_once("package")
        .is_some_and(|(_, after)| after.trim_start().strip_prefix('=').is_some_and(is_quoted_package))
}

fn is_quoted_package(value: &str) -> bool {
    let value = value.trim_start();
    ['"', '\''].into_iter().any(|quote| {
        value
            .strip_prefix(quote)
            .and_then(|value| value.strip_prefix(PACKAGE))
            .is_some_and(|rest| rest.starts_with(quote))
    })
}

/// Whether a dependency of this name is there at all.
fn mentions(manifest: &str, name: &str) -> bool {
    manifest.lines().map(str::trim_start).any(|line| {
        line.trim_start_matches('"')
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['.', ' ', '=', '"']))
            || line
                .strip_prefix('[')
                .is_some_and(|line| line.trim_end().ends_with(&format!("dependencies.{name}]")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(manifest: &str) -> Found {
        renamed_in(manifest)
    }

    #[test]
    fn reads_what_cargo_accepts() {
        let named = || Found::As("idem".to_owned());
        for manifest in [
            "[dependencies]\nidem = { package = \"idempotent-runtime\", version = \"1\" }",
            "[dependencies]\nidem = { version = \"1\", package='idempotent-runtime' }",
            "[dependencies.idem]\nversion = \"1\"\npackage = \"idempotent-runtime\"",
            "[dev-dependencies]\nidem.package = \"idempotent-runtime\"",
            "[target.'cfg(unix)'.dependencies]\nidem = { package = \"idempotent-runtime\" }",
            "[workspace.dependencies]\nidem = { package = \"idempotent-runtime\" }",
        ] {
            assert_eq!(found(manifest), named(), "{manifest}");
        }
        for manifest in [
            "[dependencies]\nidempotent-runtime = \"1\"",
            "[dependencies]\nidempotent-runtime.workspace = true",
            "[dependencies.idempotent-runtime]\nversion = \"1\"",
            "[dependencies]\nidem = { package = \"idempotent-runtime\" }\nidempotent-runtime = \"1\"",
        ] {
            assert_eq!(found(manifest), Found::Plain, "{manifest}");
        }
        for manifest in [
            "",
            "[package]\nname = \"idempotent-runtime\"",
            "[dependencies]\n# idem = { package = \"idempotent-runtime\" }",
            "[dependencies]\nserde = \"1\"\nidem = { package = \"idempotent-runtime-extras\" }",
        ] {
            assert_eq!(found(manifest), Found::Nothing, "{manifest}");
        }
    }

    #[test]
    fn an_inherited_name_is_a_dependency_of_the_member() {
        assert!(mentions("[dependencies]\nidem.workspace = true", "idem"));
        assert!(mentions("[dependencies]\nidem = { workspace = true }", "idem"));
        assert!(mentions("[dependencies.idem]\nworkspace = true", "idem"));
        assert!(!mentions("[dependencies]\nidempotency = \"1\"", "idem"));
    }
}
