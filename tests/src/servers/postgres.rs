//! PostgreSQL servers.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Folder, Server, find, free_port, run_as_server};

const PACKAGE: &str = "postgresql";

/// A server, and where it listens. The superuser is `postgres`, without a password.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
    port: u16,
}

/// The server that the tests of one binary share. It does not wait for the disk, and can count
/// statements (`CREATE EXTENSION pg_stat_statements`).
pub fn shared() -> &'static Postgres {
    static SHARED: OnceLock<Postgres> = OnceLock::new();
    SHARED.get_or_init(|| {
        Postgres::start(&["-c", "fsync=off", "-c", "shared_preload_libraries=pg_stat_statements"])
    })
}

impl Postgres {
    /// Starts a server with a new cluster, and these settings.
    pub fn start(settings: &[&str]) -> Self {
        Self::resume(Self::cluster(), free_port(), settings)
    }

    /// A folder with a new cluster in it.
    ///
    /// # Panics
    /// When there is no PostgreSQL to make one.
    pub fn cluster() -> Folder {
        let folder = Folder::new("postgres");
        let data = folder.path().join("data");
        let data = data.to_str().expect("temporary folders have plain names");
        let options =
            ["-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
        run_as_server("initdb", PACKAGE, options);
        folder
    }

    /// Starts a server in the folder of another one that has ended.
    ///
    /// # Panics
    /// When it does not start.
    pub fn resume(folder: Folder, port: u16, settings: &[&str]) -> Self {
        let data =
            folder.path().join("data").to_str().expect("temporary folders have plain names").to_owned();
        let sockets = folder.path().to_str().expect("temporary folders have plain names").to_owned();
        let port_text = port.to_string();
        let mut arguments = vec!["-D", &*data, "-p", &*port_text, "-k", &*sockets, "-h", "127.0.0.1"];
        // Connections are waited for by many tests at once.
        arguments.extend(["-c", "max_connections=200"]);
        arguments.extend(settings);
        let server = Server::start(folder, "postgres", PACKAGE, arguments);
        let ready = find("pg_isready", PACKAGE);
        let server = server.wait_until(|| {
            let answer = Command::new(&ready).args(["-q", "-h", "127.0.0.1", "-p", &port_text]).status();
            answer.is_ok_and(|status| status.success())
        });
        Self { server, port }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder that the server works in.
    pub fn folder(&self) -> &Path {
        self.server.folder()
    }

    /// The URL of a database.
    pub fn url(&self, database: &str) -> String {
        self.url_of("postgres", database)
    }

    /// The URL of a database for another user.
    pub fn url_of(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// The URL of a new database, for one test.
    pub fn database(&self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Runs statements and gives what they answer, a row a line.
    ///
    /// # Panics
    /// When they fail.
    pub fn psql(&self, database: &str, statements: &str) -> String {
        let database = database.rsplit('/').next().unwrap_or(database);
        let output = Command::new(find("psql", PACKAGE))
            .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", &self.url(database), "-c", statements])
            .output()
            .expect("psql runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statements}: {said}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Sends a signal to the server.
    pub fn signal(&self, signal: &str) {
        self.server.signal(signal);
    }

    /// Ends the server: `INT` lets it write everything down, `QUIT` does not. Gives its folder.
    pub fn end(self, signal: &str) -> Folder {
        self.server.end(signal)
    }
}
