//! A value as a part of a key.

use std::fmt::{Display, Write};

use serde::ser::{Impossible, Serialize, SerializeStruct, SerializeTuple, Serializer};

use super::KeyParts;
use super::text::quote;
use crate::fingerprint::{JSON_NUMBER, JsonNumber, Number};

/// Why a value is no scalar, or no tuple.
#[derive(Debug)]
pub(super) struct Refused(String);

impl Refused {
    pub(super) fn into_reason(self) -> String {
        self.0
    }
}

impl serde::ser::Error for Refused {
    fn custom<T: Display>(reason: T) -> Self {
        Self(reason.to_string())
    }
}

impl std::error::Error for Refused {}

impl Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

type Result<T = ()> = std::result::Result<T, Refused>;

/// Writes a scalar as readable text.
pub(super) struct Scalar<'p> {
    pub(super) parts: &'p mut KeyParts,
    pub(super) selector: &'static str,
    /// Take a tuple, each element as a part of its own.
    pub(super) spread: bool,
    pub(super) found: Found,
}

/// What a value turned out to be. Not told by the error alone, which a wrapper may replace by one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Scalar,
    /// Null, or a string of nothing but whitespace.
    Nothing,
    /// A tuple, whose elements are parts now.
    Parts,
    Composite,
}

impl Scalar<'_> {
    fn null(&mut self) {
        self.found = Found::Nothing;
        self.parts.text.push('~');
    }

    fn display(&mut self, value: impl Display) {
        // A `String` takes everything, and no number fails to be formatted.
        let _ = write!(self.parts.text, "{value}");
    }

    fn composite<T>(&mut self) -> Result<T> {
        self.found = Found::Composite;
        Err(Refused(String::new()))
    }
}

/// The elements of a tuple that is spread.
pub(super) struct Elements<'p> {
    parts: &'p mut KeyParts,
    selector: &'static str,
}

impl SerializeTuple for Elements<'_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.parts.part(self.selector, value);
        Ok(())
    }

    fn end(self) -> Result {
        Ok(())
    }
}

/// A number of `serde_json` in its guise as a struct.
pub(super) struct NumberPart<'s, 'p>(&'s mut Scalar<'p>);

impl SerializeStruct for NumberPart<'_, '_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Result {
        value.serialize(JsonNumber(|text: &str| match Number::parse(text) {
            Some(Number::Natural(natural)) => self.0.serialize_u128(natural),
            Some(Number::Negative(negative)) => self.0.serialize_i128(negative),
            _ => self.0.composite(),
        }))
    }

    fn end(self) -> Result {
        Ok(())
    }
}

macro_rules! displayed {
    ($($method:ident $type:ty),*) => {$(
        fn $method(self, value: $type) -> Result {
            self.display(value);
            Ok(())
        }
    )*};
}

macro_rules! composite {
    ($($method:ident($($type:ty),*) -> $ok:ty;)*) => {$(
        fn $method(self $(, _: $type)*) -> Result<$ok> {
            self.composite()
        }
    )*};
}

impl<'s, 'p> Serializer for &'s mut Scalar<'p> {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Impossible<(), Refused>;
    type SerializeTuple = Elements<'s>;
    type SerializeTupleStruct = Impossible<(), Refused>;
    type SerializeTupleVariant = Impossible<(), Refused>;
    type SerializeMap = Impossible<(), Refused>;
    type SerializeStruct = NumberPart<'s, 'p>;
    type SerializeStructVariant = Impossible<(), Refused>;

    displayed!(
        serialize_bool bool,
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64, serialize_i128 i128,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64, serialize_u128 u128
    );

    fn serialize_char(self, value: char) -> Result {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result {
        if value.trim().is_empty() {
            self.found = Found::Nothing;
        }
        quote(&mut self.parts.text, value);
        Ok(())
    }

    fn serialize_none(self) -> Result {
        self.null();
        Ok(())
    }

    fn serialize_unit(self) -> Result {
        self.null();
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result {
        self.null();
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result {
        self.serialize_str(variant)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result {
        self.composite()
    }

    fn serialize_tuple(self, _: usize) -> Result<Elements<'s>> {
        if !self.spread {
            return self.composite();
        }
        self.found = Found::Parts;
        // Each element brings a separator of its own.
        self.parts.text.pop();
        Ok(Elements { parts: self.parts, selector: self.selector })
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<NumberPart<'s, 'p>> {
        if name == JSON_NUMBER { Ok(NumberPart(self)) } else { self.composite() }
    }

    composite! {
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }
}
