//! Redis servers: one, a cluster of three masters, and a primary with a replica and three sentinels.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::time::Duration;

use super::{Folder, Server, find, free_port};

/// One server.
#[derive(Debug)]
pub struct Redis {
    server: Option<Server>,
    port: u16,
    settings: Vec<String>,
}

impl Redis {
    /// A server that keeps what it has acknowledged when it is killed, though not when the machine is.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start() -> Self {
        Self::with(&["--appendonly", "yes", "--save", ""])
    }

    /// A server with these settings.
    ///
    /// # Panics
    /// When it does not start.
    pub fn with(settings: &[&str]) -> Self {
        let settings = settings.iter().map(ToString::to_string).collect();
        let mut redis = Self { server: None, port: free_port(), settings };
        redis.start_in(Folder::new("redis"));
        redis
    }

    fn start_in(&mut self, folder: Folder) {
        let port = self.port.to_string();
        let fixed = ["--port", &port, "--bind", "127.0.0.1", "--daemonize", "no", "--dir", "."];
        let arguments = fixed.into_iter().map(str::to_owned).chain(self.settings.clone());
        let server = Server::start(folder, "redis-server", "redis-server", arguments);
        let port = self.port;
        self.server = Some(server.wait_until(|| answers(port)));
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("the server has been started")
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of one of its databases.
    pub fn url(&self, database: usize) -> String {
        format!("redis://127.0.0.1:{}/{database}", self.port)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) {
        self.server().signal(signal);
    }

    /// Ends it by `signal`, and starts it again on what it has kept, as soon as `pause` is over.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self, signal: &str, pause: Duration) {
        let folder = self.server.take().expect("the server has been started").end(signal);
        std::thread::sleep(pause);
        self.start_in(folder);
    }

    /// Asks it something with `redis-cli`, and gives the answer.
    ///
    /// # Panics
    /// When `redis-cli` is not there.
    pub fn ask(&self, command: &[&str]) -> String {
        ask(self.port, command)
    }
}

/// A cluster of three masters.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Redis>,
}

impl Cluster {
    /// Starts it, and waits until every node knows of the others.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start() -> Self {
        let nodes: Vec<Redis> = (0..3)
            .map(|_| {
                // Named, because its default is the port and 10,000 more, which may be another program's.
                let bus = free_port().to_string();
                Redis::with(&[
                    "--cluster-enabled",
                    "yes",
                    "--cluster-port",
                    &bus,
                    "--cluster-config-file",
                    "nodes.conf",
                    "--cluster-node-timeout",
                    "2000",
                    "--appendonly",
                    "yes",
                    "--appendfsync",
                    "always",
                    "--save",
                    "",
                ])
            })
            .collect();
        let addresses: Vec<String> = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        let made = Command::new(find("redis-cli", "redis-tools"))
            .args(["--cluster", "create"])
            .args(&addresses)
            .arg("--cluster-yes")
            .output()
            .expect("redis-cli runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
        let cluster = Self { nodes };
        wait_until("the cluster is in order", || {
            cluster.nodes.iter().all(|node| node.ask(&["cluster", "info"]).contains("cluster_state:ok"))
        });
        cluster
    }

    /// Its URL.
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("redis-cluster://{}", hosts.join(","))
    }

    /// Its nodes.
    pub fn nodes(&mut self) -> &mut [Redis] {
        &mut self.nodes
    }
}

/// A primary, a replica, and three sentinels that watch them.
#[derive(Debug)]
pub struct Sentinels {
    /// The first primary.
    pub primary: Redis,
    /// Its replica.
    pub replica: Redis,
    watchers: Vec<(Server, u16)>,
}

impl Sentinels {
    /// Starts them, and waits until they know of each other.
    ///
    /// # Panics
    /// When they do not start.
    pub fn start() -> Self {
        let primary = Redis::start();
        let replica_of = format!("127.0.0.1 {}", primary.port);
        let replica = Redis::with(&["--replicaof", &replica_of, "--appendonly", "yes", "--save", ""]);
        wait_until("the replica is in step", || {
            replica.ask(&["info", "replication"]).contains("master_link_status:up")
        });
        let watchers = (0..3).map(|_| sentinel(primary.port)).collect();
        let sentinels = Self { primary, replica, watchers };
        wait_until("the sentinels agree", || {
            sentinels.watchers.iter().all(|(_, port)| {
                let known = ask(*port, &["sentinel", "master", "mymaster"]);
                ask(*port, &["sentinel", "ckquorum", "mymaster"]).starts_with("OK 3")
                    && known.contains("num-slaves\n1")
            })
        });
        sentinels
    }

    /// Their URL.
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.watchers.iter().map(|(_, port)| format!("127.0.0.1:{port}")).collect();
        format!("redis-sentinel://{}/mymaster", hosts.join(","))
    }
}

fn sentinel(primary: u16) -> (Server, u16) {
    let (folder, port) = (Folder::new("sentinel"), free_port());
    let file = folder.path().join("sentinel.conf");
    let settings = format!(
        "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor mymaster 127.0.0.1 {primary} 2\n\
         sentinel down-after-milliseconds mymaster 1000\nsentinel failover-timeout mymaster 5000\n",
        folder.path().display()
    );
    fs::write(&file, settings).expect("the folder of a server is writable");
    super::give_to_servers(&file);
    let arguments = [file.into_os_string(), "--sentinel".into()];
    let server = Server::start(folder, "redis-server", "redis-server", arguments);
    (server.wait_until(|| answers(port)), port)
}

/// Whether a server at this port answers, and has loaded its data.
fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return false };
    let mut answer = [0; 7];
    stream.set_read_timeout(Some(Duration::from_secs(1))).is_ok()
        && stream.write_all(b"PING\r\n").is_ok()
        && stream.read_exact(&mut answer).is_ok()
        // One that wants a password is there as well.
        && [b"+PONG\r\n", b"-NOAUTH"].contains(&&answer)
}

fn ask(port: u16, command: &[&str]) -> String {
    let output =
        Command::new(find("redis-cli", "redis-tools")).arg("-p").arg(port.to_string()).args(command).output();
    String::from_utf8_lossy(&output.expect("redis-cli runs").stdout).trim().to_owned()
}

/// Waits for up to half a minute.
///
/// # Panics
/// When it does not happen.
pub fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    for _ in 0..600 {
        if happened() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("half a minute was not enough until {what}");
}
