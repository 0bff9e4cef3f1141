//! An emulator of DynamoDB: `dynoxide`, from the crate `dynoxide-rs`.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Config, Credentials, Region};

use super::{Folder, Server, free_port};

/// A running emulator.
#[derive(Debug)]
pub struct DynamoDb {
    server: Server,
    port: u16,
}

impl DynamoDb {
    /// Starts one with nothing in it, in memory.
    ///
    /// # Panics
    /// When the emulator is not installed.
    pub fn start() -> Self {
        Self::launch(Folder::new("dynamodb"), free_port(), &[])
    }

    /// Starts one on the database in `folder`, where an earlier one may have left it.
    ///
    /// # Panics
    /// When the emulator is not installed.
    pub fn start_in(folder: Folder, port: u16) -> Self {
        Self::launch(folder, port, &["--db-path", "records.db"])
    }

    fn launch(folder: Folder, port: u16, more: &[&str]) -> Self {
        // Whoever the server runs as may not look into the folder of cargo.
        let copy = folder.path().join("dynoxide");
        fs::copy(find(), &copy).expect("the folder of a server is writable");
        fs::set_permissions(&copy, Permissions::from_mode(0o755)).expect("a new file can be changed");
        let program = copy.to_str().expect("temporary folders have plain names");
        let port_text = port.to_string();
        let arguments = ["--host", "127.0.0.1", "--port", &port_text].into_iter().chain(more.iter().copied());
        let server = Server::start(folder, program, "util-linux", arguments);
        let server = server.wait_until(|| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        // It runs on without the file, which nobody would delete if the server lives as long as the process.
        fs::remove_file(&copy).expect("the folder of a server is writable");
        Self { server, port }
    }

    /// The port that it listens at.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it listens.
    pub fn endpoint(&self) -> String {
        endpoint(self.port)
    }

    /// See [`Server::signal`].
    pub fn signal(&self, signal: &str) {
        self.server.signal(signal);
    }

    /// See [`Server::end`].
    pub fn end(self, signal: &str) -> Folder {
        self.server.end(signal)
    }
}

/// The address of a local port.
pub fn endpoint(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// The settings of a client for the emulator, which tries each request once.
pub fn config(endpoint: &str) -> Builder {
    Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .retry_config(RetryConfig::disabled())
        .endpoint_url(endpoint)
}

/// A client with these settings.
pub fn client(endpoint: &str) -> Client {
    Client::from_conf(config(endpoint).build())
}

/// Where `tests/run` or the user has installed the emulator.
fn find() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let of_cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let of_home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools");
    let folders = [Some(target), of_cargo, of_home].into_iter().flatten().map(|folder| folder.join("bin"));
    let found = std::env::split_paths(&path).chain(folders).map(|folder| folder.join("dynoxide"));
    found.into_iter().find(|file| file.is_file()).expect(
        "this test needs `dynoxide`: run `tests/run`, or `cargo install dynoxide-rs --locked --no-default-features \
         --features native-sqlite,http-server,cli`",
    )
}
