//! A line between client and service that loses and delays. What it does to a connection follows from its number and a seed.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::io::{AsyncReadExt, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct Line {
    pub(crate) address: SocketAddr,
    lost: Arc<AtomicU32>,
}

/// What becomes of one connection.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Pass,
    Delay,
    /// The request never arrives.
    LoseRequest,
    /// The request is carried out, and nobody hears of it.
    LoseReply,
}

impl Line {
    pub(crate) async fn to(service: SocketAddr, seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let line = Self { address: listener.local_addr()?, lost: Arc::default() };
        let lost = Arc::clone(&line.lost);
        tokio::spawn(async move {
            let mut chance = StdRng::seed_from_u64(seed);
            while let Ok((client, _)) = listener.accept().await {
                let fate = match chance.random_range(0..10) {
                    0..=4 => Fate::Pass,
                    5 => Fate::Delay,
                    6..=7 => Fate::LoseRequest,
                    _ => Fate::LoseReply,
                };
                let lost = Arc::clone(&lost);
                tokio::spawn(async move {
                    if matches!(fate, Fate::LoseRequest | Fate::LoseReply) {
                        lost.fetch_add(1, Ordering::Relaxed);
                    }
                    // A connection that ends in an error is what this is for.
                    let _ = carry(client, service, fate).await;
                });
            }
        });
        Ok(line)
    }

    /// How many requests and replies were lost.
    pub(crate) fn lost(&self) -> u32 {
        self.lost.load(Ordering::Relaxed)
    }
}

async fn carry(mut client: TcpStream, service: SocketAddr, fate: Fate) -> io::Result<()> {
    match fate {
        Fate::LoseRequest => return client.set_zero_linger(),
        Fate::Delay => tokio::time::sleep(Duration::from_millis(50)).await,
        Fate::Pass | Fate::LoseReply => {}
    }
    let mut service = TcpStream::connect(service).await?;
    if matches!(fate, Fate::LoseReply) {
        let (mut from_client, _) = client.split();
        let (mut from_service, mut to_service) = service.split();
        let mut reply = [0];
        // When the reply begins, the request has been carried out.
        tokio::select! {
            read = from_service.read(&mut reply) => drop(read?),
            copied = copy(&mut from_client, &mut to_service) => drop(copied?),
        }
        return client.set_zero_linger();
    }
    copy_bidirectional(&mut client, &mut service).await.map(drop)
}
