//! Servers that are processes of their own: two on one store, and one that is killed.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use idempotent_runtime::http::{IdempotencyLayer, Principal};
use idempotent_runtime::{Idempotency, OnCrash};

use crate::support::{client, seen};

/// The URL of the store.
const STORE: &str = "HTTP_TEST_STORE";
const LEDGER: &str = "HTTP_TEST_LEDGER";
const LEASE: Duration = Duration::from_millis(500);

/// Writes a line down, then answers; at `/stuck` never.
fn app(ledger: PathBuf, layer: IdempotencyLayer) -> Router {
    async fn write(State(ledger): State<PathBuf>) -> &'static str {
        use std::io::Write;
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(ledger).unwrap();
        file.write_all(b"handled\n").unwrap();
        file.sync_all().unwrap();
        "written"
    }
    async fn stuck(State(ledger): State<PathBuf>) -> &'static str {
        write(State(ledger)).await;
        std::future::pending().await
    }
    Router::new().route("/write", post(write)).route("/stuck", post(stuck)).layer(layer).with_state(ledger)
}

/// Not a test: what a server process runs. It does nothing unless it is told where its store is.
#[tokio::test]
async fn serve() {
    let (Ok(store), Some(ledger)) = (std::env::var(STORE), std::env::var_os(LEDGER)) else { return };
    let idempotency = Idempotency::connect(&store).await.unwrap();
    let policy = if std::env::var_os("HTTP_TEST_RETRY").is_some() { OnCrash::Retry } else { OnCrash::Refuse };
    let builder = IdempotencyLayer::builder(&idempotency, Principal::single_tenant());
    let layer = builder.lease(LEASE).on_crash(policy).build().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("\nlistening on {}", listener.local_addr().unwrap());
    axum::serve(listener, app(ledger.into(), layer)).await.unwrap();
}

struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    fn start(store: &str, ledger: &Path, retry: bool) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "processes::serve", "--nocapture"])
            .env(STORE, store)
            .env(LEDGER, ledger)
            .stdout(Stdio::piped());
        if retry {
            command.env("HTTP_TEST_RETRY", "1");
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines
            .find_map(|line| Some(line.unwrap().strip_prefix("listening on ")?.parse().unwrap()))
            .unwrap();
        // Whatever else it says, the pipe must not fill up.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    fn post(&self, path: &str) -> reqwest::RequestBuilder {
        client().post(format!("http://{}{path}", self.address)).header("idempotency-key", "a")
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("idempotent-http-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
    /// A store in here.
    fn sqlite(&self) -> String {
        format!("sqlite:{}", self.0.join("records.db").display())
    }
    fn ledger(&self) -> PathBuf {
        self.0.join("ledger")
    }
    fn handled(&self) -> usize {
        std::fs::read_to_string(self.ledger()).unwrap_or_default().lines().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn are_one_service(folder: &Folder, store: &str) {
    let servers = [(); 2].map(|()| Process::start(store, &folder.ledger(), false));
    let requests = (0..40).map(|number| seen(servers[number % 2].post("/write")));
    let all = futures_util::future::join_all(requests).await;
    assert_eq!(folder.handled(), 1);
    assert!(all.iter().all(|(status, ..)| matches!(status, 200 | 409)), "{all:?}");
    for server in &servers {
        assert_eq!(seen(server.post("/write")).await, (200, true, "written".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_one_store_are_one_service() {
    let folder = Folder::new("two");
    are_one_service(&folder, &folder.sqlite()).await;
}

#[cfg(feature = "redis")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_one_redis_are_one_service() {
    let redis = tests::servers::redis::Redis::start();
    are_one_service(&Folder::new("redis"), &redis.url(0)).await;
}

/// The status and code of the first answer that is not "in progress".
async fn after_the_lease(server: &Process, path: &str) -> (u16, String) {
    loop {
        let response = server.post(path).send().await.unwrap();
        let (status, busy) = (response.status().as_u16(), response.headers().contains_key("retry-after"));
        if !busy {
            return (status, response.text().await.unwrap());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn killed_in_the_handler(folder: &Folder, retry: bool) -> Process {
    let mut server = Process::start(&folder.sqlite(), &folder.ledger(), retry);
    let request = tokio::spawn(server.post("/stuck").send());
    while folder.handled() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.kill();
    assert!(request.await.unwrap().is_err());
    let server = Process::start(&folder.sqlite(), &folder.ledger(), retry);
    // Until its lease is over, the dead one might still be at work.
    let busy = server.post("/stuck").send().await.unwrap();
    assert_eq!((busy.status().as_u16(), busy.headers()["retry-after"].to_str().unwrap()), (409, "1"));
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_in_the_handler_the_outcome_is_unknown() {
    let folder = Folder::new("kill");
    let server = killed_in_the_handler(&folder, false).await;
    let (status, content) = after_the_lease(&server, "/stuck").await;
    assert_eq!(status, 409);
    assert!(content.contains("\"outcome-unknown\""), "{content}");
    assert_eq!(folder.handled(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_in_the_handler_it_runs_again_where_that_is_safe() {
    let folder = Folder::new("retry");
    let server = killed_in_the_handler(&folder, true).await;
    // A refused one is answered at once; the one that runs is stuck again.
    while folder.handled() < 2 {
        let _ = server.post("/stuck").timeout(Duration::from_millis(50)).send().await;
    }
}
