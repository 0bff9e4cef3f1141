//! What the emulator cannot do: a service that gives any answer, and a network that loses answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tests::servers::dynamodb::endpoint;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A status and a body.
pub(crate) type Answer = (u16, String);

/// A service that answers each action, named as in `X-Amz-Target`, as `answer` says. Where it listens.
pub(crate) async fn service(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            tokio::spawn(async move {
                while let Some(message) = read_message(&mut stream).await {
                    let head = String::from_utf8_lossy(&message);
                    let action = head.lines().find_map(|line| {
                        let (name, value) = line.split_once(": ")?;
                        name.eq_ignore_ascii_case("x-amz-target").then(|| value.rsplit('.').next()).flatten()
                    });
                    let (status, body) = answer(action.unwrap_or_default());
                    let reply = format!(
                        "HTTP/1.1 {status} Whatever\r\ncontent-type: application/x-amz-json-1.0\r\n\
                         content-length: {}\r\n\r\n{body}",
                        body.len()
                    );
                    if stream.write_all(reply.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    endpoint(port)
}

/// The body of an error answer.
pub(crate) fn error(code: &str, message: &str) -> String {
    format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"{message}"}}"#)
}

/// One HTTP message with its body; `None` when the connection has ended.
async fn read_message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&message).to_ascii_lowercase();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            let end = head.len() + 4 + length;
            // The head is plain ASCII, so its length is the same in the bytes.
            if message.len() >= end {
                message.truncate(end);
                return Some(message);
            }
        }
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => message.extend_from_slice(&part[..read]),
        }
    }
}

/// A network before a server, which loses answers: the request arrives and is carried out, then the connection is cut.
#[derive(Clone)]
pub(crate) struct Proxy {
    port: u16,
    /// One of so many answers is lost; 0 for none.
    one_of: Arc<AtomicU32>,
    lost: Arc<AtomicU32>,
}

impl Proxy {
    pub(crate) async fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = Self { port, one_of: Arc::default(), lost: Arc::default() };
        let (this, count) = (proxy.clone(), Arc::new(AtomicU32::new(0)));
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (this, count) = (this.clone(), Arc::clone(&count));
                tokio::spawn(async move {
                    let mut upstream = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                    while let Some(request) = read_message(&mut client).await {
                        upstream.write_all(&request).await.unwrap();
                        let Some(answer) = read_message(&mut upstream).await else { return };
                        let one_of = this.one_of.load(Ordering::SeqCst);
                        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                        if one_of > 0 && number.is_multiple_of(one_of) {
                            this.lost.fetch_add(1, Ordering::SeqCst);
                            return;
                        }
                        if client.write_all(&answer).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        proxy
    }

    pub(crate) fn endpoint(&self) -> String {
        endpoint(self.port)
    }

    /// From now on.
    pub(crate) fn lose_one_of(&self, answers: u32) {
        self.one_of.store(answers, Ordering::SeqCst);
    }

    pub(crate) fn lost(&self) -> u32 {
        self.lost.load(Ordering::SeqCst)
    }
}
