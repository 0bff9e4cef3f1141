//! What servers want: where the key goes, and what their answers mean.

use std::time::Duration;

use http::{HeaderName, Method};

/// Where a server looks for the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this header.
    Header(HeaderName),
    /// In this member of the JSON object that is the content.
    JsonMember(&'static str),
}

/// How the key stands in a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyForm {
    /// As it is, which is what most servers take.
    #[default]
    Bare,
    /// In quotes, as the Internet-Draft has it.
    Quoted,
}

/// The rules of one server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Vendor {
    /// Where the key goes.
    pub place: Place,
    /// How it stands in a header.
    pub form: KeyForm,
    /// The methods whose requests get a key.
    pub methods: Vec<Method>,
    /// The longest key, in bytes.
    pub longest: usize,
    /// How long the server keeps a response at least: after that a key is as good as new.
    pub ttl: Duration,
    /// Whether `Stripe-Should-Retry` says what to do.
    pub should_retry: bool,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Vendor {
    /// The Internet-Draft's header, POST and PATCH, 24 hours.
    pub fn draft() -> Self {
        Self {
            place: Place::Header(HeaderName::from_static("idempotency-key")),
            form: KeyForm::Bare,
            methods: vec![Method::POST, Method::PATCH],
            longest: 255,
            ttl: DAY,
            should_retry: false,
        }
    }

    /// [Stripe](https://docs.stripe.com/api/idempotent_requests): POST, keys of up to 255 characters, kept for at least 24
    /// hours; `Stripe-Should-Retry` comes before every other rule.
    pub fn stripe() -> Self {
        Self { methods: vec![Method::POST], should_retry: true, ..Self::draft() }
    }

    /// [Adyen](https://docs.adyen.com/development-resources/api-idempotency): keys of up to 64 characters, kept for at least
    /// seven days, in one region only.
    pub fn adyen() -> Self {
        Self { methods: vec![Method::POST], longest: 64, ttl: 7 * DAY, ..Self::draft() }
    }

    /// [PayPal](https://developer.paypal.com/api/rest/reference/idempotency/): `PayPal-Request-Id`. How long it is kept depends on
    /// the API; six hours is the shortest.
    pub fn paypal() -> Self {
        let place = Place::Header(HeaderName::from_static("paypal-request-id"));
        Self { place, methods: vec![Method::POST], longest: 38, ttl: DAY / 4, ..Self::draft() }
    }

    /// [Square](https://developer.squareup.com/docs/build-basics/common-api-patterns/idempotency): the member
    /// `idempotency_key` of the content, up to 45 characters.
    pub fn square() -> Self {
        let place = Place::JsonMember("idempotency_key");
        Self { place, methods: vec![Method::POST, Method::PUT], longest: 45, ..Self::draft() }
    }
}

impl Default for Vendor {
    fn default() -> Self {
        Self::draft()
    }
}
