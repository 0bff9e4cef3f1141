//! What was said, and whether one store can have said it.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use idempotent_runtime::store::{OwnerToken, PutStep, Record, Reserved, Settled, State, Write};

/// What a store said to one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Granted {
        attempt: u32,
        fence: u64,
    },
    /// There is a result, of whoever has this token.
    Result(OwnerToken),
    /// There is none yet.
    NoResult,
    /// The write was carried out, or refused.
    Applied,
    Lost,
}

/// One question and its answer, between two moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) owner: OwnerToken,
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) said: Said,
}

impl From<Reserved> for Said {
    fn from(reserved: Reserved) -> Self {
        match reserved {
            Reserved::Granted(grant) => Self::Granted { attempt: grant.attempt, fence: grant.fence },
            Reserved::Held(record) => Self::from(Some(record)),
        }
    }
}

impl From<Option<Record>> for Said {
    fn from(record: Option<Record>) -> Self {
        match record.map(|record| record.state) {
            Some(State::Settled(Settled::Completed(stored))) => {
                Self::Result(OwnerToken::from_bytes(stored.bytes.as_ref().try_into().unwrap()))
            }
            _ => Self::NoResult,
        }
    }
}

impl From<Write> for Said {
    fn from(write: Write) -> Self {
        if write == Write::Applied { Self::Applied } else { Self::Lost }
    }
}

impl From<PutStep> for Said {
    fn from(put: PutStep) -> Self {
        if put == PutStep::Lost { Self::Lost } else { Self::Applied }
    }
}

/// Everything that was said, by key, and a clock that only counts.
#[derive(Debug, Default)]
pub(crate) struct History {
    events: Mutex<HashMap<String, Vec<Event>>>,
    now: AtomicU64,
}

/// How often what happened.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) take_overs: usize,
    pub(crate) lost: usize,
    pub(crate) results: usize,
}

impl History {
    pub(crate) fn now(&self) -> u64 {
        self.now.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn write(&self, key: String, event: Event) {
        self.events.lock().unwrap().entry(key).or_default().push(event);
    }

    /// Panics where no store that does one thing after the other can have said all this.
    pub(crate) fn judge(&self) -> Told {
        let mut told = Told::default();
        for (key, events) in &*self.events.lock().unwrap() {
            judge(key, events, &mut told);
        }
        told
    }
}

fn judge(key: &str, events: &[Event], told: &mut Told) {
    let grants: Vec<_> = events.iter().filter_map(|event| Some((event, grant(event)?))).collect();
    let fences: HashSet<u64> = grants.iter().map(|(_, (_, fence))| *fence).collect();
    assert_eq!(fences.len(), grants.len(), "{key}: a fence was given twice");
    for (one, (attempt, fence)) in &grants {
        for (other, (later_attempt, later_fence)) in &grants {
            if one.ended < other.began {
                assert!(fence < later_fence && attempt < later_attempt, "{key}: {one:?} before {other:?}");
            }
        }
        told.take_overs += usize::from(*attempt > 1);
        // Whoever has lost the key writes nothing from then on.
        for write in events.iter().filter(|event| event.said == Said::Applied && event.owner != one.owner) {
            let of = grants.iter().find(|(grant, _)| grant.owner == write.owner);
            let is_older = of.is_some_and(|(_, (_, older))| older < fence);
            assert!(!(is_older && one.ended < write.began), "{key}: {write:?} although {one:?}");
        }
    }
    told.lost += events.iter().filter(|event| event.said == Said::Lost).count();
    // There is one result, and once it was seen it is there.
    let seen = |event: &Event| if let Said::Result(by) = event.said { Some(by) } else { None };
    let results: HashSet<OwnerToken> = events.iter().filter_map(seen).collect();
    assert!(results.len() <= 1, "{key}: two results");
    told.results += results.len();
    for result in events.iter().filter(|event| seen(event).is_some()) {
        for later in events.iter().filter(|later| result.ended < later.began) {
            let forgets = matches!(later.said, Said::NoResult | Said::Granted { .. });
            assert!(!forgets, "{key}: {later:?} after {result:?}");
        }
    }
}

fn grant(event: &Event) -> Option<(u32, u64)> {
    if let Said::Granted { attempt, fence } = event.said { Some((attempt, fence)) } else { None }
}

/// Histories that no store can have are found.
#[test]
fn what_cannot_have_been_said_is_found() {
    let (a, b) = (OwnerToken::from_bytes([1; 16]), OwnerToken::from_bytes([2; 16]));
    let grant = |attempt| Said::Granted { attempt, fence: attempt.into() };
    let event = |owner, began, said| Event { owner, began, ended: began + 1, said };
    let forged = [
        // Two at once.
        vec![event(a, 0, grant(1)), event(b, 2, grant(1))],
        // One who has lost the key writes.
        vec![event(a, 0, grant(1)), event(b, 2, grant(2)), event(a, 4, Said::Applied)],
        // Two results.
        vec![event(a, 0, Said::Result(a)), event(b, 0, Said::Result(b))],
        // A result is forgotten.
        vec![event(a, 0, Said::Result(a)), event(b, 2, Said::NoResult)],
        vec![event(a, 0, Said::Result(a)), event(b, 2, grant(1))],
    ];
    for events in forged {
        let judged = std::panic::catch_unwind(|| judge("forged", &events, &mut Told::default()));
        assert!(judged.is_err(), "{events:?}");
    }
    let possible =
        [event(a, 0, grant(1)), event(b, 2, grant(2)), event(a, 4, Said::Lost), event(b, 4, Said::Applied)];
    judge("possible", &possible, &mut Told::default());
}
