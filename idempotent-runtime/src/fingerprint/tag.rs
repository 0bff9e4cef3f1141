//! The first byte of every canonical value. `docs/fingerprint.md` describes them; changing one needs a new version.

/// Closes a sequence, map or struct.
pub(super) const END: u8 = 0x00;
pub(super) const NONE: u8 = 0x01;
pub(super) const UNIT: u8 = 0x02;
pub(super) const FALSE: u8 = 0x03;
pub(super) const TRUE: u8 = 0x04;
/// Before `NONE` only: `Some` of anything else is that thing.
pub(super) const SOME: u8 = 0x05;
pub(super) const SEQUENCE: u8 = 0x06;
pub(super) const MAP: u8 = 0x07;
pub(super) const STRUCT: u8 = 0x08;
pub(super) const UNIT_VARIANT: u8 = 0x09;
pub(super) const NEWTYPE_VARIANT: u8 = 0x0a;
pub(super) const TUPLE_VARIANT: u8 = 0x0b;
pub(super) const STRUCT_VARIANT: u8 = 0x0c;
pub(super) const FLOAT: u8 = 0x0d;
pub(super) const BYTES: u8 = 0x0e;
pub(super) const TEXT: u8 = 0x0f;
/// A decimal number that neither an integer nor a float holds exactly.
pub(super) const DECIMAL: u8 = 0x10;
/// `NATURAL + n`: an integer from 0 up in `n` bytes, big-endian, without leading zeros.
pub(super) const NATURAL: u8 = 0x20;
/// `NEGATIVE + n`: the integer `-1 - i`, where `i` is written in `n` bytes as above.
pub(super) const NEGATIVE: u8 = 0x40;
/// `SHORT_TEXT + n`: a string of `n` bytes, fewer than `SHORT_TEXTS`.
pub(super) const SHORT_TEXT: u8 = 0x80;
pub(super) const SHORT_TEXTS: u8 = 64;

/// The text of an encoded value that is a string or the name of a variant without data.
pub(super) fn text(key: &[u8]) -> Option<&[u8]> {
    match key {
        [UNIT_VARIANT, text @ ..] => self::text(text),
        [TEXT, rest @ ..] => {
            let length = rest.iter().position(|byte| byte & 0x80 == 0)?;
            rest.get(length + 1..)
        }
        [SHORT_TEXT..=u8::MAX, text @ ..] => Some(text),
        _ => None,
    }
}
