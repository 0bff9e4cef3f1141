//! PgBouncer: a proxy that gives each transaction another connection to the server.

use std::net::TcpStream;

use super::postgres::Postgres;
use super::{Folder, Server, free_port};

const PACKAGE: &str = "pgbouncer";

/// A proxy in transaction mode, in front of a server.
#[derive(Debug)]
pub struct PgBouncer {
    _server: Server,
    port: u16,
}

impl PgBouncer {
    /// Starts one in front of `postgres`, with three connections for everybody.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(postgres: &Postgres) -> Self {
        let (folder, port) = (Folder::new("pgbouncer"), free_port());
        let path = folder.path().join("pgbouncer.ini");
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 3\nignore_startup_parameters = extra_float_digits\n\
             [users]\n",
            postgres.port()
        )
        .replace("* = host=127.0.0.1", "* = user=postgres host=127.0.0.1");
        std::fs::write(&path, settings).expect("the folder of a server is writable");
        let server = Server::start(folder, "pgbouncer", PACKAGE, [path.as_os_str()]);
        let server = server.wait_until(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { _server: server, port }
    }

    /// The URL of a database behind the proxy.
    pub fn url(&self, database: &str) -> String {
        let name = database.rsplit('/').next().unwrap_or(database);
        format!("postgres://postgres@127.0.0.1:{}/{name}", self.port)
    }
}
