//! What only the DynamoDB store does: clocks, requests, items, lost answers. What every store does is the conformance
//! suite's.

#[path = "dynamodb_store/fakes.rs"]
mod fakes;
#[path = "dynamodb_store/support.rs"]
mod support;

#[path = "dynamodb_store/clocks.rs"]
mod clocks;
#[path = "dynamodb_store/conforming.rs"]
mod conforming;
#[path = "dynamodb_store/damage.rs"]
mod damage;
#[path = "dynamodb_store/doctor.rs"]
mod doctor;
#[path = "dynamodb_store/failures.rs"]
mod failures;
#[path = "dynamodb_store/processes.rs"]
mod processes;
#[path = "dynamodb_store/records.rs"]
mod records;
#[path = "dynamodb_store/requests.rs"]
mod requests;
#[path = "dynamodb_store/survival.rs"]
mod survival;
