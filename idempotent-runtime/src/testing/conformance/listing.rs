//! What an administrator is shown.

use std::collections::BTreeMap;

use super::bench::{Bench, Checked, LEASE, begun, completed, fail, holds, same, tokens, unchanged};
use super::checks;
use crate::key::RecordKey;
use crate::store::{Lease, ListQuery, Record, Release, Reserve, Settled, StateName, Stored};

checks!("listing":
    everything_of_an_operation,
    only_of_the_operation,
    by_state,
    only_what_is_stuck,
    pages_lose_and_repeat_nothing,
    pages_lose_nothing_while_others_come_and_go,
    operations_are_told_apart,
    nothing_expired_is_shown,
);

/// Every record that the query asks for, a few at a time; by key.
async fn all(t: &Bench, mut query: ListQuery) -> Checked<BTreeMap<String, Record>> {
    let mut seen = BTreeMap::new();
    // A store whose pages never end must not hang the suite.
    for _ in 0..100_000 {
        let page = t.store.list(&query).await?;
        holds("a page keeps to its limit", page.records.len() <= query.page_size())?;
        for record in page.records {
            let key = record.key.as_str().to_owned();
            if seen.insert(key.clone(), record).is_some() {
                return fail(format!("list: {key} was shown twice"));
            }
        }
        query.after = page.next;
        if query.after.is_none() {
            return Ok(seen);
        }
    }
    fail("list: expected an end, saw 100,000 pages")
}

fn of(t: &Bench) -> ListQuery {
    ListQuery { operation: Some(t.operation().to_owned()), ..ListQuery::default() }
}

fn keys(records: &BTreeMap<String, Record>) -> Vec<String> {
    records.keys().cloned().collect()
}

/// One record of every state; the names of their keys end as the states are called.
async fn one_of_each(t: &Bench) -> Checked {
    let [a] = tokens();
    let stored = || Stored { version: 1, bytes: b"x".as_slice().into() };
    let ends = [
        ("live", None),
        ("abandoned", None),
        ("completed", Some(Settled::Completed(stored()))),
        ("failed", Some(Settled::Failed(stored()))),
        ("not_retained", Some(Settled::NotRetained)),
        ("unknown", Some(Settled::Unknown)),
    ];
    for (name, end) in ends {
        let key = t.key_of(name);
        t.grant(&key, a).await?;
        t.store.put_step(&key, a, &begun("one"), LEASE).await?;
        match end {
            Some(end) => t.complete(&key, a, &end).await?,
            None if name == "abandoned" => t.abandon(&key, a).await?,
            None => {}
        }
    }
    Ok(())
}

fn named(t: &Bench, names: &[&str]) -> Vec<String> {
    let mut keys: Vec<_> = names.iter().map(|name| t.key_of(name).as_str().to_owned()).collect();
    keys.sort();
    keys
}

async fn everything_of_an_operation(t: &Bench) -> Checked {
    one_of_each(t).await?;
    let records = all(t, of(t)).await?;
    let expected = named(t, &["live", "abandoned", "completed", "failed", "not_retained", "unknown"]);
    same("the keys", &keys(&records), &expected)?;
    for record in records.values() {
        same("operation", &**record.key.operation(), t.operation())?;
        let loaded = t.load(&record.key).await?;
        unchanged("the record, loaded after it was listed", record, &loaded)?;
    }
    Ok(())
}

async fn only_of_the_operation(t: &Bench) -> Checked {
    one_of_each(t).await?;
    let query = ListQuery { operation: Some(format!("{}x", t.operation())), ..ListQuery::default() };
    same("the keys of another operation", &keys(&all(t, query).await?), &vec![])
}

async fn by_state(t: &Bench) -> Checked {
    one_of_each(t).await?;
    let cases: [(StateName, &[&str]); 5] = [
        (StateName::Running, &["live", "abandoned"]),
        (StateName::Completed, &["completed"]),
        (StateName::Failed, &["failed"]),
        (StateName::NotRetained, &["not_retained"]),
        (StateName::Unknown, &["unknown"]),
    ];
    for (state, names) in cases {
        let records = all(t, ListQuery { state: Some(state), ..of(t) }).await?;
        same(state.as_str(), &keys(&records), &named(t, names))?;
    }
    Ok(())
}

async fn only_what_is_stuck(t: &Bench) -> Checked {
    one_of_each(t).await?;
    let stuck = ListQuery { stuck: true, ..of(t) };
    same("stuck", &keys(&all(t, stuck.clone()).await?), &named(t, &["abandoned", "unknown"]))?;
    let running = ListQuery { state: Some(StateName::Running), ..stuck };
    same("stuck and running", &keys(&all(t, running).await?), &named(t, &["abandoned"]))
}

async fn pages_lose_and_repeat_nothing(t: &Bench) -> Checked {
    let mut expected = Vec::new();
    for _ in 0..10 {
        let key = t.key();
        let [a] = tokens();
        t.grant(&key, a).await?;
        t.complete(&key, a, &completed(b"x")).await?;
        expected.push(key.as_str().to_owned());
    }
    expected.sort();
    for limit in [1, 3, 5, 10, 11, 0] {
        let records = all(t, ListQuery { limit, ..of(t) }).await?;
        same(&format!("the keys, {limit} a page"), &keys(&records), &expected)?;
    }
    Ok(())
}

async fn pages_lose_nothing_while_others_come_and_go(t: &Bench) -> Checked {
    let [a] = tokens();
    let (mut stay, mut go) = (Vec::new(), Vec::new());
    for _ in 0..12 {
        let (staying, going) = (t.key(), t.key());
        t.grant(&staying, a).await?;
        t.grant(&going, a).await?;
        stay.push(staying);
        go.push(going);
    }
    let mut query = ListQuery { limit: 3, ..of(t) };
    let mut seen = Vec::new();
    for page_number in 0..10_000 {
        let page = t.store.list(&query).await?;
        seen.extend(page.records.into_iter().map(|record| record.key.as_str().to_owned()));
        query.after = page.next;
        if query.after.is_none() {
            let lost: Vec<_> =
                stay.iter().filter(|key| !seen.iter().any(|seen| seen == key.as_str())).collect();
            return holds(&format!("all that stayed are shown; not so {lost:?}"), lost.is_empty());
        }
        // Of what is there all the time one is settled, of the others one goes, and one comes.
        if let Some(key) = stay.get(page_number) {
            t.complete(key, a, &completed(b"x")).await?;
        }
        if let Some(key) = go.pop() {
            t.store.release(&key, a, Release::Forget).await?;
            t.grant(&t.key(), a).await?;
        }
    }
    fail("list: expected an end, saw 10,000 pages")
}

async fn operations_are_told_apart(t: &Bench) -> Checked {
    let name = t.operation();
    let others = [
        format!("{name} "),
        name.to_uppercase(),
        format!("{name}%"),
        format!("{name}'"),
        format!("{name}\\"),
    ];
    let [a] = tokens();
    for operation in &others {
        let key = RecordKey::new(operation.clone(), format!("{operation}/key"));
        t.grant(&key, a).await?;
    }
    same("the keys of the one without any", &keys(&all(t, of(t)).await?), &vec![])?;
    for operation in &others {
        let records =
            all(t, ListQuery { operation: Some(operation.clone()), ..ListQuery::default() }).await?;
        same(operation, &keys(&records), &vec![format!("{operation}/key")])?;
    }
    Ok(())
}

async fn nothing_expired_is_shown(t: &Bench) -> Checked {
    let [a] = tokens();
    let lease = Lease { duration: t.tick, unknown_ttl: t.tick };
    let (silent, unknown) = (t.key(), t.key());
    t.store.reserve(Reserve { lease, ..t.request(&silent, a) }).await?;
    t.grant(&unknown, a).await?;
    t.store.complete(&unknown, a, &Settled::Unknown, t.tick * 2).await?;
    t.advance(t.tick * 3).await;
    for stuck in [false, true] {
        same("the keys", &keys(&all(t, ListQuery { stuck, ..of(t) }).await?), &vec![])?;
    }
    Ok(())
}
