//! Everything in the library that reads what others wrote, fed with bytes. A function here panics when its reader does, or
//! when what it read is not what was written.
//!
//! Some readers are private to their crates; their files are compiled into this one for that reason.

pub use idempotent_runtime::{fingerprint, key, store, stores};

mod attribute;
mod records;
mod urls;

pub use attribute::{attribute, key_template, skip_path, ttl};
pub use records::{mysql_steps, record_key, redis_record, sql_row};
pub use urls::{redis_url, store_url};
