//! What the command line asks for, done on the store.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::key::RecordKey;
use idempotent_runtime::store::{
    Compared, ListQuery, OwnerToken, Record, Resolution, Settled, State, Store, StoreResult, Stored,
};
use idempotent_runtime::{Idempotency, Severity, stores};

use crate::arguments::{Arguments, Command, List, Resolve};
use crate::show::{Format, say, show_finding, show_record};

type Done = Result<bool, Box<dyn Error>>;

/// A store that is not waited for without end: there is somebody in front of the screen.
struct Patient {
    store: Arc<dyn Store>,
    patience: Duration,
}

impl Patient {
    async fn asked<'s, T, F>(&'s self, ask: impl FnOnce(&'s dyn Store) -> F) -> Result<T, Box<dyn Error>>
    where
        F: Future<Output = StoreResult<T>>,
    {
        in_time(self.patience, ask(&*self.store)).await
    }
}

async fn in_time<T, E: Into<Box<dyn Error>>>(
    patience: Duration,
    asked: impl Future<Output = Result<T, E>>,
) -> Result<T, Box<dyn Error>> {
    match tokio::time::timeout(patience, asked).await {
        Ok(answer) => answer.map_err(Into::into),
        Err(_) => Err(format!(
            "the store has not answered for {} seconds; whether it did what it was asked, `inspect` shows",
            patience.as_secs()
        )
        .into()),
    }
}

/// How many records are listed or deleted in one request.
const BATCH: usize = 1_000;

/// Whether there was something to do, and it is done.
pub(crate) async fn run(arguments: Arguments) -> Done {
    let url = arguments.url.ok_or("which store? Give `--url`, or set IDEMPOTENT_URL")?;
    let format = if arguments.json { Format::Json } else { Format::Text };
    let patience = Duration::from_secs(arguments.timeout);
    let store = in_time(patience, Box::pin(stores::open_existing(&url))).await?;
    let store = Patient { store, patience };
    match arguments.command {
        Command::Inspect { key } => inspect(&store, &key, format).await,
        Command::List(query) => list(&store, query, format).await,
        Command::Resolve(resolve) => settle(&store, resolve, format).await,
        Command::Forget { key, seen, with_result } => {
            let Some(record) = see(&store, &key, seen.as_deref(), format).await? else { return Ok(false) };
            forget(&store, record, with_result, format).await
        }
        Command::Purge { limit } => purge(&store, limit, format).await,
        Command::Doctor => doctor(&store, format).await,
    }
}

async fn inspect(store: &Patient, key: &str, format: Format) -> Done {
    let Some(record) = load(store, key, format).await? else { return Ok(false) };
    show_record(&record, format);
    Ok(true)
}

async fn list(store: &Patient, list: List, format: Format) -> Done {
    let mut query = ListQuery {
        operation: list.operation,
        state: list.state.map(Into::into),
        stuck: list.stuck,
        ..ListQuery::default()
    };
    let (mut left, mut found) = (list.limit, false);
    while left > 0 {
        query.limit = left.min(BATCH);
        let page = store.asked(|store| store.list(&query)).await?;
        for record in &page.records {
            show_record(record, format);
            found = true;
        }
        left = left.saturating_sub(page.records.len());
        if page.next.is_none() {
            break;
        }
        query.after = page.next;
    }
    if !found && matches!(format, Format::Text) {
        // Not on the output, which is a list of none.
        eprintln!("no such records");
    }
    Ok(true)
}

async fn settle(store: &Patient, resolve: Resolve, format: Format) -> Done {
    let resolution = match resolve.found.done {
        Some(json) => {
            serde_json::from_str::<serde_json::Value>(&json)
                .map_err(|error| format!("the result is not JSON: {error}"))?;
            let stored = Stored { version: resolve.result_version, bytes: json.into_bytes().into() };
            Resolution::Done { settled: Settled::Completed(stored), keep: Duration::from_secs(resolve.ttl) }
        }
        None => Resolution::NotDone,
    };
    let Some(record) = see(store, &resolve.key, resolve.seen.as_deref(), format).await? else {
        return Ok(false);
    };
    let replacement = OwnerToken::random();
    let resolve = |store| Store::resolve(store, &record.key, record.owner, replacement, &resolution);
    let resolved = store.asked(resolve).await?;
    Ok(told(resolved, "resolved", format))
}

/// A token says who had the record, and not whether that attempt has completed since it was seen: a late result goes only
/// with those who say that they know of it.
async fn forget(store: &Patient, record: Record, with_result: bool, format: Format) -> Done {
    let has_result = matches!(&record.state, State::Settled(settled) if settled.stored().is_some());
    if has_result && !with_result {
        match format {
            Format::Json => say!("{}", serde_json::json!({ "forgotten": false })),
            Format::Text => {
                say!("not forgotten: the record holds a result; add `--with-result` to delete it");
            }
        }
        show_record(&record, format);
        return Ok(false);
    }
    let idempotency =
        Idempotency::builder().store(Arc::clone(&store.store)).store_timeout(store.patience).build()?;
    Ok(told(idempotency.forget(&record).await?, "forgotten", format))
}

async fn purge(store: &Patient, limit: usize, format: Format) -> Done {
    let mut purged = 0;
    while purged < limit {
        let batch = store.asked(|store| store.purge(BATCH.min(limit - purged))).await?;
        purged += batch;
        if batch == 0 {
            break;
        }
    }
    match format {
        Format::Json => say!("{}", serde_json::json!({ "purged": purged })),
        Format::Text => say!("{purged} expired records deleted"),
    }
    Ok(true)
}

async fn doctor(store: &Patient, format: Format) -> Done {
    let findings = store.asked(<dyn Store>::examine).await?;
    if findings.is_empty() && matches!(format, Format::Text) {
        say!("nothing was found that breaks or weakens the promise");
    }
    for finding in &findings {
        show_finding(finding, format);
    }
    Ok(!findings.iter().any(|finding| finding.severity == Severity::Breaks))
}

/// The record as it is now, with the token that was seen before, if one was.
async fn see(
    store: &Patient,
    key: &str,
    seen: Option<&str>,
    format: Format,
) -> Result<Option<Record>, Box<dyn Error>> {
    let Some(mut record) = load(store, key, format).await? else { return Ok(None) };
    if let Some(seen) = seen {
        record.owner =
            token(seen).ok_or("`--seen` is the 32 hex digits that `inspect` shows as the owner")?;
    }
    Ok(Some(record))
}

fn token(hex: &str) -> Option<OwnerToken> {
    let well_formed = hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bits = well_formed.then(|| u128::from_str_radix(hex, 16).ok())??;
    Some(OwnerToken::from_bytes(bits.to_be_bytes()))
}

async fn load(store: &Patient, key: &str, format: Format) -> Result<Option<Record>, Box<dyn Error>> {
    let record_key = RecordKey::new("", key);
    let record = store.asked(|store| store.load(&record_key)).await?;
    if record.is_none() {
        match format {
            Format::Json => say!("null"),
            Format::Text => say!(
                "there is no record with this key, or it has expired; a key is whole as `list` shows it, with its namespace"
            ),
        }
    }
    Ok(record)
}

/// Says whether a change was made, and if not, what is there.
fn told(compared: Compared, done: &str, format: Format) -> bool {
    let (changed, found) = match compared {
        Compared::Changed => (true, None),
        Compared::Differs(found) => (false, found),
    };
    match (format, changed) {
        (Format::Json, _) => say!("{}", serde_json::json!({ done: changed })),
        (Format::Text, true) => say!("{done}"),
        (Format::Text, false) if found.is_none() => say!("not {done}: the record is gone"),
        (Format::Text, false) => {
            say!("not {done}: the record is live, completed, or has changed since it was seen; it is now");
        }
    }
    if let Some(record) = found {
        show_record(&record, format);
    }
    changed
}
