//! Processes that die, stop, and wake up too late, on real stores. The other processes are this test binary again, told by
//! the environment what to do.
//!
//! ```text
//! parent                     worker (many, each killed)
//! kills ── starts, kills ──► traffic ── calls ──► bodies ── write effects ──► ledger
//!   │                          │                    │
//!   │                          └── Trapped store ───┴── points: "here it dies"
//!   └── judges the ledger and the records when all are dead
//! ```

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod bodies;
mod crowd;
mod kills;
mod ledger;
mod modes;
mod places;
mod points;
mod poison;
mod traffic;
mod trapped;
mod verdict;
mod worker;
mod zombies;
