//! How many round trips a call takes.

use idempotent_runtime::stores::RedisStore;
use idempotent_runtime::{Error, Idempotency};

use crate::proxy::Proxy;
use crate::support::*;

#[tokio::test]
async fn a_first_call_takes_two_round_trips_and_everything_else_one() {
    for by_scripts in [false, true] {
        let proxy = Proxy::to(shared().port()).await;
        let mut builder = RedisStore::builder(proxy.url()).prefix(format!("count{by_scripts}:"));
        if by_scripts {
            builder = builder.wait_replicas(0, KEEP);
        }
        let idempotency = Idempotency::new(builder.open().await.unwrap());
        let call = |key: &'static str, amount: u32| {
            let call = idempotency.operation("charge").key(key).fingerprint(&amount);
            call.run(async |_| Ok::<_, Error>(7))
        };
        // The first ones also bring the scripts to the server.
        call("warm", 1).await.unwrap();
        let before = proxy.requests();
        assert_eq!(call("o-1", 1).await.unwrap(), 7);
        // Scripts that wait for replicas do so by a command of its own.
        let waits = usize::from(by_scripts);
        assert_eq!(proxy.requests() - before, 2 + waits, "a first call, by scripts {by_scripts}");

        let before = proxy.requests();
        assert_eq!(call("o-1", 1).await.unwrap(), 7);
        assert_eq!(proxy.requests() - before, 1, "a replay, by scripts {by_scripts}");

        let before = proxy.requests();
        assert_eq!(call("o-1", 2).await.unwrap_err().code(), "key-reused");
        assert_eq!(proxy.requests() - before, 1, "a mismatch, by scripts {by_scripts}");

        let busy = idempotency.operation("charge").key("o-2").fingerprint(&1);
        let mut running = Box::pin(busy.run(async |_| std::future::pending::<Result<u32, Error>>().await));
        tokio::time::timeout(std::time::Duration::from_millis(200), &mut running).await.unwrap_err();
        let before = proxy.requests();
        assert_eq!(call("o-2", 1).await.unwrap_err().code(), "in-progress");
        assert_eq!(proxy.requests() - before, 1, "a busy key, by scripts {by_scripts}");
    }
}
