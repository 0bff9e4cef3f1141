//! Every promise holds in every history within the bounds, under every policy.

mod checking;

use checking::{Looked, look};
use model::{Body, Bounds, OnCrash, OnError, Protocol, Setting};

const BODIES: [Body; 3] = [Body::Plain, Body::Effects, Body::Step];
const CRASHES: [OnCrash; 3] = [OnCrash::Refuse, OnCrash::Retry, OnCrash::RetryBeforeEffects];
const ERRORS: [OnError; 3] = [OnError::Retry, OnError::Replay, OnError::Refuse];

/// Nothing goes wrong; each test adds what it is about. All of it at once is more than can be looked at in a minute.
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

/// What goes wrong together, beside a lease that ends early.
const MISHAPS: [Bounds; 4] = [
    Bounds { crashes: 1, renewals: 1, ..CALM },
    Bounds { losses: 1, crashes: 1, ..CALM },
    Bounds { drops: 1, give_ups: 1, ..CALM },
    Bounds { repairs: 1, expiries: 1, ..CALM },
];

fn under_every_policy(mut setting: Setting, mishaps: &[Bounds]) {
    let mut total = Looked::default();
    for body in BODIES {
        for on_crash in CRASHES {
            for on_error in ERRORS {
                for bounds in mishaps {
                    setting = Setting { body, on_crash, on_error, bounds: *bounds, ..setting };
                    total += holds(setting);
                }
            }
        }
    }
    println!("{total:?} in all");
}

#[test]
fn promises_hold_under_every_policy() {
    under_every_policy(Setting::default(), &MISHAPS);
}

fn holds(setting: Setting) -> Looked {
    let (looked, counterexample) = look(Protocol::new(setting));
    println!(
        "{looked:?}: {:?} {:?} {:?} {:?}",
        setting.body, setting.on_crash, setting.on_error, setting.bounds
    );
    assert!(counterexample.is_none(), "{setting:#?}\n{}", counterexample.unwrap_or_default());
    looked
}

#[test]
fn promises_hold_for_three_callers_at_once() {
    under_every_policy(Setting { workers: 3, calls: 1, ..Setting::default() }, &MISHAPS);
}

#[test]
fn promises_hold_for_callers_that_wait_and_that_bring_other_arguments() {
    let mishaps = [Bounds { crashes: 1, drops: 1, ..CALM }];
    under_every_policy(Setting { wait: true, calls: 1, workers: 3, ..Setting::default() }, &mishaps);
    under_every_policy(Setting { other_arguments: true, ..Setting::default() }, &mishaps);
}
