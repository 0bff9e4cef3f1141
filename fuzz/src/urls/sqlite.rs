//! The file that a URL names.

#[path = "../../../idempotent-runtime/src/stores/sqlite/url.rs"]
mod url;

pub(super) fn read(text: &str) {
    if let Ok(file) = url::file_of(text) {
        assert!(!file.is_empty() && text.ends_with(file) && !file.contains('?') && !file.starts_with(':'));
    }
}
