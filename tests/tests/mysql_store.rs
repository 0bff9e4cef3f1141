//! What only the MySQL store does, on a real MariaDB. What every store does is the conformance suite's.

#[path = "mysql_store/support.rs"]
mod support;

#[path = "mysql_store/conforming.rs"]
mod conforming;
