//! Strings that only `Display` gives: their length comes first, and there is no memory to keep them in.

use std::fmt::{self, Display, Write};

use serde::ser::Error as _;

use super::encoder::Error;
use super::sink::Sink;

/// Most texts, such as dates and addresses, fit here and are formatted once; a longer one is formatted twice.
const BUFFER: usize = 128;

/// Text of at most `N` bytes; what is beyond is counted only.
pub(super) struct Short<const N: usize> {
    buffer: [u8; N],
    len: usize,
}

impl<const N: usize> Short<N> {
    pub(super) fn of(value: &(impl Display + ?Sized)) -> Result<Self, fmt::Error> {
        let mut short = Self { buffer: [0; N], len: 0 };
        write!(short, "{value}")?;
        Ok(short)
    }

    /// The text, unless it was too long.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        self.buffer.get(..self.len)
    }
}

impl<const N: usize> Write for Short<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if let Some(slot) = self.buffer.get_mut(self.len..self.len + text.len()) {
            slot.copy_from_slice(text.as_bytes());
        }
        self.len += text.len();
        Ok(())
    }
}

/// Passes on text while it is no longer than promised.
struct Promised<'s> {
    sink: &'s mut Sink,
    left: usize,
}

impl Write for Promised<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.left = self.left.checked_sub(text.len()).ok_or(fmt::Error)?;
        self.sink.raw(text.as_bytes());
        Ok(())
    }
}

/// Writes what `value` displays as, like any other string.
pub(super) fn write<T: Display + ?Sized>(sink: &mut Sink, value: &T) -> Result<(), Error> {
    let short = Short::<BUFFER>::of(value).map_err(Error::custom)?;
    sink.text_header(short.len);
    if let Some(bytes) = short.bytes() {
        sink.raw(bytes);
        return Ok(());
    }
    let mut promised = Promised { sink, left: short.len };
    if write!(promised, "{value}").is_ok() && promised.left == 0 {
        Ok(())
    } else {
        Err(Error::custom("it displays as one text at first, and as another afterwards"))
    }
}
