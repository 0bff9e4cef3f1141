//! Values that have values in them.

use serde::ser::{self, Serialize};

use super::encoder::{Encoder, Error};
use super::number::{self, JsonNumber};
use super::sink::OpenMap;

type Result<T = ()> = std::result::Result<T, Error>;

/// Elements of a sequence, of a tuple, or of a variant like one. Skip paths go through them to what is inside.
pub(super) struct Items<'e, 'a>(pub(super) &'e mut Encoder<'a>);

impl Items<'_, '_> {
    #[inline]
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        value.serialize(&mut *self.0)
    }

    #[inline]
    fn close(self) {
        self.0.close();
    }
}

macro_rules! items {
    ($($trait:ident $method:ident),*) => {$(
        impl ser::$trait for Items<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
                self.item(value)
            }

            fn end(self) -> Result {
                self.close();
                Ok(())
            }
        }
    )*};
}
items!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

/// Fields of a struct or of a variant like one.
pub(super) enum Fields<'e, 'a> {
    Named(&'e mut Encoder<'a>),
    /// A number of `serde_json` that looks like a struct.
    Number(&'e mut Encoder<'a>),
}

impl Fields<'_, '_> {
    #[inline]
    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result {
        let encoder = match self {
            Self::Named(encoder) => encoder,
            Self::Number(encoder) => {
                return value.serialize(JsonNumber(|text: &str| number::write(encoder, text)));
            }
        };
        let around = encoder.cursor;
        let Some(below) = around.enter(name.as_bytes()) else { return Ok(()) };
        encoder.cursor = below;
        encoder.field = Some(name);
        let written = value.serialize(&mut **encoder);
        encoder.cursor = around;
        written
    }

    #[inline]
    fn close(self) {
        if let Self::Named(encoder) = self {
            encoder.close();
        }
    }
}

macro_rules! fields {
    ($($trait:ident),*) => {$(
        impl ser::$trait for Fields<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result {
                self.field(name, value)
            }

            fn end(self) -> Result {
                self.close();
                Ok(())
            }
        }
    )*};
}
fields!(SerializeStruct, SerializeStructVariant);

/// Entries of a map.
pub(super) struct MapEntries<'e, 'a> {
    encoder: &'e mut Encoder<'a>,
    map: OpenMap,
    /// The cursor for the value of the key that was written last, or `None` when that entry is left out.
    below: Option<super::skip::Cursor>,
}

impl<'e, 'a> MapEntries<'e, 'a> {
    pub(super) fn new(encoder: &'e mut Encoder<'a>) -> Self {
        let map = encoder.sink.open_map();
        Self { encoder, map, below: None }
    }
}

impl ser::SerializeMap for MapEntries<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result {
        let encoder = &mut *self.encoder;
        let (around, present) = (encoder.cursor, encoder.present);
        encoder.sink.open_entry();
        encoder.cursor = around.lost();
        let written = key.serialize(&mut *encoder);
        (encoder.cursor, encoder.present) = (around, present);
        written?;
        self.below = match encoder.sink.close_key() {
            Some(name) if around.is_live() => around.enter(name),
            _ => Some(around.lost()),
        };
        if self.below.is_none() {
            encoder.sink.drop_entry();
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        let Some(below) = self.below.take() else { return Ok(()) };
        let around = std::mem::replace(&mut self.encoder.cursor, below);
        let written = value.serialize(&mut *self.encoder);
        self.encoder.cursor = around;
        self.encoder.sink.close_entry();
        written
    }

    fn end(self) -> Result {
        self.encoder.sink.close_map(&self.map);
        self.encoder.close();
        Ok(())
    }
}
