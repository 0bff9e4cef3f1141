//! What a run of the checker is about: how many callers, which policies, how much may go wrong, and which protections hold.

/// The policies of the function, and the bounds of what is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How many callers there are at once.
    pub workers: u8,
    /// How many calls each of them makes, one after the other.
    pub calls: u8,
    /// What the body does.
    pub body: Body,
    /// What no answer does.
    pub on_crash: OnCrash,
    /// What a returned `Err` does.
    pub on_error: OnError,
    /// Whether duplicates wait, without any end, for the first call.
    pub wait: bool,
    /// Whether the last worker calls with other arguments.
    pub other_arguments: bool,
    /// The number of the last attempt that may be granted.
    pub max_attempts: u8,
    /// How much may go wrong.
    pub bounds: Bounds,
    /// Which protections hold.
    pub protections: Protections,
}

/// What the body does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Acts when it is first polled.
    Plain,
    /// Says that effects begin, waits for the confirmation, acts.
    Effects,
    /// Acts inside a step.
    Step,
}

/// What happens after an attempt that gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCrash {
    /// The key stays used.
    Refuse,
    /// The body runs again.
    Retry,
    /// The body runs again unless effects have begun.
    RetryBeforeEffects,
}

/// When a call may take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeOver {
    /// Between steps only.
    BetweenSteps,
    /// Before any effect.
    BeforeEffects,
    /// Always.
    Always,
}

impl OnCrash {
    /// What the store is told.
    pub fn take_over(self) -> TakeOver {
        match self {
            Self::Refuse => TakeOver::BetweenSteps,
            Self::Retry => TakeOver::Always,
            Self::RetryBeforeEffects => TakeOver::BeforeEffects,
        }
    }
}

/// What a returned `Err` does to the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// It is released.
    Retry,
    /// The error is the result.
    Replay,
    /// It stays used.
    Refuse,
}

/// How often each thing may go wrong. Each may happen at any moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Callers that vanish without a word.
    pub crashes: u8,
    /// Calls whose future is dropped.
    pub drops: u8,
    /// Requests or replies that are lost. A request whose reply is lost is sent again, and may arrive at any time.
    pub losses: u8,
    /// Callers that give up waiting for the store.
    pub give_ups: u8,
    /// Leases that end although their owner is alive: its renewals are late, or a clock is wrong.
    pub lease_ends: u8,
    /// Renewals, which may arrive at any time.
    pub renewals: u8,
    /// Records that expire and are purged.
    pub expiries: u8,
    /// What an operator does: each is a look and, at any time after it, a compare-and-set.
    pub repairs: u8,
}

/// What keeps the promises. The checker must find the harm in leaving any of them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that a test takes away")]
#[expect(missing_docs, reason = "each is named after what it says")]
pub struct Protections {
    pub random_tokens: bool,
    pub token_in_renew: bool,
    pub token_in_marks: bool,
    pub token_in_complete: bool,
    pub token_in_release: bool,
    pub reserve_is_repeatable: bool,
    pub complete_is_repeatable: bool,
    pub equal_fingerprint_at_take_over: bool,
    pub resolve_replaces_token: bool,
    pub no_ttl_while_running: bool,
    pub drop_in_body_abandons: bool,
    pub lost_mark_stops_body: bool,
    pub take_over_keeps_steps: bool,
    pub forget_keeps_steps: bool,
    pub unused_keeps_earlier_attempts: bool,
    pub renewal_ends_with_body: bool,
    pub lost_completion_is_told: bool,
    pub exhausted_is_nobodys: bool,
}

impl Protections {
    /// The protocol as it is.
    pub const ALL: Self = Self {
        random_tokens: true,
        token_in_renew: true,
        token_in_marks: true,
        token_in_complete: true,
        token_in_release: true,
        reserve_is_repeatable: true,
        complete_is_repeatable: true,
        equal_fingerprint_at_take_over: true,
        resolve_replaces_token: true,
        no_ttl_while_running: true,
        drop_in_body_abandons: true,
        lost_mark_stops_body: true,
        take_over_keeps_steps: true,
        forget_keeps_steps: true,
        unused_keeps_earlier_attempts: true,
        renewal_ends_with_body: true,
        lost_completion_is_told: true,
        exhausted_is_nobodys: true,
    };
}

impl Default for Setting {
    /// Two callers with two calls each, the default policies, and one of everything that can go wrong.
    fn default() -> Self {
        Self {
            workers: 2,
            calls: 2,
            body: Body::Plain,
            on_crash: OnCrash::Refuse,
            on_error: OnError::Retry,
            wait: false,
            other_arguments: false,
            max_attempts: 10,
            bounds: Bounds {
                crashes: 1,
                drops: 1,
                losses: 1,
                give_ups: 1,
                lease_ends: 2,
                renewals: 1,
                expiries: 1,
                repairs: 1,
            },
            protections: Protections::ALL,
        }
    }
}
