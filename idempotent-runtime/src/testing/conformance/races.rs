//! Calls that arrive at the same moment.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::bench::{Bench, Checked, LEASE, LONG, completed, done, fail, held, same, settled, tokens};
use super::checks;
use crate::key::RecordKey;
use crate::store::{Compared, PutStep, Reserved, Resolution, Write};

checks!("races":
    one_of_many_is_granted,
    one_of_many_takes_over,
    late_owner_or_take_over,
    late_owner_or_operator,
    one_of_many_operators,
    forgetting_or_take_over,
    purge_beside_reservations,
    steps_of_one_owner_do_not_overwrite_each_other,
    owner_beside_duplicates_is_undisturbed,
);

const CALLERS: usize = 8;
const ROUNDS: usize = 20;

/// What `CALLERS` calls say that start together.
async fn together<T, F>(call: impl Fn(usize) -> F) -> Checked<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = Checked<T>> + Send + 'static,
{
    let start = Arc::new(Barrier::new(CALLERS));
    let mut calls = JoinSet::new();
    for n in 0..CALLERS {
        let (start, call) = (Arc::clone(&start), call(n));
        calls.spawn(async move {
            start.wait().await;
            call.await
        });
    }
    let mut answers = Vec::new();
    while let Some(answer) = calls.join_next().await {
        match answer {
            Ok(answer) => answers.push(answer?),
            Err(error) => return fail(format!("a racing call: {error}")),
        }
    }
    Ok(answers)
}

/// One of racing reservations must be granted, and the others must be shown its record.
async fn one_winner(t: &Bench, key: &RecordKey, attempt: u32) -> Checked {
    let answers = together(|_| {
        let (t, key, [owner]) = (t.clone(), key.clone(), tokens());
        async move { Ok((owner, t.reserve(&key, owner).await?)) }
    })
    .await?;
    let winners: Vec<_> = answers
        .iter()
        .filter_map(|(owner, answer)| match answer {
            Reserved::Granted(grant) => Some((*owner, grant.attempt)),
            Reserved::Held(_) => None,
        })
        .collect();
    let owner = t.load(key).await?.owner;
    same("who was granted", &winners, &vec![(owner, attempt)])?;
    for (_, answer) in answers {
        if let Reserved::Held(record) = answer {
            same("the owner that is shown", &record.owner, &owner)?;
        }
    }
    Ok(())
}

async fn one_of_many_is_granted(t: &Bench) -> Checked {
    for _ in 0..ROUNDS {
        one_winner(t, &t.key(), 1).await?;
    }
    Ok(())
}

async fn one_of_many_takes_over(t: &Bench) -> Checked {
    for _ in 0..ROUNDS {
        let key = t.key();
        let [a] = tokens();
        t.grant(&key, a).await?;
        t.abandon(&key, a).await?;
        one_winner(t, &key, 2).await?;
        t.powerless("the attempt before", &key, a).await?;
    }
    Ok(())
}

async fn late_owner_or_take_over(t: &Bench) -> Checked {
    for _ in 0..ROUNDS {
        let key = t.key();
        let [a, b] = tokens();
        t.grant(&key, a).await?;
        t.abandon(&key, a).await?;
        let late = {
            let (t, key) = (t.clone(), key.clone());
            tokio::spawn(async move { t.store.complete(&key, a, &completed(b"late"), LONG).await })
        };
        let taken = t.reserve(&key, b).await?;
        let late = match late.await {
            Ok(write) => write?,
            Err(error) => return fail(format!("the late owner: {error}")),
        };
        match (late, taken) {
            (Write::Applied, Reserved::Held(_)) => {
                same("state", &settled("state", &t.load(&key).await?)?, &completed(b"late"))?;
            }
            (Write::Lost, Reserved::Granted(_)) => same("owner", &t.load(&key).await?.owner, &b)?,
            both => return fail(format!("expected that one of two comes first, saw {both:?}")),
        }
    }
    Ok(())
}

async fn late_owner_or_operator(t: &Bench) -> Checked {
    for _ in 0..ROUNDS {
        let key = t.key();
        let [a, fresh] = tokens();
        t.grant(&key, a).await?;
        t.abandon(&key, a).await?;
        let late = {
            let (t, key) = (t.clone(), key.clone());
            tokio::spawn(async move { t.store.complete(&key, a, &completed(b"late"), LONG).await })
        };
        let resolution = Resolution::Done { settled: completed(b"found"), keep: LONG };
        let compared = t.store.resolve(&key, a, fresh, &resolution).await?;
        let late = match late.await {
            Ok(write) => write?,
            Err(error) => return fail(format!("the late owner: {error}")),
        };
        let expected = match (late, compared) {
            (Write::Applied, Compared::Differs(_)) => completed(b"late"),
            (Write::Lost, Compared::Changed) => completed(b"found"),
            both => return fail(format!("expected that one of two comes first, saw {both:?}")),
        };
        same("state", &settled("state", &t.load(&key).await?)?, &expected)?;
    }
    Ok(())
}

async fn one_of_many_operators(t: &Bench) -> Checked {
    for _ in 0..ROUNDS {
        let key = t.key();
        let [a] = tokens();
        t.grant(&key, a).await?;
        t.abandon(&key, a).await?;
        let answers = together(|n| {
            let (t, key, [fresh]) = (t.clone(), key.clone(), tokens());
            async move {
                let settled = completed(n.to_string().as_bytes());
                let resolution = Resolution::Done { settled, keep: LONG };
                Ok((n, t.store.resolve(&key, a, fresh, &resolution).await? == Compared::Changed))
            }
        })
        .await?;
        let winners: Vec<_> = answers.iter().filter(|(_, changed)| *changed).map(|(n, _)| *n).collect();
        let [winner] = *winners else {
            return fail(format!("expected one operator to change the record, saw {winners:?}"));
        };
        let expected = completed(winner.to_string().as_bytes());
        same("state", &settled("state", &t.load(&key).await?)?, &expected)?;
    }
    Ok(())
}

async fn steps_of_one_owner_do_not_overwrite_each_other(t: &Bench) -> Checked {
    for _ in 0..ROUNDS {
        let key = t.key();
        let [a] = tokens();
        t.grant(&key, a).await?;
        let step = |n: usize| done(&format!("step {n}"), n.to_string().as_bytes());
        let answers = together(|n| {
            let (t, key) = (t.clone(), key.clone());
            async move { Ok(t.store.put_step(&key, a, &step(n), LEASE).await?) }
        })
        .await?;
        same("put_step", &answers, &vec![PutStep::Stored; CALLERS])?;
        let mut steps = t.load(&key).await?.steps;
        steps.sort_by(|one, two| one.name.cmp(&two.name));
        same("steps, sorted", &steps, &(0..CALLERS).map(step).collect())?;
    }
    Ok(())
}

async fn owner_beside_duplicates_is_undisturbed(t: &Bench) -> Checked {
    for _ in 0..ROUNDS {
        let key = t.key();
        let [a] = tokens();
        t.grant(&key, a).await?;
        let answers = together(|n| {
            let (t, key, [b]) = (t.clone(), key.clone(), tokens());
            async move {
                if n == 0 {
                    return t.complete(&key, a, &completed(b"result")).await;
                }
                held("a duplicate", t.reserve(&key, b).await?).map(drop)
            }
        })
        .await?;
        same("answers", &answers.len(), &CALLERS)?;
        same("state", &settled("state", &t.load(&key).await?)?, &completed(b"result"))?;
    }
    Ok(())
}

/// Whoever forgets deletes what was seen, and never the attempt that has come since.
async fn forgetting_or_take_over(t: &Bench) -> Checked {
    for _ in 0..ROUNDS {
        let key = t.key();
        let [a, b] = tokens();
        t.grant(&key, a).await?;
        t.abandon(&key, a).await?;
        let forgetting = {
            let (t, key) = (t.clone(), key.clone());
            tokio::spawn(async move { t.store.forget(&key, a).await })
        };
        let grant = t.grant(&key, b).await?;
        let forgotten = match forgetting.await {
            Ok(compared) => compared? == Compared::Changed,
            Err(error) => return fail(format!("the operator: {error}")),
        };
        same(
            "attempt, after the record was forgotten or not",
            &grant.attempt,
            &if forgotten { 1 } else { 2 },
        )?;
        same("owner", &t.load(&key).await?.owner, &b)?;
    }
    Ok(())
}

/// A record that takes the place of an expired one is not swept away with that.
async fn purge_beside_reservations(t: &Bench) -> Checked {
    let mut keys = Vec::new();
    for _ in 0..ROUNDS {
        let key = t.key();
        let [a] = tokens();
        t.grant(&key, a).await?;
        t.store.complete(&key, a, &completed(b"gone"), t.tick).await?;
        keys.push(key);
    }
    t.advance(t.tick * 2).await;
    let purging = {
        let t = t.clone();
        tokio::spawn(async move {
            for _ in 0..ROUNDS {
                t.store.purge(3).await?;
            }
            Ok::<_, crate::store::StoreError>(())
        })
    };
    for key in &keys {
        let [b] = tokens();
        same("attempt", &t.grant(key, b).await?.attempt, &1)?;
    }
    match purging.await {
        Ok(purged) => purged?,
        Err(error) => return fail(format!("the purge: {error}")),
    }
    t.store.purge(1_000).await?;
    for key in &keys {
        super::bench::running("the new record", &t.load(key).await?)?;
    }
    Ok(())
}
