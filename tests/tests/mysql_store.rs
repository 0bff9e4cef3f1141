//! What only the MySQL store does, on a real MariaDB. What every store does is the conformance suite's.

#[path = "mysql_store/support.rs"]
mod support;

#[path = "mysql_store/conforming.rs"]
mod conforming;
#[path = "mysql_store/doctor.rs"]
mod doctor;
#[path = "mysql_store/failures.rs"]
mod failures;
#[path = "mysql_store/processes.rs"]
mod processes;
#[path = "mysql_store/records.rs"]
mod records;
#[path = "mysql_store/schema.rs"]
mod schema;
#[path = "mysql_store/survival.rs"]
mod survival;
#[path = "mysql_store/trips.rs"]
mod trips;
