//! What a program would see in its log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

/// One event of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub level: String,
    pub message: String,
    pub fields: BTreeMap<&'static str, String>,
}

/// Collects the library's events of this thread for as long as its guard lives.
#[derive(Clone, Default)]
pub struct Collector(Arc<Mutex<Vec<Told>>>);

impl Collector {
    pub fn listen(&self) -> DefaultGuard {
        tracing::subscriber::set_default(self.clone())
    }

    pub fn all(&self) -> Vec<Told> {
        self.0.lock().unwrap().clone()
    }

    /// The only event with this message.
    pub fn only(&self, message: &str) -> Told {
        let all = self.all();
        let mut with_it = all.iter().filter(|told| told.message == message);
        let found = with_it.next().unwrap_or_else(|| panic!("no `{message}` in {all:#?}"));
        assert!(with_it.next().is_none(), "`{message}` is told twice: {all:#?}");
        found.clone()
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("idempotent")
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        assert_eq!(event.metadata().target(), "idempotent", "{event:?}");
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        let level = event.metadata().level().to_string().to_lowercase();
        self.0.lock().unwrap().push(Told { level, message, fields: fields.0 });
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
