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
    /// Starts one with nothing in it.
    pub fn start() -> Self {
        Self::start_in(Folder::new("dynamodb"), free_port())
    }

    /// Starts one on the database that an earlier one has left in `folder`.
    ///
    /// # Panics
    /// When the emulator is not installed.
    pub fn start_in(folder: Folder, port: u16) -> Self {
        // Whoever the server runs as may not look into the folder of cargo.
        let program = folder.path().join("dynoxide");
        if !program.exists() {
            fs::copy(find(), &program).expect("the folder of a server is writable");
            fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a new file can be changed");
        }
        let program = program.to_str().expect("temporary folders have plain names").to_owned();
        let port_text = port.to_string();
        let arguments = ["--host", "127.0.0.1", "--port", &port_text, "--db-path", "records.db"];
        let server = Server::start(folder, &program, "util-linux", arguments);
        let ready = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        Self { server: server.wait_until(ready), port }
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
