//! Values that have values in them.

use serde::ser::{self, Serialize};

use super::encoder::{Encoder, Error};
use super::number::{self, JsonNumber};
use super::sink::OpenMap;
use super::skip::{Cursor, Step};

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
        let below = match encoder.cursor.follow(name.as_bytes()) {
            None => Cursor::LOST,
            Some(Step::Inside(below)) => below,
            Some(Step::Skip) => return Ok(()),
        };
        encoder.field = Some(name);
        encoder.within(below, |encoder| value.serialize(encoder))
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
    value: Next,
}

/// What happens to the next value.
#[derive(Clone, Copy)]
enum Next {
    /// Left out, as its key was. So is a value without a key.
    Skip,
    Write,
    /// Written, with some skip path leading further into it.
    Follow(Cursor),
}

impl<'e, 'a> MapEntries<'e, 'a> {
    pub(super) fn new(encoder: &'e mut Encoder<'a>) -> Self {
        let map = encoder.sink.open_map();
        Self { encoder, map, value: Next::Skip }
    }
}

impl ser::SerializeMap for MapEntries<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result {
        let encoder = &mut *self.encoder;
        encoder.sink.open_entry();
        let present = encoder.present;
        encoder.within(Cursor::LOST, |encoder| key.serialize(encoder))?;
        encoder.present = present;
        let name = encoder.sink.close_key();
        self.value = match name.and_then(|name| encoder.cursor.follow(name)) {
            None => Next::Write,
            Some(Step::Inside(below)) => Next::Follow(below),
            Some(Step::Skip) => {
                encoder.sink.drop_entry();
                Next::Skip
            }
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        let encoder = &mut *self.encoder;
        match std::mem::replace(&mut self.value, Next::Skip) {
            Next::Skip => return Ok(()),
            Next::Write => encoder.within(Cursor::LOST, |encoder| value.serialize(encoder))?,
            Next::Follow(below) => encoder.within(below, |encoder| value.serialize(encoder))?,
        }
        encoder.sink.close_entry();
        Ok(())
    }

    fn end(self) -> Result {
        self.encoder.sink.close_map(&self.map);
        self.encoder.close();
        Ok(())
    }
}
