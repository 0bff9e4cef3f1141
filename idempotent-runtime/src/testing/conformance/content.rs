//! Keys and results come back byte for byte.

use super::bench::{Bench, Checked, LEASE, done, held, holds, same, settled, tokens};
use super::checks;
use crate::fingerprint::Fingerprint;
use crate::key::RecordKey;
use crate::store::{PutStep, Reserve, Settled, Stored, Write};

checks!("content":
    keys_are_told_apart,
    longest_key_fits,
    results_come_back,
    large_result_comes_back,
    result_beyond_the_limit_is_refused_and_the_record_stays,
    fingerprint_comes_back,
    step_results_come_back,
);

async fn keys_are_told_apart(t: &Bench) -> Checked {
    // Each pair is one key to some collation, escape or pattern.
    let ends = [
        "a", "A", "a ", " a", "a  ", "ä", "a\u{308}", "Å", "ß", "ss", "ı", "i", "İ", "🦀", "a/b", "a//b",
        "a%", "a_", "a*", "a?", "a[b]", "{a}", "a:b", "a\\", "a'", "a\"", "a\n", "a\t", "~", "",
    ];
    let [a] = tokens();
    for end in ends {
        let key = t.key_of(end);
        t.absent(&format!("{end:?} before"), &key).await?;
        t.grant(&key, a).await?;
        t.complete(&key, a, &Settled::Completed(stored(1, end.as_bytes()))).await?;
    }
    for end in ends {
        let record = t.load(&t.key_of(end)).await?;
        same("key", &record.key, &t.key_of(end))?;
        let expected = Settled::Completed(stored(1, end.as_bytes()));
        same(&format!("{end:?}"), &settled("state", &record)?, &expected)?;
    }
    Ok(())
}

async fn longest_key_fits(t: &Bench) -> Checked {
    let room = 255_usize.saturating_sub(t.key_of("").as_str().len());
    let (one, two) = (t.key_of(&"x".repeat(room)), t.key_of(&format!("{}y", "x".repeat(room - 1))));
    same("its length", &one.as_str().len(), &255)?;
    let [a, b] = tokens();
    t.grant(&one, a).await?;
    t.grant(&two, b).await?;
    same("owner", &t.load(&one).await?.owner, &a)?;
    same("owner of the other", &t.load(&two).await?.owner, &b)
}

fn stored(version: u32, bytes: &[u8]) -> Stored {
    Stored { version, bytes: bytes.into() }
}

async fn results_come_back(t: &Bench) -> Checked {
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let cases: [(u32, &[u8]); 6] = [
        (1, b""),
        (0, b"\0"),
        (u32::MAX, b"\xff"),
        (2, &every_byte),
        (3, b"{\"a\":1}"),
        (4, "ünï".as_bytes()),
    ];
    for (version, bytes) in cases {
        for end in [Settled::Completed(stored(version, bytes)), Settled::Failed(stored(version, bytes))] {
            let key = t.key();
            let [a] = tokens();
            t.grant(&key, a).await?;
            t.complete(&key, a, &end).await?;
            same("state", &settled("state", &t.load(&key).await?)?, &end)?;
        }
    }
    Ok(())
}

async fn large_result_comes_back(t: &Bench) -> Checked {
    let [a, b] = tokens();
    // After a grant, because some stores know their limit only from their first use on.
    let key = longest_key(t);
    t.grant(&key, a).await?;
    let len = limit(t).unwrap_or(1 << 20);
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(len).collect();
    let end = Settled::Completed(stored(u32::MAX, &bytes));
    t.complete(&key, a, &end).await?;
    holds("the same bytes are stored", settled("state", &t.load(&key).await?)? == end)?;
    let shown = held("a duplicate", t.reserve(&key, b).await?)?;
    holds("a duplicate is shown the same bytes", settled("state", &shown)? == end)
}

/// The store's limit, if a result of that size can be tried.
fn limit(t: &Bench) -> Option<usize> {
    t.store.max_result_bytes().filter(|limit| *limit <= 4 << 20)
}

/// A result that is too large is an error that says so at once; the record still takes the word that there was one.
async fn result_beyond_the_limit_is_refused_and_the_record_stays(t: &Bench) -> Checked {
    let [a] = tokens();
    let key = longest_key(t);
    t.grant(&key, a).await?;
    let Some(limit) = limit(t) else { return Ok(()) };
    let end = Settled::Completed(stored(1, &vec![b'x'; limit + (64 << 10)]));
    match t.store.complete(&key, a, &end, super::bench::LONG).await {
        Ok(write) => {
            same("complete", &write, &Write::Applied)?;
            return holds("the same bytes are stored", settled("state", &t.load(&key).await?)? == end);
        }
        Err(error) => holds(&format!("asking again would not help: {error}"), !error.is_transient())?,
    }
    super::bench::running("state", &t.load(&key).await?)?;
    t.complete(&key, a, &Settled::NotRetained).await
}

fn longest_key(t: &Bench) -> RecordKey {
    let end = t.key();
    let room = 255_usize.saturating_sub(end.as_str().len() + 1);
    RecordKey::new(end.operation().clone(), format!("{}/{}", end.as_str(), "x".repeat(room)))
}

async fn fingerprint_comes_back(t: &Bench) -> Checked {
    let mut digest = [0; 32];
    digest.iter_mut().zip((0..=u8::MAX).step_by(8)).for_each(|(byte, value)| *byte = value);
    for fingerprint in [Fingerprint::from_parts(0, [0; 32]), Fingerprint::from_parts(u8::MAX, digest)] {
        let key = t.key();
        let [a] = tokens();
        let request = Reserve { fingerprint, ..t.request(&key, a) };
        t.store.reserve(request).await?;
        same("fingerprint", &t.load(&key).await?.fingerprint, &fingerprint)?;
    }
    Ok(())
}

async fn step_results_come_back(t: &Bench) -> Checked {
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let steps = vec![done("empty", b""), done("zero", b"\0"), done("every", &every_byte)];
    let key = t.key();
    let [a] = tokens();
    t.grant(&key, a).await?;
    for step in &steps {
        same("put_step", &t.store.put_step(&key, a, step, LEASE).await?, &PutStep::Stored)?;
    }
    same("steps", &t.load(&key).await?.steps, &steps)
}
