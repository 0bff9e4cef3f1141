//! Numbers that `serde_json` keeps as text, so that its feature `arbitrary_precision` changes no fingerprint.

use std::fmt;

use serde::ser::{self, Impossible, Serialize, Serializer};

use super::display::Short;
use super::encoder::{Encoder, Error};
use super::tag;

/// `serde_json` writes a number as a struct of this name when its feature `arbitrary_precision` is on.
pub(crate) const JSON_NUMBER: &str = "$serde_json::private::Number";

/// The value of a number, as its type without the feature where that is exact, else whole.
pub(crate) enum Number<'t> {
    Natural(u128),
    Negative(i128),
    Float(f64),
    /// What neither 128 bits nor a float hold exactly.
    Decimal(Decimal<'t>),
}

impl<'t> Number<'t> {
    /// `None` for what JSON would not call a number.
    pub(crate) fn parse(text: &'t str) -> Option<Self> {
        let integer = || match text.parse() {
            Ok(natural) => Some(Self::Natural(natural)),
            // Without the feature, `-0` is the float.
            Err(_) => text.parse().ok().filter(|i| *i < 0).map(Self::Negative),
        };
        let decimal = Decimal::parse(text.as_bytes())?;
        // Without the feature, integers beyond 64 bits are floats.
        if text.parse::<u64>().is_err()
            && !text.parse::<i64>().is_ok_and(|i| i < 0)
            && let Ok(float) = text.parse::<f64>()
            && decimal.is(float)
        {
            return Some(Self::Float(float));
        }
        Some(integer().unwrap_or(Self::Decimal(decimal)))
    }
}

/// Writes the number that `text` is.
pub(super) fn write(encoder: &mut Encoder<'_>, text: &str) -> Result<(), Error> {
    match Number::parse(text) {
        Some(Number::Natural(natural)) => encoder.serialize_u128(natural),
        Some(Number::Negative(negative)) => encoder.serialize_i128(negative),
        Some(Number::Float(float)) => encoder.serialize_f64(float),
        Some(Number::Decimal(decimal)) => {
            encoder.word(tag::DECIMAL, decimal.exponent.to_be_bytes());
            encoder.sink.byte(u8::from(decimal.negative) | u8::from(decimal.fractional) << 1);
            encoder.sink.length(decimal.significant);
            decimal.digits().for_each(|digit| encoder.sink.byte(digit));
            Ok(())
        }
        None => encoder.serialize_str(text),
    }
}

/// The number `0.digits` times ten to the power of `exponent`, where the digits neither begin nor end with a zero.
pub(crate) struct Decimal<'t> {
    negative: bool,
    /// Written with a point or an exponent, so not an integer, even if its value is whole.
    fractional: bool,
    exponent: i64,
    whole: &'t [u8],
    fraction: &'t [u8],
    leading_zeros: usize,
    significant: usize,
}

impl<'t> Decimal<'t> {
    /// `None` for what JSON would not call a number, or with an exponent beyond 64 bits.
    fn parse(text: &'t [u8]) -> Option<Self> {
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            text => (false, text),
        };
        let (mantissa, power) = split(text, |byte| matches!(byte, b'e' | b'E'));
        let (whole, fraction) = split(mantissa, |byte| byte == b'.');
        let fractional = power.is_some() || fraction.is_some();
        let fraction = fraction.unwrap_or_default();
        let digits = whole.iter().chain(fraction);
        if whole.is_empty() || !digits.clone().all(u8::is_ascii_digit) {
            return None;
        }
        let power = match power {
            Some(power) => str::from_utf8(power).ok()?.parse::<i64>().ok()?,
            None => 0,
        };
        let zeros =
            |digits: &mut dyn Iterator<Item = &u8>| digits.take_while(|digit| **digit == b'0').count();
        let leading_zeros = zeros(&mut digits.clone());
        let all = whole.len() + fraction.len();
        let significant = (all - leading_zeros).saturating_sub(zeros(&mut digits.rev()));
        let exponent = if significant == 0 {
            0
        } else {
            let point = i64::try_from(whole.len()).ok()?.checked_sub(i64::try_from(leading_zeros).ok()?)?;
            power.checked_add(point)?
        };
        Some(Self { negative, fractional, exponent, whole, fraction, leading_zeros, significant })
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.iter().chain(self.fraction).copied().skip(self.leading_zeros).take(self.significant)
    }

    /// Whether `float`, which this reads as, is the number meant: it has as many digits as the float's shortest form. (The same
    /// number of digits, not the same ones: where two are equally short and near, not every program writes the same.)
    fn is(&self, float: f64) -> bool {
        // At most: sign, 17 digits, point, `e-308`.
        let Ok(text) = Short::<32>::of(&Shortest(float)) else { return false };
        let Some(other) = text.bytes().and_then(Decimal::parse) else { return false };
        self.negative == other.negative && self.significant == other.significant
    }
}

/// Splits at the first byte that is a `separator`.
fn split(text: &[u8], separator: impl Fn(u8) -> bool) -> (&[u8], Option<&[u8]>) {
    let mut parts = text.splitn(2, |byte| separator(*byte));
    (parts.next().unwrap_or_default(), parts.next())
}

struct Shortest(f64);

impl fmt::Display for Shortest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:e}", self.0)
    }
}

/// Takes the one string that a number of `serde_json` consists of.
pub(crate) struct JsonNumber<F>(pub(crate) F);

macro_rules! not_a_number {
    ($($method:ident($($type:ty),*) -> $ok:ty;)*) => {$(
        fn $method(self $(, _: $type)*) -> Result<$ok, E> {
            Err(E::custom("a number of serde_json holds something else than text"))
        }
    )*};
}

impl<F: FnOnce(&str) -> Result<(), E>, E: ser::Error> Serializer for JsonNumber<F> {
    type Ok = ();
    type Error = E;
    type SerializeSeq = Impossible<(), E>;
    type SerializeTuple = Impossible<(), E>;
    type SerializeTupleStruct = Impossible<(), E>;
    type SerializeTupleVariant = Impossible<(), E>;
    type SerializeMap = Impossible<(), E>;
    type SerializeStruct = Impossible<(), E>;
    type SerializeStructVariant = Impossible<(), E>;

    fn serialize_str(self, text: &str) -> Result<(), E> {
        (self.0)(text)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<(), E> {
        self.serialize_none()
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, _: &T) -> Result<(), E> {
        self.serialize_none()
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), E> {
        self.serialize_none()
    }

    not_a_number! {
        serialize_bool(bool) -> ();
        serialize_i8(i8) -> ();
        serialize_i16(i16) -> ();
        serialize_i32(i32) -> ();
        serialize_i64(i64) -> ();
        serialize_u8(u8) -> ();
        serialize_u16(u16) -> ();
        serialize_u32(u32) -> ();
        serialize_u64(u64) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_none() -> ();
        serialize_unit() -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }
}
