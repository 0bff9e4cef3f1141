//! Running the checker, and showing what it found.

use std::fmt::Write;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

use model::Protocol;
use stateright::{Checker, Model};

/// How much the checker has looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looked {
    /// Different states.
    pub states: usize,
    /// States that were generated, known ones included.
    pub generated: usize,
    /// How long it took.
    pub time: Duration,
}

impl AddAssign for Looked {
    fn add_assign(&mut self, other: Self) {
        self.states += other.states;
        self.generated += other.generated;
        self.time += other.time;
    }
}

/// Looks at every state, on one thread and nearest first: what it finds is the shortest way to it.
pub fn look(protocol: Protocol) -> (Looked, Option<String>) {
    let begun = Instant::now();
    let checker = protocol.checker().threads(1).spawn_bfs().join();
    let looked = Looked {
        states: checker.unique_state_count(),
        generated: checker.state_count(),
        time: begun.elapsed(),
    };
    let found = checker.discovery("kept").map(|path| {
        let mut shown = String::new();
        let mut broken = None;
        for (state, action) in path.into_vec() {
            if let Some(action) = action {
                let _ = writeln!(shown, "  {action:?}");
            }
            broken = Some(state);
        }
        if let Some(state) = broken {
            let _ = writeln!(shown, "  => {state:#?}");
        }
        shown
    });
    (looked, found)
}
