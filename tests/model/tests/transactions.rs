//! Calls in transactions: what they promise holds in every history within the bounds, and every safeguard is needed.

use std::time::Instant;

use model::transactions::{Kind, Mishaps, Safeguards, Transactions};
use stateright::{Checker, Model};

const ONE_OF_EACH: Mishaps =
    Mishaps { crashes: 1, drops: 1, errors: 1, rollbacks: 1, lost_commits: 1, endings: 1 };

/// Two in transactions, and one under a lease.
const CALLERS: [Kind; 3] = [Kind::InTransaction, Kind::InTransaction, Kind::UnderLease];

fn machine(replays_errors: bool, mishaps: Mishaps) -> Transactions {
    Transactions { callers: CALLERS.to_vec(), replays_errors, mishaps, safeguards: Safeguards::ALL }
}

#[test]
fn promises_hold_whatever_goes_wrong() {
    for replays_errors in [false, true] {
        let begun = Instant::now();
        let checker = machine(replays_errors, ONE_OF_EACH).checker().threads(1).spawn_bfs().join();
        let (states, generated) = (checker.unique_state_count(), checker.state_count());
        println!(
            "{states} states of {generated} in {:?}, errors replayed: {replays_errors}",
            begun.elapsed()
        );
        checker.assert_properties();
    }
}

#[test]
fn promises_hold_when_two_commits_are_lost() {
    let mishaps = Mishaps { lost_commits: 2, rollbacks: 0, drops: 0, ..ONE_OF_EACH };
    machine(false, mishaps).checker().threads(1).spawn_bfs().join().assert_properties();
}

/// Without what `remove` takes away, the checker finds that `promise` is broken.
fn harmed(promise: &'static str, remove: impl Fn(&mut Safeguards)) {
    let mut machine = machine(false, ONE_OF_EACH);
    remove(&mut machine.safeguards);
    machine.checker().threads(1).spawn_bfs().join().assert_any_discovery(promise);
}

#[test]
fn without_one_commit_there_is_a_result_without_its_effect() {
    harmed("no result without its effect", |on| on.one_commit = false);
}

#[test]
fn without_waiting_for_an_open_transaction_the_effect_is_there_twice() {
    harmed("the effect is there once at most", |on| on.waits_for_open = false);
}

#[test]
fn without_undoing_errors_there_is_an_effect_without_a_record() {
    harmed("no effect without a record", |on| on.undoes_errors = false);
}

#[test]
fn without_the_record_of_a_dropped_call_the_effect_is_there_twice() {
    harmed("the effect is there once at most", |on| on.keeps_dropped = false);
}

#[test]
fn without_noticing_another_transaction_there_is_an_effect_without_a_record() {
    harmed("no effect without a record", |on| on.notices_ending = false);
}

#[test]
fn with_records_of_their_own_both_kinds_of_calls_run() {
    harmed("the effect is there once at most", |on| on.one_table = false);
}
