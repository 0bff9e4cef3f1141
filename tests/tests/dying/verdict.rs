//! What must be true when all are dead: by what the ledger says, what the store has recorded, and what the next call gets.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use idempotent_runtime::store::{ListQuery, Record, Release, Settled, State, Store};
use idempotent_runtime::stores;
use tokio::task::JoinSet;

use crate::bodies::{Process, Trouble};
use crate::ledger::{Entry, Ledger, What};
use crate::modes::Mode;
use crate::places::Place;
use crate::points::Point;
use crate::trapped::{Trapped, name};

/// How many keys are tried at a time.
const AT_A_TIME: usize = 16;

/// What a call gets that is made when all are dead.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Result(String),
    Unknown,
}

/// What somebody who died leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Whatever it is, the rest of the verdict covers it.
    Any,
    /// A result, and nothing runs after it.
    Result,
    /// The next call runs, or goes on.
    Work,
    /// Nothing runs any more, and nobody is told anything else.
    Unknown,
}

/// How each key ended, and what the ledger says of it, in order.
#[derive(Debug)]
pub(crate) struct Verdict(HashMap<String, Story>);

#[derive(Debug)]
struct Story {
    mode: Mode,
    entries: Vec<Entry>,
    end: End,
}

impl Verdict {
    /// Tries every key that anybody may have used. Nobody else may be at work.
    pub(crate) fn on(place: &Place) -> Self {
        Self::through(place, Trapped::new)
    }

    /// As [`Self::on`], through a store that may be no good one.
    pub(crate) fn through(place: &Place, store: fn(Arc<dyn Store>) -> Trapped) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.unwrap().block_on(async {
            let store: Arc<dyn Store> = Arc::new(store(stores::open(&place.url).await.unwrap()));
            let records = end_leases_of_the_dead(&store).await;
            let before = Ledger::open(&place.ledger()).read();
            let mut keys: BTreeSet<String> = before.into_iter().map(|entry| entry.key).collect();
            keys.extend(records.iter().map(|record| name(&record.key).to_owned()));
            let ends = try_all(&store, place, keys).await;
            assert_recorded(&ends, &all_records(&store).await);
            let mut stories = HashMap::new();
            for (key, end) in ends {
                let mode = Mode::of(&key);
                stories.insert(key, Story { mode, entries: Vec::new(), end });
            }
            for entry in Ledger::open(&place.ledger()).read() {
                stories.get_mut(&entry.key).expect("every key was tried").entries.push(entry);
            }
            Self(stories)
        })
    }

    /// What each process left that died at a named point, if no other one died with the same key.
    pub(crate) fn judge_deaths(&self) {
        let mut judged = 0;
        for story in self.0.values() {
            let mut deaths = story.entries.iter().enumerate().filter(|(_, entry)| entry.what == What::Died);
            if let (Some((place, death)), None) = (deaths.next(), deaths.next()) {
                story.judge_death(Point::of(&death.detail), place);
                judged += 1;
            }
        }
        assert!(judged > 0, "nobody died");
    }

    /// What must be true of every key. A summary.
    pub(crate) fn judge(&self) -> String {
        self.0.values().for_each(Story::judge);
        let count = |is: fn(&Entry) -> bool| {
            self.0.values().flat_map(|story| &story.entries).filter(|entry| is(entry)).count()
        };
        let effects = count(|entry| entry.what == What::Ran);
        let replays = count(|entry| entry.detail == "Replayed");
        let unknown = self.0.values().filter(|story| story.end == End::Unknown).count();
        format!("{} keys, {effects} effects, {replays} replays, {unknown} outcomes unknown", self.0.len())
    }
}

impl Story {
    fn of(&self, what: What) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.what == what)
    }

    fn judge_death(&self, point: Point, place: usize) {
        let (before, after) = self.entries.split_at(place);
        let ran_later = after.iter().any(|entry| entry.what == What::Ran);
        match left(point, self.mode, before) {
            Left::Any => {}
            Left::Result => {
                assert!(matches!(self.end, End::Result(_)), "{self:#?}");
                assert!(!ran_later, "it ran again: {self:#?}");
            }
            Left::Unknown => {
                assert_eq!(self.end, End::Unknown, "{self:#?}");
                assert!(!ran_later, "it ran again: {self:#?}");
            }
            Left::Work => {
                assert!(matches!(self.end, End::Result(_)), "{self:#?}");
                // The ledger shows it when something happens twice.
                let again = point == Point::EffectDone && !self.mode.at_most_once();
                assert!(ran_later || !again, "{self:#?}");
            }
        }
    }

    fn judge(&self) {
        // One result is given out, by whomever, and a body made it.
        let given = self.of(What::Given).filter(|entry| entry.detail != "Unrecorded");
        let mut results: HashSet<&str> = given.map(|entry| &*entry.value).collect();
        if let End::Result(value) = &self.end {
            results.insert(value);
            for part in value.split('+') {
                assert!(self.of(What::Ran).any(|entry| entry.value == part), "a result of no run: {self:#?}");
            }
        }
        assert!(results.len() <= 1, "two results: {self:#?}");
        assert!(self.end != End::Unknown || results.is_empty(), "a result is forgotten: {self:#?}");
        if self.mode.at_most_once() {
            let names: HashSet<&str> = self.of(What::Ran).map(|entry| &*entry.detail).collect();
            assert_eq!(names.len(), self.of(What::Ran).count(), "an effect happened twice: {self:#?}");
        }
        if self.mode.always_ends() {
            assert!(matches!(self.end, End::Result(_)), "a key is stuck: {self:#?}");
        }
        let mut kept = HashSet::new();
        for entry in &self.entries {
            if entry.what == What::Kept {
                kept.insert(&entry.detail);
            }
            let again = entry.what == What::Ran && kept.contains(&entry.detail);
            assert!(!again, "a step was done and ran again: {self:#?}");
        }
    }
}

/// What a process leaves that died at `point`.
fn left(point: Point, mode: Mode, before: &[Entry]) -> Left {
    let has_kept = before.iter().any(|entry| entry.what == What::Kept);
    match point {
        Point::AfterComplete | Point::Replied => Left::Result,
        // Another call of the same process may have taken the key, and died with it.
        Point::AfterRelease => Left::Any,
        _ if !point.is_owners() => Left::Any,
        // The body is at work beside it, and may have come to its end.
        Point::BeforeRenew | Point::InRenew | Point::AfterRenew => Left::Any,
        // Nobody can say whether it arrived.
        Point::InMark | Point::InRelease | Point::InComplete | Point::InStepBegun | Point::InStepDone => {
            Left::Any
        }
        _ if mode.always_ends() => Left::Work,
        Point::AfterReserve | Point::BodyBegins | Point::BeforeMark if mode == Mode::Marked => Left::Work,
        Point::AfterStepDone | Point::BetweenSteps => Left::Work,
        Point::BeforeComplete if mode == Mode::Steps => Left::Work,
        // Before the first step nobody knows how far it was; before the second, that the first is done.
        Point::BeforeStepBegun if has_kept => Left::Work,
        _ => Left::Unknown,
    }
}

/// The leases that are too long to wait for. Whoever had them is dead. All records.
async fn end_leases_of_the_dead(store: &Arc<dyn Store>) -> Vec<Record> {
    let records = all_records(store).await;
    for record in &records {
        if Mode::of(name(&record.key)) == Mode::Asked && matches!(record.state, State::Running { .. }) {
            store.release(&record.key, record.owner, Release::Abandon).await.unwrap();
        }
    }
    records
}

async fn all_records(store: &Arc<dyn Store>) -> Vec<Record> {
    let mut query = ListQuery { limit: 1000, ..ListQuery::default() };
    let mut records = Vec::new();
    loop {
        let page = store.list(&query).await.unwrap();
        records.extend(page.records);
        query.after = page.next;
        if query.after.is_none() {
            return records;
        }
    }
}

/// Calls each key until it has come to its end.
async fn try_all(store: &Arc<dyn Store>, place: &Place, keys: BTreeSet<String>) -> HashMap<String, End> {
    let process = Process::new(Arc::clone(store), &place.ledger(), 0);
    let (mut tasks, mut ends) = (JoinSet::new(), HashMap::new());
    for key in keys {
        let process = Arc::clone(&process);
        tasks.spawn(async move {
            loop {
                match process.call(&key).await {
                    Ok(value) => return (key, End::Result(value)),
                    Err(Trouble::Library("outcome-unknown")) => return (key, End::Unknown),
                    Err(Trouble::NotDone) => {}
                    Err(trouble) => panic!("{key}: {trouble:?}"),
                }
            }
        });
        if tasks.len() == AT_A_TIME {
            ends.extend(tasks.join_next().await.map(Result::unwrap));
        }
    }
    ends.extend(tasks.join_all().await);
    ends
}

/// What a call was given is what the store holds.
fn assert_recorded(ends: &HashMap<String, End>, records: &[Record]) {
    let by_key: HashMap<&str, &State> =
        records.iter().map(|record| (name(&record.key), &record.state)).collect();
    for (key, end) in ends {
        match (end, by_key.get(&**key)) {
            (End::Result(value), Some(State::Settled(Settled::Completed(stored)))) => {
                assert_eq!(serde_json::from_slice::<String>(&stored.bytes).unwrap(), *value, "{key}");
            }
            (End::Unknown, Some(State::Running { .. } | State::Settled(Settled::Unknown))) => {}
            (end, state) => panic!("{key}: a call got {end:?}, and the store has {state:?}"),
        }
    }
}
