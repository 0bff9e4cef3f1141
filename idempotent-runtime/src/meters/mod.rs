//! Counters and histograms, through the `metrics` crate. Without the feature of that name all of this is empty.

#[cfg(feature = "metrics")]
mod recorded;
#[cfg(feature = "metrics")]
pub use recorded::describe_metrics;
#[cfg(feature = "metrics")]
pub(crate) use recorded::*;

#[cfg(not(feature = "metrics"))]
mod nothing;
#[cfg(not(feature = "metrics"))]
pub(crate) use nothing::*;

/// Something that happens beside the outcome of a call, in counters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Incident {
    TakenOver,
    GivenBack,
    LeftToItsLease,
    RenewalLate,
    LeaseLost,
    MaxRunOver,
    NotRecorded,
    NotSerializable,
    Unreadable,
}

impl Incident {
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "only counters name it"))]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::TakenOver => "taken-over",
            Self::GivenBack => "given-back",
            Self::LeftToItsLease => "left-to-its-lease",
            Self::RenewalLate => "renewal-late",
            Self::LeaseLost => "lease-lost",
            Self::MaxRunOver => "max-run-over",
            Self::NotRecorded => "not-recorded",
            Self::NotSerializable => "not-serializable",
            Self::Unreadable => "unreadable",
        }
    }
}
