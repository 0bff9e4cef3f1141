//! Every protection is needed: without it the checker finds a promise broken. So it would notice if the code lost one.

mod checking;

use checking::look;
use model::{Body, Bounds, OnCrash, OnError, Promise, Protections, Protocol, Setting, Witness};

const CALM: Bounds = Bounds {
    crashes: 0,
    drops: 0,
    losses: 0,
    give_ups: 0,
    lease_ends: 1,
    renewals: 0,
    expiries: 0,
    repairs: 0,
};

fn setting(on_crash: OnCrash, bounds: Bounds) -> Setting {
    Setting { on_crash, bounds, ..Setting::default() }
}

/// Leaves something out, and expects the shortest way to the harm.
fn harmed(promise: Promise, mut setting: Setting, leave_out: impl FnOnce(&mut Protections)) {
    let only = Some(promise);
    let (_, found) = look(Protocol { only, ..Protocol::new(setting) });
    assert!(found.is_none(), "with every protection {promise:?} holds:\n{}", found.unwrap_or_default());
    leave_out(&mut setting.protections);
    let (looked, found) = look(Protocol { only, ..Protocol::new(setting) });
    let found = found.unwrap_or_else(|| panic!("{promise:?} holds without it, after {looked:?}"));
    let steps = found.lines().take_while(|line| !line.contains("=>")).count();
    println!("{looked:?}: {promise:?} is broken in {steps} steps");
}

#[test]
fn without_the_token_in_complete_there_are_two_results() {
    harmed(Promise::OneResult, setting(OnCrash::Retry, CALM), |on| on.token_in_complete = false);
}

#[test]
fn without_the_token_in_release_a_stale_owner_deletes() {
    let bounds = Bounds { drops: 1, ..CALM };
    harmed(Promise::NothingStaleWrites, setting(OnCrash::Retry, bounds), |on| on.token_in_release = false);
}

#[test]
fn without_the_token_in_renew_a_stale_owner_renews() {
    let bounds = Bounds { renewals: 1, ..CALM };
    harmed(Promise::NothingStaleWrites, setting(OnCrash::Retry, bounds), |on| on.token_in_renew = false);
}

#[test]
fn without_the_token_in_marks_an_effect_happens_again() {
    let setting = Setting { body: Body::Effects, ..setting(OnCrash::RetryBeforeEffects, CALM) };
    harmed(Promise::NoEffectAgain, setting, |on| on.token_in_marks = false);
}

#[test]
fn with_tokens_that_are_counted_from_one_again_a_stale_owner_writes() {
    let bounds = Bounds { expiries: 1, ..CALM };
    let setting = setting(OnCrash::Retry, bounds);
    let mut without = setting;
    without.protections.random_tokens = false;
    let only = Some(Promise::NothingStaleWrites);
    assert!(look(Protocol { only, ..Protocol::new(setting) }).1.is_none());
    assert!(look(Protocol { only, ..Protocol::new(without) }).1.is_some());
}

#[test]
fn without_a_repeatable_reserve_a_call_is_blocked_by_itself() {
    let bounds = Bounds { losses: 1, ..CALM };
    harmed(Promise::NotBlockedByItself, setting(OnCrash::Refuse, bounds), |on| {
        on.reserve_is_repeatable = false;
    });
}

#[test]
fn without_a_repeatable_complete_a_stored_result_is_called_lost() {
    let bounds = Bounds { losses: 1, ..CALM };
    harmed(Promise::OutcomeIsTrue, setting(OnCrash::Refuse, bounds), |on| on.complete_is_repeatable = false);
}

#[test]
fn without_equal_fingerprints_a_body_works_for_other_arguments() {
    let setting = Setting { other_arguments: true, ..setting(OnCrash::Retry, Bounds { crashes: 1, ..CALM }) };
    harmed(Promise::OneFingerprint, setting, |on| on.equal_fingerprint_at_take_over = false);
}

#[test]
fn without_a_new_token_in_resolve_a_late_owner_is_told_what_is_not_so() {
    let bounds = Bounds { repairs: 1, ..CALM };
    harmed(Promise::OutcomeIsTrue, setting(OnCrash::Refuse, bounds), |on| on.resolve_replaces_token = false);
}

#[test]
fn with_a_ttl_while_running_a_body_starts_after_silence() {
    let bounds = Bounds { expiries: 1, ..CALM };
    harmed(Promise::NoBodyAfterSilence, setting(OnCrash::Refuse, bounds), |on| {
        on.no_ttl_while_running = false;
    });
}

#[test]
fn with_a_release_in_place_of_abandoning_a_body_starts_after_silence() {
    let bounds = Bounds { drops: 1, ..CALM };
    harmed(Promise::NoBodyAfterSilence, setting(OnCrash::Refuse, bounds), |on| {
        on.drop_in_body_abandons = false;
    });
}

#[test]
fn without_heeding_a_lost_mark_an_effect_happens_again() {
    let setting = Setting { body: Body::Effects, ..setting(OnCrash::RetryBeforeEffects, CALM) };
    harmed(Promise::NoEffectAgain, setting, |on| on.lost_mark_stops_body = false);
}

#[test]
fn without_the_steps_of_earlier_attempts_a_step_runs_again() {
    let setting = Setting { body: Body::Step, ..setting(OnCrash::Retry, Bounds { crashes: 1, ..CALM }) };
    harmed(Promise::NoStepAgain, setting, |on| on.take_over_keeps_steps = false);
}

#[test]
fn without_keeping_steps_in_a_release_a_step_runs_again() {
    let setting = Setting { body: Body::Step, ..setting(OnCrash::Refuse, CALM) };
    harmed(Promise::NoStepAgain, setting, |on| on.forget_keeps_steps = false);
}

#[test]
fn without_keeping_earlier_attempts_an_unused_take_over_runs_a_step_again() {
    let bounds = Bounds { crashes: 1, drops: 1, ..CALM };
    let setting = Setting { body: Body::Step, ..setting(OnCrash::Retry, bounds) };
    harmed(Promise::NoStepAgain, setting, |on| on.unused_keeps_earlier_attempts = false);
}

#[test]
fn with_renewals_that_outlive_the_body_somebody_waits_for_ever() {
    let setting =
        Setting { wait: true, ..setting(OnCrash::Retry, Bounds { crashes: 1, lease_ends: 0, ..CALM }) };
    harmed(Promise::NobodyWaitsForEver, setting, |on| on.renewal_ends_with_body = false);
}

#[test]
fn without_saying_that_a_completion_came_too_late_the_outcome_is_not_true() {
    harmed(Promise::OutcomeIsTrue, setting(OnCrash::Retry, CALM), |on| on.lost_completion_is_told = false);
}

/// When the attempts are used up, a late repetition of a reservation may settle the record, while the call that it is of is
/// still at work.
#[test]
fn without_leaving_what_is_used_up_to_nobody_the_outcome_is_not_true() {
    let bounds = Bounds { losses: 1, lease_ends: 2, ..CALM };
    let setting = Setting { max_attempts: 2, ..setting(OnCrash::Retry, bounds) };
    harmed(Promise::OutcomeIsTrue, setting, |on| on.exhausted_is_nobodys = false);
}

#[test]
fn promises_hold_when_attempts_are_used_up() {
    let bounds = Bounds { losses: 1, lease_ends: 2, ..CALM };
    let setting = Setting { max_attempts: 2, ..setting(OnCrash::Retry, bounds) };
    for promise in Promise::ALL {
        let (_, found) = look(Protocol { only: Some(promise), ..Protocol::new(setting) });
        assert!(found.is_none(), "{promise:?}\n{}", found.unwrap_or_default());
    }
}

#[test]
fn what_the_promises_are_about_does_happen() {
    let all = Bounds { crashes: 1, repairs: 1, ..CALM };
    for (witness, on_crash, body) in [
        (Witness::Replay, OnCrash::Refuse, Body::Plain),
        (Witness::TakeOver, OnCrash::Retry, Body::Plain),
        (Witness::StaleCompletion, OnCrash::Retry, Body::Plain),
        (Witness::SkippedStep, OnCrash::Refuse, Body::Step),
        (Witness::Repaired, OnCrash::Refuse, Body::Plain),
    ] {
        let setting = Setting { body, on_error: OnError::Retry, ..setting(on_crash, all) };
        let protocol = Protocol { witness: Some(witness), ..Protocol::new(setting) };
        assert!(look(protocol).1.is_some(), "{witness:?} happens");
    }
}
