//! A go-between that counts what a client asks, and loses what the server answers.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Between a client and a server. It ends with its runtime.
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    requests: AtomicUsize,
    /// The request after this many more is passed on, and its connection then cut.
    lose: AtomicUsize,
    silent: AtomicBool,
    cut: watch::Sender<usize>,
}

impl Proxy {
    pub(crate) async fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            requests: AtomicUsize::new(0),
            lose: AtomicUsize::new(0),
            silent: AtomicBool::new(false),
            cut: watch::Sender::new(0),
        });
        let of_task = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, server, Arc::clone(&of_task)));
            }
        });
        Self { port, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// How many times a client has sent something. What is sent at once counts once.
    pub(crate) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Loses the answer to the `n`th request from now, and cuts its connection.
    pub(crate) fn lose_answer(&self, n: usize) {
        self.shared.lose.store(n, Ordering::SeqCst);
    }

    /// Cuts every connection there is.
    pub(crate) fn cut(&self) {
        self.shared.cut.send_modify(|cuts| *cuts += 1);
    }

    /// Whether answers are swallowed, while connections stay.
    pub(crate) fn silence(&self, silent: bool) {
        self.shared.silent.store(silent, Ordering::SeqCst);
    }
}

async fn serve(mut client: TcpStream, server: u16, shared: Arc<Shared>) {
    let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await else { return };
    let mut cut = shared.cut.subscribe();
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut last = false;
    loop {
        tokio::select! {
            _ = cut.changed() => return,
            read = client.read(&mut asked) => {
                let Ok(count @ 1..) = read else { return };
                shared.requests.fetch_add(1, Ordering::SeqCst);
                let left = shared.lose.load(Ordering::SeqCst);
                if left > 0 {
                    shared.lose.store(left - 1, Ordering::SeqCst);
                    last = left == 1;
                }
                if server.write_all(&asked[..count]).await.is_err() { return }
            }
            read = server.read(&mut answered) => {
                let Ok(count @ 1..) = read else { return };
                if last { return }
                if shared.silent.load(Ordering::SeqCst) { continue }
                if client.write_all(&answered[..count]).await.is_err() { return }
            }
        }
    }
}
