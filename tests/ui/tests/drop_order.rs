//! An annotated function drops its arguments when and in the order in which the plain one does.
//!
//! See <https://github.com/dtolnay/async-trait/issues/199> and 263.

use std::cell::RefCell;
use std::rc::Rc;

use idempotent_runtime::stores::MemoryStore;
use idempotent_runtime::{Error, Idempotency, idempotent};

/// Writes its name where it is dropped.
struct Noisy(&'static str, Log);

type Log = Rc<RefCell<Vec<&'static str>>>;

impl Drop for Noisy {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

struct Pair(Noisy, Noisy);

impl Pair {
    #[expect(clippy::unused_async, reason = "what the other is compared with")]
    async fn plain(self, id: u32, last: Noisy) -> Result<u32, Error> {
        let moved = self.0;
        let _ = (&moved, &last);
        Ok(id)
    }

    #[idempotent(key = "id", name = "annotated", skip(last))]
    async fn annotated(self, id: u32, last: Noisy) -> Result<u32, Error> {
        let moved = self.0;
        let _ = (&moved, &last);
        Ok(id)
    }
}

/// The same function twice, once annotated.
macro_rules! twice {
    ($(#[$attribute:meta])* ($($arguments:tt)*) $body:block) => {
        async fn plain($($arguments)*) -> Result<u32, Error> $body
        $(#[$attribute])*
        async fn annotated($($arguments)*) -> Result<u32, Error> $body
    };
}

/// Runs both, in a store of their own, and compares what they logged.
macro_rules! same {
    ($log:ident => $($argument:expr),*) => { same!(plain, annotated; $log => $($argument),*) };
    ($plain:path, $annotated:path; $log:ident => $($argument:expr),*) => {{
        let logs = [Log::default(), Log::default()];
        let [$log, _] = &logs;
        $plain($($argument),*).await?;
        let [_, $log] = &logs;
        Idempotency::new(MemoryStore::new()).within($annotated($($argument),*)).await?;
        let [plain, annotated] = &logs;
        assert!(!plain.borrow().is_empty());
        assert_eq!(*plain.borrow(), *annotated.borrow());
    }};
}

fn noisy(name: &'static str, log: &Log) -> Noisy {
    Noisy(name, Rc::clone(log))
}

#[tokio::test]
async fn unused_moved_and_borrowed_arguments() -> Result<(), Error> {
    twice! {
        #[idempotent(key = "id", skip(a, b, c, _d, log))]
        (id: u32, a: Noisy, b: Noisy, c: Noisy, _d: Noisy, log: Log) {
            let local = noisy("local", &log);
            let moved = b;
            std::future::ready(()).await;
            log.borrow_mut().push(a.0);
            drop(moved);
            let _ = (&local, c.0);
            Ok(id)
        }
    }
    same!(log => 1, noisy("a", log), noisy("b", log), noisy("c", log), noisy("d", log), Rc::clone(log));
    Ok(())
}

#[tokio::test]
async fn mut_arguments() -> Result<(), Error> {
    twice! {
        #[idempotent(key = "id", skip(a, b, c, log))]
        (a: Noisy, mut b: Noisy, c: Noisy, log: Log, id: u32) {
            b.0 = if id == 1 { "changed" } else { b.0 };
            let _ = b.0;
            let other = noisy("other", &log);
            b = other;
            let _ = (&a, &b, &c);
            Ok(id)
        }
    }
    same!(log => noisy("a", log), noisy("b", log), noisy("c", log), Rc::clone(log), 1);
    Ok(())
}

#[tokio::test]
async fn patterns() -> Result<(), Error> {
    twice! {
        #[idempotent(key = "id", skip(first, second, left, right))]
        (Pair(first, second): Pair, (left, right): (Noisy, Noisy), id: u32) {
            let _ = (&right, &first, &left, &second);
            Ok(id)
        }
    }
    let pair = |log: &Log| Pair(noisy("first", log), noisy("second", log));
    same!(log => pair(log), (noisy("left", log), noisy("right", log)), 1);
    Ok(())
}

#[tokio::test]
async fn early_return() -> Result<(), Error> {
    twice! {
        #[idempotent(key = "id", skip(a, b, log))]
        (a: Noisy, b: Noisy, log: Log, id: u32) {
            let local = noisy("local", &log);
            if id == 1 {
                return Ok(a.0.len().try_into().unwrap_or(0));
            }
            let _ = (local, b);
            Ok(id)
        }
    }
    same!(log => noisy("a", log), noisy("b", log), Rc::clone(log), 1);
    Ok(())
}

#[tokio::test]
async fn a_receiver_whose_fields_are_moved() -> Result<(), Error> {
    let pair = |log: &Log| Pair(noisy("first", log), noisy("second", log));
    same!(Pair::plain, Pair::annotated; log => pair(log), 1, noisy("last", log));
    Ok(())
}

#[tokio::test]
async fn a_replay_drops_them_too() -> Result<(), Error> {
    #[idempotent(key = "id", skip(a, b))]
    async fn run(id: u32, a: Noisy, b: Noisy) -> Result<u32, Error> {
        let _ = (&a, &b);
        Ok(id)
    }
    let idempotency = Idempotency::new(MemoryStore::new());
    let log = Log::default();
    for _ in 0..2 {
        log.borrow_mut().clear();
        idempotency.within(run(1, noisy("a", &log), noisy("b", &log))).await?;
        assert_eq!(*log.borrow(), ["b", "a"]);
    }
    Ok(())
}
