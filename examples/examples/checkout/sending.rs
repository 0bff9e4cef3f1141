//! Plays the clients: every request is sent at its time, on a task of its own.

use idempotent_runtime::with_outcome;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::answer::Answer;
use crate::gateway::Gateway;
use crate::payment::charge;
use crate::request::Request;

/// How many requests the service takes at a time. Later ones wait at the door.
const AT_ONCE: usize = 512;

/// Sends all requests and hands every answer to `answered`, as they come.
pub(crate) async fn send(
    mut requests: Vec<Request>,
    gateway: &Gateway,
    mut answered: impl FnMut(Request, Answer),
) -> Result<(), JoinError> {
    requests.sort_by_key(Request::arrives_after);
    let start = Instant::now();
    let mut waiting = requests.into_iter();
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() < AT_ONCE
            && let Some(request) = waiting.next()
        {
            let gateway = gateway.behaving(request.gateway);
            under_way.spawn(async move {
                sleep_until(start + request.arrives_after()).await;
                let (result, outcome) = with_outcome(charge(&gateway, &request.order)).await;
                (request, Answer::new(result, outcome))
            });
        }
        match under_way.join_next().await {
            Some(done) => {
                let (request, answer) = done?;
                answered(request, answer);
            }
            None => return Ok(()),
        }
    }
}
