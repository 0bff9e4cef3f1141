//! The service that is paid at: one that runs, or one that is started for this run.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

type Failure = Box<dyn Error + Send + Sync>;

pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    started: Option<Started>,
}

/// A process, and the folder that it works in.
struct Started {
    child: Child,
    folder: PathBuf,
}

impl Service {
    /// The one at this address.
    pub(crate) fn at(url: &str) -> Result<Self, Box<dyn Error>> {
        let host = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
        let address = host
            .to_socket_addrs()
            .map_err(|error| format!("{url} is no address of a service: {error}"))?
            .next();
        Ok(Self { address: address.ok_or_else(|| format!("{url} has no address"))?, started: None })
    }

    /// One of its own, with an empty ledger.
    pub(crate) async fn start() -> Result<Self, Box<dyn Error>> {
        let program =
            tokio::task::spawn_blocking(built).await?.map_err(|error| -> Box<dyn Error> { error })?;
        let folder = std::env::temp_dir().join(format!("payments-{}", std::process::id()));
        tokio::task::spawn_blocking(move || {
            let child = Command::new(program).arg("--folder").arg(&folder).stdout(Stdio::piped()).spawn()?;
            let mut started = Started { child, folder };
            let output = started.child.stdout.take().ok_or("it has no output")?;
            let mut line = String::new();
            BufReader::new(output).read_line(&mut line)?;
            let address =
                line.trim().strip_prefix("listening on http://").ok_or("payments-api did not start")?;
            Ok(Self { address: address.parse()?, started: Some(started) })
        })
        .await?
        .map_err(|error: Failure| -> Box<dyn Error> { error })
    }
}

/// The program of the service, beside this one. Under cargo, which says where it is itself, it is built first.
fn built() -> Result<PathBuf, Failure> {
    let this = std::env::current_exe()?;
    let name = format!("payments-api{}", std::env::consts::EXE_SUFFIX);
    let program = this.with_file_name(name);
    if let Some(cargo) = std::env::var_os("CARGO") {
        // target/PROFILE/examples/payments-client, where the profile `dev` is called `debug`.
        let mut folders = this.ancestors().skip(2);
        let profile =
            folders.next().and_then(Path::file_name).ok_or("this program is in no folder of cargo's")?;
        let target = folders.next().ok_or("this program is in no folder of cargo's")?;
        let built = Command::new(cargo)
            .args([
                "build",
                "--quiet",
                "--package",
                "examples",
                "--example",
                "payments-api",
                "--manifest-path",
            ])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
            .arg("--profile")
            .arg(if profile == "debug" { "dev".as_ref() } else { profile })
            .arg("--target-dir")
            .arg(target)
            .status()?;
        if !built.success() {
            return Err("payments-api was not built".into());
        }
    }
    if !program.exists() {
        return Err(
            "payments-api is not there: start this with `cargo run --example payments-client`, or give --url"
                .into(),
        );
    }
    Ok(program)
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(Started { child, folder }) = &mut self.started {
            let _ = child.kill();
            let _ = child.wait();
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
