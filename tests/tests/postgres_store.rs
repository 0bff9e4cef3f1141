//! What only the PostgreSQL store does, on real servers. What every store does is the conformance suite's.

#[path = "postgres_store/support.rs"]
mod support;

#[path = "postgres_store/conforming.rs"]
mod conforming;
#[path = "postgres_store/doctor.rs"]
mod doctor;
#[path = "postgres_store/interruptions.rs"]
mod interruptions;
#[path = "postgres_store/processes.rs"]
mod processes;
#[path = "postgres_store/records.rs"]
mod records;
#[path = "postgres_store/survival.rs"]
mod survival;
#[path = "postgres_store/traffic.rs"]
mod traffic;
#[path = "postgres_store/waiting.rs"]
mod waiting;
