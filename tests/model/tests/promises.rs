//! Every promise holds in every history within the bounds, under every policy.

mod checking;

use checking::{Looked, look};
use model::{Body, Bounds, OnCrash, OnError, Promise, Protocol, Setting, Witness};

const BODIES: [Body; 3] = [Body::Plain, Body::Effects, Body::Step];
const CRASHES: [OnCrash; 3] = [OnCrash::Refuse, OnCrash::Retry, OnCrash::RetryBeforeEffects];
const ERRORS: [OnError; 3] = [OnError::Retry, OnError::Replay, OnError::Refuse];

#[test]
fn promises_hold_under_every_policy() {
    let mut total = Looked::default();
    for body in BODIES {
        for on_crash in CRASHES {
            for on_error in ERRORS {
                total += holds(Setting { body, on_crash, on_error, ..Setting::default() });
            }
        }
    }
    println!("{total:?} in all");
}

fn holds(setting: Setting) -> Looked {
    let (looked, counterexample) = look(Protocol::new(setting));
    println!("{looked:?}: {:?} {:?} {:?}", setting.body, setting.on_crash, setting.on_error);
    assert!(counterexample.is_none(), "{setting:#?}\n{}", counterexample.unwrap_or_default());
    looked
}
