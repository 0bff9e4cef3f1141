//! The canonical form as a `serde` serializer.

use std::fmt::Display;

use serde::ser::{Error as _, Serialize, Serializer};

use super::compound::{Fields, Items, MapEntries};
use super::number::JSON_NUMBER;
use super::sink::Sink;
use super::skip::{Cursor, Skip};
use super::{display, tag};

/// Deeper values are refused, before the stack ends.
const MAX_DEPTH: usize = 128;

/// Why a value could not be serialized.
#[derive(Debug)]
pub(crate) struct Error(Box<Reason>);

/// Boxed, so that a `Result` fits into a register.
#[derive(Debug)]
struct Reason(String);

impl serde::ser::Error for Error {
    fn custom<T: Display>(reason: T) -> Self {
        Self(Box::new(Reason(reason.to_string())))
    }
}

impl std::error::Error for Error {}

impl Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.0)
    }
}

type Result<T = ()> = std::result::Result<T, Error>;

/// Writes one value into a [`Sink`].
pub(super) struct Encoder<'a> {
    pub(super) sink: &'a mut Sink,
    /// The name of the field whose value comes next. It is written with the first byte of a value, so that a field
    /// that turns out to be `None` leaves nothing behind.
    pub(super) field: Option<&'a str>,
    pub(super) cursor: Cursor,
    /// Whether anything other than null was written, map keys aside.
    pub(super) present: bool,
    /// How many `Some` are around the value that comes next.
    somes: usize,
    depth: usize,
}

impl<'a> Encoder<'a> {
    /// Writes `value`, and before it the name of the `field` that it is, unless it is `None`.
    /// Tells whether there was more in it than nulls.
    pub(super) fn write<T: Serialize + ?Sized>(
        sink: &'a mut Sink,
        field: Option<&'a str>,
        value: &T,
        skip: Skip,
    ) -> Result<bool> {
        let mut encoder = Self { sink, field, cursor: Cursor::new(skip), present: false, somes: 0, depth: 0 };
        value.serialize(&mut encoder)?;
        // Every level is left when it succeeds. An implementation that went on after an error left its level open.
        if encoder.depth == 0 {
            Ok(encoder.present)
        } else {
            Err(Error::custom("an error inside was ignored"))
        }
    }

    /// A value that is not `None` begins.
    #[inline]
    fn start(&mut self) {
        self.somes = 0;
        if let Some(name) = self.field.take() {
            self.sink.text(name);
        }
    }

    /// A scalar begins.
    #[inline]
    fn scalar(&mut self) -> &mut Sink {
        self.present = true;
        self.start();
        self.sink
    }

    /// Writes something with another cursor, if it is another: most calls skip nothing.
    #[inline]
    pub(super) fn within(&mut self, cursor: Cursor, write: impl FnOnce(&mut Self) -> Result) -> Result {
        if !self.cursor.is_live() {
            return write(self);
        }
        let around = std::mem::replace(&mut self.cursor, cursor);
        let written = write(self);
        self.cursor = around;
        written
    }

    #[inline]
    pub(super) fn descend(&mut self) -> Result {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(too_deep()) } else { Ok(()) }
    }

    #[inline]
    pub(super) fn ascend(&mut self) {
        self.depth -= 1;
    }

    #[inline]
    fn open(&mut self, tag: u8) -> Result {
        self.start();
        self.sink.byte(tag);
        self.descend()
    }

    fn open_variant(&mut self, tag: u8, variant: &str) -> Result {
        self.present = true;
        self.open(tag)?;
        self.sink.text(variant);
        Ok(())
    }

    #[inline]
    pub(super) fn close(&mut self) {
        self.sink.byte(tag::END);
        self.ascend();
    }

    /// `NATURAL` and the number, or `NEGATIVE` and how far the number is below -1.
    #[inline]
    pub(super) fn integer(&mut self, tag: u8, magnitude: u64) {
        let zeros = magnitude.leading_zeros() / 8;
        let bytes = magnitude.checked_shl(zeros * 8).unwrap_or(0).to_be_bytes();
        let len = 8_u8.saturating_sub(u8::try_from(zeros).unwrap_or(8));
        self.scalar().word(tag + len, bytes, usize::from(len));
    }

    pub(super) fn wide_integer(&mut self, tag: u8, magnitude: u128) {
        let bytes = magnitude.to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let significant = bytes.get(zeros..).unwrap_or_default();
        let sink = self.scalar();
        sink.byte(tag + u8::try_from(significant.len()).unwrap_or(16));
        sink.raw(significant);
    }

    /// Eight bytes of a tag's own.
    pub(super) fn word(&mut self, tag: u8, bytes: [u8; 8]) {
        self.scalar().word(tag, bytes, 8);
    }
}

#[cold]
fn too_deep() -> Error {
    Error::custom(format_args!("nested deeper than {MAX_DEPTH} levels"))
}

impl<'e, 'a> Serializer for &'e mut Encoder<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Items<'e, 'a>;
    type SerializeTuple = Items<'e, 'a>;
    type SerializeTupleStruct = Items<'e, 'a>;
    type SerializeTupleVariant = Items<'e, 'a>;
    type SerializeMap = MapEntries<'e, 'a>;
    type SerializeStruct = Fields<'e, 'a>;
    type SerializeStructVariant = Fields<'e, 'a>;

    fn serialize_bool(self, value: bool) -> Result {
        self.scalar().byte(if value { tag::TRUE } else { tag::FALSE });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result {
        match u64::try_from(value) {
            Ok(natural) => self.integer(tag::NATURAL, natural),
            Err(_) => self.integer(tag::NEGATIVE, (!value).cast_unsigned()),
        }
        Ok(())
    }

    fn serialize_i128(self, value: i128) -> Result {
        match u128::try_from(value) {
            Ok(natural) => self.wide_integer(tag::NATURAL, natural),
            Err(_) => self.wide_integer(tag::NEGATIVE, (!value).cast_unsigned()),
        }
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result {
        self.integer(tag::NATURAL, value);
        Ok(())
    }

    fn serialize_u128(self, value: u128) -> Result {
        self.wide_integer(tag::NATURAL, value);
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result {
        /// Not `f64::NAN`, whose bits are nowhere promised.
        const NAN: u64 = 0x7ff8_0000_0000_0000;
        let bits = if value.is_nan() { NAN } else { value.to_bits() };
        self.word(tag::FLOAT, bits.to_be_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result {
        self.scalar().text(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result {
        self.present |= !value.is_empty();
        self.start();
        self.sink.byte(tag::BYTES);
        self.sink.length(value.len());
        self.sink.raw(value);
        Ok(())
    }

    fn serialize_none(self) -> Result {
        let somes = std::mem::take(&mut self.somes);
        match self.field.take() {
            Some(_) if somes == 0 => return Ok(()),
            Some(name) => self.sink.text(name),
            None => {}
        }
        for _ in 0..somes {
            self.sink.byte(tag::SOME);
        }
        self.sink.byte(tag::NONE);
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result {
        self.somes += 1;
        self.descend()?;
        value.serialize(&mut *self)?;
        self.ascend();
        Ok(())
    }

    fn serialize_unit(self) -> Result {
        self.start();
        self.sink.byte(tag::UNIT);
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result {
        let sink = self.scalar();
        sink.byte(tag::UNIT_VARIANT);
        sink.text(variant);
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result {
        self.descend()?;
        value.serialize(&mut *self)?;
        self.ascend();
        Ok(())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result {
        self.open_variant(tag::NEWTYPE_VARIANT, variant)?;
        value.serialize(&mut *self)?;
        self.ascend();
        Ok(())
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Items<'e, 'a>> {
        self.open(tag::SEQUENCE)?;
        Ok(Items(self))
    }

    fn serialize_tuple(self, len: usize) -> Result<Items<'e, 'a>> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(self, _name: &'static str, len: usize) -> Result<Items<'e, 'a>> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Items<'e, 'a>> {
        self.open_variant(tag::TUPLE_VARIANT, variant)?;
        Ok(Items(self))
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<MapEntries<'e, 'a>> {
        self.open(tag::MAP)?;
        Ok(MapEntries::new(self))
    }

    fn serialize_struct(self, name: &'static str, _len: usize) -> Result<Fields<'e, 'a>> {
        if name == JSON_NUMBER {
            return Ok(Fields::Number(self));
        }
        self.open(tag::STRUCT)?;
        Ok(Fields::Named(self))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Fields<'e, 'a>> {
        self.open_variant(tag::STRUCT_VARIANT, variant)?;
        Ok(Fields::Named(self))
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result {
        self.descend()?;
        display::write(self.scalar(), value)?;
        self.ascend();
        Ok(())
    }
}
