//! The places at which a process may die, each with a name, and the trap that makes one of them deadly.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use crate::ledger::{Ledger, What};
use crate::modes::Mode;

/// A place in the life of a call. `Before…` is before the request is sent, `In…` at any moment while it is under way, and
/// `After…` when the store has said yes and nobody else knows yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Point {
    BeforeReserve,
    InReserve,
    AfterReserve,
    /// A duplicate has begun to wait.
    Waiting,
    /// The application is asked what the attempt before did.
    Asking,
    BodyBegins,
    BeforeMark,
    InMark,
    AfterMark,
    EffectDone,
    BeforeStepBegun,
    InStepBegun,
    AfterStepBegun,
    StepEffectDone,
    BeforeStepDone,
    InStepDone,
    AfterStepDone,
    BetweenSteps,
    BeforeRenew,
    InRenew,
    AfterRenew,
    BeforeRelease,
    InRelease,
    AfterRelease,
    /// The key of a call whose caller went away is about to be left to whoever comes next.
    BeforeAbandon,
    BeforeComplete,
    InComplete,
    AfterComplete,
    /// The caller has its result.
    Replied,
}

impl Point {
    pub(crate) const ALL: [Self; 29] = [
        Self::BeforeReserve,
        Self::InReserve,
        Self::AfterReserve,
        Self::Waiting,
        Self::Asking,
        Self::BodyBegins,
        Self::BeforeMark,
        Self::InMark,
        Self::AfterMark,
        Self::EffectDone,
        Self::BeforeStepBegun,
        Self::InStepBegun,
        Self::AfterStepBegun,
        Self::StepEffectDone,
        Self::BeforeStepDone,
        Self::InStepDone,
        Self::AfterStepDone,
        Self::BetweenSteps,
        Self::BeforeRenew,
        Self::InRenew,
        Self::AfterRenew,
        Self::BeforeRelease,
        Self::InRelease,
        Self::AfterRelease,
        Self::BeforeAbandon,
        Self::BeforeComplete,
        Self::InComplete,
        Self::AfterComplete,
        Self::Replied,
    ];

    /// Whether calls of this kind pass here.
    pub(crate) fn is_passed_by(self, mode: Mode) -> bool {
        match self {
            Self::BeforeReserve
            | Self::InReserve
            | Self::AfterReserve
            | Self::BeforeComplete
            | Self::InComplete
            | Self::AfterComplete
            | Self::Replied => true,
            Self::Asking | Self::BeforeAbandon => mode == Mode::Asked,
            Self::BodyBegins | Self::EffectDone => !mode.has_steps(),
            Self::BeforeMark | Self::InMark | Self::AfterMark => mode == Mode::Marked,
            Self::BeforeStepBegun | Self::InStepBegun | Self::AfterStepBegun => mode == Mode::Steps,
            Self::StepEffectDone
            | Self::BeforeStepDone
            | Self::InStepDone
            | Self::AfterStepDone
            | Self::BetweenSteps => mode.has_steps(),
            Self::Waiting | Self::BeforeRenew | Self::InRenew | Self::AfterRenew => mode.is_slow(),
            Self::BeforeRelease | Self::InRelease | Self::AfterRelease => mode == Mode::Failing,
        }
    }

    /// Whether whoever dies here does so in the name of the attempt that has the key.
    pub(crate) fn is_owners(self) -> bool {
        !matches!(self, Self::BeforeReserve | Self::InReserve | Self::Waiting | Self::Replied)
    }

    pub(crate) fn of(name: &str) -> Self {
        Self::ALL.into_iter().find(|point| format!("{point:?}") == name).expect(name)
    }
}

/// What happens at a point.
#[derive(Debug)]
struct Trap {
    point: Point,
    mode: Mode,
    /// How many more times it is passed unharmed.
    left: AtomicU32,
    signal: Signal,
    ledger: Ledger,
}

static TRAP: OnceLock<Trap> = OnceLock::new();

/// Makes one point of calls of one kind deadly for this process, when it is passed the `nth` time.
pub(crate) fn kill_at(point: Point, mode: Mode, nth: u32, ledger: Ledger) {
    set(Trap { point, mode, left: AtomicU32::new(nth), signal: Signal::KILL, ledger });
}

/// Makes this process stand still at a point, the first time that it comes there.
pub(crate) fn stop_at(point: Point, mode: Mode, ledger: Ledger) {
    set(Trap { point, mode, left: AtomicU32::new(1), signal: Signal::STOP, ledger });
}

fn set(trap: Trap) {
    TRAP.set(trap).expect("a process has one trap");
}

/// A call with this key is here.
pub(crate) fn at(point: Point, key: &str) {
    if let Some(trap) = TRAP.get().filter(|trap| trap.springs(point, key)) {
        trap.ledger.write(What::Died, key, &format!("{point:?}"), "-");
        kill_process(getpid(), trap.signal).unwrap();
        // The signal comes to the process, another thread of which may be at work for a moment more. This one is not.
        std::thread::sleep(Duration::from_millis(200));
        assert_ne!(trap.signal, Signal::KILL, "nobody survives that");
    }
}

/// A call with this key is here, and goes on; the process dies within the next moments.
pub(crate) fn soon_after(point: Point, key: &str) {
    if let Some(trap) = TRAP.get().filter(|trap| trap.springs(point, key)) {
        trap.ledger.write(What::Died, key, &format!("{point:?}"), "-");
        let pause = Duration::from_micros(rand::random_range(0..2_000));
        std::thread::spawn(move || {
            std::thread::sleep(pause);
            kill_process(getpid(), trap.signal).unwrap();
        });
    }
}

impl Trap {
    fn springs(&self, point: Point, key: &str) -> bool {
        point == self.point
            && Mode::of(key) == self.mode
            && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                == Ok(1)
    }
}
