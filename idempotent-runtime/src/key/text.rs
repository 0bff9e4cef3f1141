//! Escaped text: what a key is made of.

use std::borrow::Cow;

/// `text` with `%`, `/`, `~`, `!`, whitespace and control characters as percent-encoded bytes.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    // Every byte is looked at, come what may: the compiler can then take many at once.
    if text.bytes().fold(true, |plain, byte| plain & is_plain(byte)) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() * 3);
    for char in text.chars() {
        if matches!(char, '%' | '/' | '~' | '!') || char.is_whitespace() || char.is_control() {
            for byte in char.encode_utf8(&mut [0; 4]).bytes() {
                escaped.push('%');
                escaped.extend(hex(byte).map(|digit| digit.to_ascii_uppercase()));
            }
        } else {
            escaped.push(char);
        }
    }
    escaped.into()
}

/// Visible ASCII that stands for itself.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'%' | b'/' | b'~' | b'!')
}

/// Appends a string as a part: after an apostrophe if it could be taken for something else without.
pub(super) fn quote(out: &mut String, text: &str) {
    if reads_as_another_type(text) {
        out.push('\'');
    }
    out.push_str(&escaped(text));
}

fn reads_as_another_type(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    text.starts_with('\'')
        || matches!(text, "true" | "false")
        || (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Appends a digest as `~` and 64 hexadecimal digits. No escaped text begins with `~`.
pub(super) fn digest(out: &mut String, digest: &[u8; 32]) {
    out.push('~');
    out.extend(digest.iter().flat_map(|byte| hex(*byte)));
}

/// The two digits of a byte.
fn hex(byte: u8) -> [char; 2] {
    [byte >> 4, byte & 0xf].map(|digit| char::from_digit(digit.into(), 16).unwrap_or_default())
}
