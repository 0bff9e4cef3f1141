//! Real servers for tests: started on free loopback ports in temporary folders, stopped by process id.
//!
//! A test that needs a server and finds none fails and says what to install; it is never skipped.

#[cfg(feature = "dynamodb")]
pub mod dynamodb;
pub mod mariadb;
pub mod pgbouncer;
pub mod postgres;
pub mod redis;

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to start.
const START: Duration = Duration::from_secs(60);

/// A running server. It ends when this is dropped, and also when the test process ends in any way.
#[derive(Debug)]
pub struct Server {
    child: Child,
    folder: Folder,
}

impl Server {
    /// Starts `program` in `folder`; its output goes to the file `log` there.
    ///
    /// As root it runs as `nobody`, since some servers refuse root. The kernel sends it `SIGTERM` when the thread that
    /// started it ends, so it is started from a thread that ends with the process only.
    ///
    /// # Panics
    /// When the program is not there; `package` is the Debian package that the message names.
    pub fn start<A: AsRef<OsStr>>(
        folder: Folder,
        program: &str,
        package: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let program = find(program, package);
        let log = fs::OpenOptions::new().create(true).append(true).open(folder.path().join("log"));
        let log = log.expect("the folder of a server is writable");
        let mut command = as_nobody();
        command.arg("--pdeathsig=TERM").arg(program).args(arguments).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file can be shared")).stderr(log);
        Self { child: in_lasting_thread(command), folder }
    }

    /// The folder that the server works in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until `ready` says so.
    ///
    /// # Panics
    /// When the server ends first, or takes longer than a minute; with what it has logged.
    #[must_use]
    pub fn wait_until(mut self, mut ready: impl FnMut() -> bool) -> Self {
        let started = Instant::now();
        while !ready() {
            let ended = self.child.try_wait().expect("a child can be waited for");
            if ended.is_some() || started.elapsed() > START {
                let log = fs::read_to_string(self.folder().join("log")).unwrap_or_default();
                panic!("a server did not start ({ended:?}):\n{log}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        self
    }

    /// Sends a signal: `"STOP"`, `"CONT"`, `"KILL"`, `"TERM"`, `"INT"`.
    ///
    /// # Panics
    /// When the server is not there any more.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").arg(format!("-{signal}")).arg(self.child.id().to_string()).status();
        assert!(sent.expect("kill is part of every system").success(), "the server takes SIG{signal}");
    }

    /// Ends the server by `signal`, and gives its folder, in which another can be started.
    pub fn end(mut self, signal: &str) -> Folder {
        self.signal(signal);
        // A stopped process takes no other signal but SIGKILL.
        let _ = self.child.wait();
        std::mem::replace(&mut self.folder, Folder::gone())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// `setpriv`, with the rights of `nobody` when this process has those of root. It becomes what it starts, so that the
/// process id is the server's own.
fn as_nobody() -> Command {
    let mut command = Command::new(find("setpriv", "util-linux"));
    if is_root() {
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
    }
    command
}

/// Runs a program to its end with the rights that the servers have.
///
/// # Panics
/// When it fails; with what it said.
pub fn run_as_server<A: AsRef<OsStr>>(program: &str, package: &str, arguments: impl IntoIterator<Item = A>) {
    let output = as_nobody().arg(find(program, package)).args(arguments).output().expect("setpriv runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} failed: {said}{}", String::from_utf8_lossy(&output.stdout));
}

/// Gives a file to the user that the servers run as.
///
/// # Panics
/// When this process is root and cannot.
pub fn give_to_servers(file: &Path) {
    if is_root() {
        let owned = Command::new("chown").arg("nobody:nogroup").arg(file).status();
        assert!(owned.is_ok_and(|status| status.success()), "root can give a file away");
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0)
}

/// Starts a child from a thread that ends with the process only.
fn in_lasting_thread(mut command: Command) -> Child {
    let (give, take) = mpsc::channel();
    thread::spawn(move || {
        let _ = give.send(command.spawn());
        loop {
            thread::park();
        }
    });
    take.recv().expect("the thread answers").expect("setpriv runs")
}

/// Where a program is: in the search path, or where Debian puts servers.
///
/// # Panics
/// When it is nowhere.
pub fn find(program: &str, package: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from));
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    let found = folders.iter().map(|folder| folder.join(program)).find(|file| file.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "this test needs `{program}`: install the Debian package `{package}`, or run `tests/run` as root"
        )
    })
}

/// A port of the loopback address that nobody uses just now.
///
/// # Panics
/// When there is none.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    listener.local_addr().expect("a listener has an address").port()
}

/// A temporary folder that the servers may write to, deleted when it is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new one.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("idempotent-{name}-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).expect("the temporary folder is writable");
        if is_root() {
            fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("a new folder can be changed");
            let owned = Command::new("chown").arg("nobody:nogroup").arg(&path).status();
            assert!(owned.is_ok_and(|status| status.success()), "root can give a folder away");
        }
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A folder that has been given away.
    fn gone() -> Self {
        Self(PathBuf::new())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
