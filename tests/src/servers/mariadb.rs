//! MariaDB, for tests.

use std::path::Path;
use std::process::Command;

use super::{Folder, Server, find, free_port, run_as_server};

const PACKAGE: &str = "mariadb-server";

/// A running MariaDB. Its administrator is `root`, without a password.
#[derive(Debug)]
pub struct MariaDb {
    server: Server,
    port: u16,
    options: Vec<String>,
}

impl MariaDb {
    /// Starts one without a binary log, and without waiting for the disk at every commit.
    pub fn start() -> Self {
        Self::start_with(&["--skip-log-bin", "--innodb-flush-log-at-trx-commit=0"])
    }

    /// Starts one with these options.
    ///
    /// # Panics
    /// When MariaDB is missing or does not start.
    pub fn start_with(options: &[&str]) -> Self {
        let folder = Folder::new("mariadb");
        let data = format!("--datadir={}", folder.path().join("data").display());
        let install = ["--no-defaults", &*data, "--auth-root-authentication-method=normal", "--skip-test-db"];
        run_as_server("mariadb-install-db", PACKAGE, [&install[..], &["--skip-name-resolve"]].concat());
        Self::start_in(folder, free_port(), options.iter().map(|option| (*option).to_owned()).collect())
    }

    fn start_in(folder: Folder, port: u16, options: Vec<String>) -> Self {
        let file = |name: &str| folder.path().join(name).display().to_string();
        let mut arguments = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={}", file("data")),
            format!("--socket={}", file("socket")),
            format!("--pid-file={}", file("pid")),
            format!("--port={port}"),
            "--bind-address=127.0.0.1".into(),
            "--skip-name-resolve".into(),
            "--max-connections=300".into(),
            "--innodb-buffer-pool-size=64M".into(),
        ];
        arguments.extend(options.iter().cloned());
        let socket = folder.path().join("socket");
        let server = Server::start(folder, "mariadbd", PACKAGE, arguments).wait_until(|| answers(&socket));
        Self { server, port, options }
    }

    /// The URL of a new, empty database.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn database(&self, name: &str) -> String {
        self.sql(&format!("CREATE DATABASE IF NOT EXISTS `{name}`"));
        self.url("root", name)
    }

    /// The URL of a database for a user.
    pub fn url(&self, user: &str, database: &str) -> String {
        format!("mysql://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs statements as the administrator, and gives what they answer.
    ///
    /// # Panics
    /// When they fail.
    pub fn sql(&self, statements: &str) -> String {
        let output = client(&self.server.folder().join("socket")).args(["-e", statements]).output();
        let output = output.expect("the client runs");
        assert!(output.status.success(), "{statements}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: &str) {
        self.server.signal(signal);
    }

    /// Ends it by a signal, and starts it again on the same port with the same data.
    #[must_use]
    pub fn restart(self, signal: &str) -> Self {
        let folder = self.server.end(signal);
        Self::start_in(folder, self.port, self.options)
    }
}

fn answers(socket: &Path) -> bool {
    client(socket).args(["-e", "SELECT 1"]).output().is_ok_and(|output| output.status.success())
}

fn client(socket: &Path) -> Command {
    let mut command = Command::new(find("mariadb", "mariadb-client"));
    command.args(["--no-defaults", "--user=root", "--batch", "--skip-column-names"]);
    command.arg(format!("--socket={}", socket.display()));
    command
}
