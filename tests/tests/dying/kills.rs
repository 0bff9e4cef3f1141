//! Processes under traffic that are killed: at each named point, and at any moment. What they leave behind is judged.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};

use crate::ledger::Ledger;
use crate::modes::Mode;
use crate::places::{Kind, Place};
use crate::points::Point;
use crate::trapped::Trapped;
use crate::verdict::Verdict;
use crate::worker::{PATIENCE, Task, Worker};

/// How many processes are killed a store, unless `KILLS` says otherwise.
const KILLS: usize = 50;
/// How many of them die at any moment.
const AT_ANY_MOMENT: usize = 12;
/// How many die beside the same companion.
const COMPANY: usize = 8;

/// Deaths that show what a policy is for: always among them.
const TELLING: [(Point, Mode); 5] = [
    (Point::EffectDone, Mode::Refuse),
    (Point::EffectDone, Mode::Retry),
    (Point::EffectDone, Mode::Asked),
    (Point::AfterStepDone, Mode::Steps),
    (Point::StepEffectDone, Mode::Steps),
];

#[test]
fn sqlite_keeps_its_promises_to_processes_that_are_killed() {
    kill_many(Kind::Sqlite);
}

#[test]
fn postgres_keeps_its_promises_to_processes_that_are_killed() {
    kill_many(Kind::Postgres);
}

#[test]
fn redis_keeps_its_promises_to_processes_that_are_killed() {
    kill_many(Kind::Redis);
}

#[test]
fn a_store_that_gives_away_the_keys_of_the_dead_is_found() {
    for judge in [|verdict: &Verdict| verdict.judge_deaths(), |verdict: &Verdict| drop(verdict.judge())] {
        let mut killing = Killing::on(Kind::Sqlite, 0);
        killing.kill_at_points(&[(Point::EffectDone, Mode::Refuse)]);
        let verdict = Verdict::through(&killing.place, Trapped::careless);
        let judged = std::panic::catch_unwind(|| judge(&verdict)).unwrap_err();
        let said = judged.downcast_ref::<String>().expect("an assertion says what is wrong");
        assert!(said.contains("twice") || said.contains("Unknown"), "{said}");
    }
}

/// The kills of one store, in an order that a seed decides.
#[derive(Debug)]
struct Killing {
    place: Place,
    ledger: Ledger,
    chance: StdRng,
    started: u32,
}

fn kill_many(kind: Kind) {
    let said = |name| std::env::var(name).ok().map(|said| said.parse::<u64>().expect("a number"));
    let kills = said("KILLS").map_or(KILLS, |kills| usize::try_from(kills).unwrap());
    let seed = said("SEED").unwrap_or_else(rand::random);
    println!("{kind:?}: {kills} processes are killed, SEED={seed}");
    let (mut killing, begun) = (Killing::on(kind, seed), Instant::now());
    let named = killing.plan(kills.saturating_sub(AT_ANY_MOMENT));
    killing.kill_at_points(&named);
    Verdict::on(&killing.place).judge_deaths();
    killing.kill_at_any_moment(kills - named.len());
    let report = Verdict::on(&killing.place).judge();
    let (points, seconds) = (named.len(), begun.elapsed().as_secs());
    println!("{kind:?}: {kills} killed, {points} of them at named points, in {seconds} s: {report}");
}

impl Killing {
    fn on(kind: Kind, seed: u64) -> Self {
        let place = Place::new(kind);
        let ledger = Ledger::open(&place.ledger());
        Self { place, ledger, chance: StdRng::seed_from_u64(seed), started: 0 }
    }

    /// Who dies where: at each point once, then as often as there is time, each time in another kind of call.
    fn plan(&mut self, deaths: usize) -> Vec<(Point, Mode)> {
        let mut modes = Mode::ALL;
        let mut plan = TELLING.to_vec();
        for round in 0..modes.len() {
            let mut points = Point::ALL;
            points.shuffle(&mut self.chance);
            modes.shuffle(&mut self.chance);
            for point in points {
                // In the first round every point is there, later those that are left.
                let mut open = modes
                    .into_iter()
                    .filter(|mode| point.is_passed_by(*mode) && !plan.contains(&(point, *mode)));
                let is_there = plan.iter().any(|(planned, _)| *planned == point);
                if let Some(mode) = open.next().filter(|_| round > 0 || !is_there) {
                    plan.push((point, mode));
                }
            }
        }
        plan.truncate(deaths);
        plan
    }

    fn start(&mut self, trap: Option<(&'static str, Point, Mode, u32)>) -> Worker {
        self.started += 1;
        Worker::start(&self.place, Task { role: "traffic", number: self.started, trap })
    }

    /// Lets processes die at these points, one after the other, beside one that lives.
    fn kill_at_points(&mut self, plan: &[(Point, Mode)]) {
        for deaths in plan.chunks(COMPANY) {
            let companion = self.start(None);
            for (point, mode) in deaths {
                let nth = self.chance.random_range(1..=3);
                self.start(Some(("KILL", *point, *mode, nth))).die();
            }
            companion.end();
        }
    }

    /// Kills one of two processes after the other, each after something more has happened. One of them may also die at a
    /// point before that.
    fn kill_at_any_moment(&mut self, kills: usize) {
        let mut alive: Vec<Worker> = Vec::new();
        for _ in 0..kills {
            while alive.len() < 2 {
                let trap = self.trap().filter(|_| !alive.iter().any(Worker::is_trapped));
                alive.push(self.start(trap));
            }
            self.wait_for_some_lines();
            let killed = self.chance.random_range(0..alive.len());
            alive.swap_remove(killed).kill();
        }
        alive.into_iter().for_each(Worker::kill);
    }

    /// Some point of some kind of call, or none.
    fn trap(&mut self) -> Option<(&'static str, Point, Mode, u32)> {
        let (point, mode) = (*Point::ALL.choose(&mut self.chance)?, *Mode::ALL.choose(&mut self.chance)?);
        let nth = self.chance.random_range(1..=10);
        (point.is_passed_by(mode) && self.chance.random()).then_some(("KILL", point, mode, nth))
    }

    fn wait_for_some_lines(&mut self) {
        let lines = *[1, 3, 10, 30, 60].choose(&mut self.chance).unwrap();
        let (until, started) = (self.ledger.len() + lines * 25, Instant::now());
        while self.ledger.len() < until {
            assert!(started.elapsed() < PATIENCE, "nothing happens any more");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(self.chance.random_range(0..3_000)));
    }
}
