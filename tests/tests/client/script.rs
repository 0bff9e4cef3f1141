//! A server that does one thing after the other, and remembers what it was sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idempotent_runtime::client::{IdempotencyMiddleware, RetryPolicy, Vendor};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Answers with this status, these lines of header, and this content.
    Answer(u16, &'static str, &'static str),
    /// Carries it out, and resets the connection.
    Reset,
    /// Answers with half of what it announces.
    Half,
    /// Never answers.
    Hang,
}

pub(crate) const OK: Act = Act::Answer(201, "", "done");
pub(crate) const PROBLEM: &str = "content-type: application/problem+json\r\n";

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: tokio::task::JoinHandle<()>,
}

/// One request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) content: Vec<u8>,
}

impl Seen {
    /// The values of a header.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
            .collect()
    }

    pub(crate) fn key(&self) -> String {
        self.all("idempotency-key").join(" and ")
    }
}

impl Server {
    /// Does `script`, then the last of it for ever.
    pub(crate) async fn doing(script: impl IntoIterator<Item = Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut script: Vec<Act> = script.into_iter().collect();
        script.reverse();
        let seen_there = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let act = if script.len() > 1 { script.pop().unwrap() } else { script[0].clone() };
                tokio::spawn(serve(stream, act, Arc::clone(&seen_there)));
            }
        });
        Self { address, seen, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/payments", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The keys of all requests, each once.
    pub(crate) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.seen().iter().map(Seen::key).collect();
        keys.dedup();
        keys
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, act: Act, seen: Arc<Mutex<Vec<Seen>>>) {
    let mut bytes = Vec::new();
    let head_end = loop {
        if stream.read_buf(&mut bytes).await.unwrap_or_default() == 0 {
            return;
        }
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let mut request = Seen {
        head: String::from_utf8(bytes[..head_end].to_vec()).unwrap(),
        content: bytes[head_end..].to_vec(),
    };
    let announced = request.all("content-length").first().map_or(0, |length| length.parse().unwrap());
    while request.content.len() < announced {
        stream.read_buf(&mut request.content).await.unwrap();
    }
    if request.all("transfer-encoding").contains(&"chunked".to_owned()) {
        while !request.content.ends_with(b"0\r\n\r\n") {
            stream.read_buf(&mut request.content).await.unwrap();
        }
    }
    seen.lock().unwrap().push(request);
    match act {
        Act::Answer(status, lines, content) => {
            let answer = format!(
                "HTTP/1.1 {status} Said\r\nconnection: close\r\n{lines}content-length: {}\r\n\r\n{content}",
                content.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
        Act::Reset => {
            let _ = stream.set_zero_linger();
        }
        Act::Half => {
            let _ = stream.write_all(b"HTTP/1.1 201 Created\r\ncontent-le").await;
        }
        Act::Hang => std::future::pending().await,
    }
}

/// As fast as a test may be.
pub(crate) fn fast() -> RetryPolicy {
    RetryPolicy::default().pauses(Duration::from_millis(1), Duration::from_millis(2))
}

pub(crate) fn client() -> ClientWithMiddleware {
    with(IdempotencyMiddleware::with(Vendor::draft(), fast()).unwrap())
}

pub(crate) fn with(middleware: IdempotencyMiddleware) -> ClientWithMiddleware {
    let inner = reqwest::Client::builder().redirect(idempotent_runtime::client::redirects()).build().unwrap();
    ClientBuilder::new(inner).with(middleware).build()
}
