//! The stores that need no server keep the promises of the contract, and the suite notices a store that does not.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::testing::ManualClock;
use idempotent_runtime::testing::conformance::{self, Subject};

use self::buggy::{Bug, Buggy};

#[path = "conformance/buggy.rs"]
mod buggy;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_by_a_manual_clock() {
    let clock = ManualClock::default();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    conformance::run(Subject::new(store).clock(clock)).await;
}

#[tokio::test(start_paused = true)]
async fn memory_by_a_paused_clock() {
    conformance::run(MemoryStore::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_by_real_time() {
    conformance::run(MemoryStore::new()).await;
}

/// Each bug, and a check that has to notice it.
const BUGS: &[(Bug, &str)] = &[
    (Bug::CompleteByAnybody, "completing::owner_settles_once"),
    (Bug::ReleaseByAnybody, "owning::stranger_is_powerless"),
    (Bug::RenewalIsAlwaysApplied, "owning::stranger_is_powerless"),
    (Bug::ReserveIsNotRepeatable, "reserving::same_token_is_granted_again"),
    (Bug::CompleteIsNotRepeatable, "completing::again_changes_nothing"),
    (Bug::TakesOverOtherArguments, "take_over::every_policy_against_every_history"),
    (Bug::ForgetsMarks, "take_over::every_policy_against_every_history"),
    (Bug::KeepsWholeSeconds, "expiring::result_expires"),
    (Bug::LosesSteps, "steps::begun_then_done"),
    (Bug::KeepsTheTokenWhenResolved, "operating::resolve_shuts_out_the_late_owner"),
    (Bug::CountsFromTheReservation, "expiring::result_is_kept_from_its_completion"),
    (Bug::FoldsCase, "content::keys_are_told_apart"),
    (Bug::SettlesInTheNameOfWhoAsks, "take_over::last_attempt_settles_unknown"),
    (Bug::LongestLeaseLeavesNothing, "spans::longest_lease_ends_when_it_is_ended"),
    (Bug::ZeroMeansForever, "spans::nothing_is_kept_for_no_time"),
    (Bug::TokenOutlivesItsRecord, "spans::expired_token_is_granted_anew"),
    (Bug::FinishedStepDoesNotRenew, "steps::finished_step_renews_too"),
    (Bug::SettledRecordTakesSteps, "steps::settled_record_takes_no_step"),
    (Bug::PagesByNumber, "listing::pages_lose_nothing_while_others_come_and_go"),
    (Bug::MixesOperations, "listing::operations_are_told_apart"),
    (Bug::ForgetsWhatIsThere, "operating::forget_again_finds_nothing"),
    (Bug::ForgetsTheLiving, "operating::renewed_record_is_left_alone"),
    (Bug::ResolvesTwice, "operating::resolve_not_done_again_changes_nothing"),
    (Bug::NobodyIsNoToken, "operating::exhausted_record_is_resolved"),
    (Bug::NobodyIsNoToken, "operating::unused_record_is_resolved"),
    (Bug::CutsResultsOff, "content::result_beyond_the_limit_is_refused_and_the_record_stays"),
    (Bug::TooLargeIsUnavailable, "content::result_beyond_the_limit_is_refused_and_the_record_stays"),
    (Bug::PurgesWhatHasCome, "races::purge_beside_reservations"),
    (Bug::SleepsThroughTheLastAttempt, "watching::exhaustion_wakes"),
    (Bug::SleepsThroughTheLastAttempt, "watching::unused_release_wakes"),
];

#[tokio::test(start_paused = true)]
async fn suite_notices_every_bug() {
    for (bug, check) in BUGS {
        let clock = ManualClock::default();
        let store = MemoryStore::builder().clock(clock.clone()).build();
        let subject = Subject::new(Buggy::new(store, clock.clone(), *bug)).clock(clock);
        let report = conformance::report(subject).await;
        assert!(
            report.failed.iter().any(|(name, _)| name == check),
            "{check} does not notice {bug:?}: {report}"
        );
    }
}

#[tokio::test]
async fn checks_can_be_left_out_and_are_named() {
    let report =
        conformance::report(Subject::new(MemoryStore::new()).skip("", "only to see that it is said")).await;
    assert!(report.passed.is_empty() && report.failed.is_empty());
    let skipped: Vec<_> = report.skipped.iter().map(|(name, _)| *name).collect();
    assert_eq!(skipped, conformance::names().collect::<Vec<_>>());
}
