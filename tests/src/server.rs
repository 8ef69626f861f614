//! The real server as a child process: started on free ports, asked for its URLs, ended by id.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cgroup::Group;
use crate::netns::Namespace;
use crate::nfs3::{Client, Handle};
use crate::scratch::Scratch;
use crate::{NOBODY, ports, process};

/// How long a start may take on a busy machine with a cold cache.
const START: Duration = crate::patience(30);
/// How long an orderly end may take.
const STOP: Duration = crate::patience(20);

/// What to start. Only the directory is needed.
pub struct Options<'a> {
    /// Directory to serve.
    pub dir: &'a Path,
    /// State directory.
    pub state: &'a Path,
    /// Address to listen on.
    pub address: &'a str,
    /// Port offset; a free one when `None`.
    pub offset: Option<u16>,
    /// Whether to run as an ordinary user.
    pub unprivileged: bool,
    /// Namespace to run in.
    pub namespace: Option<&'a Namespace>,
    /// Control group to run in.
    pub group: Option<&'a Group>,
    /// Most descriptors that it may have open.
    pub descriptors: Option<u64>,
    /// Another program than [`binary`].
    pub program: Option<&'a Path>,
    /// More arguments.
    pub args: Vec<OsString>,
    /// More environment.
    pub env: Vec<(&'a str, String)>,
}

impl<'a> Options<'a> {
    /// Serves `dir` with its state in `state`, on 127.0.0.1.
    pub fn new(dir: &'a Path, state: &'a Path) -> Self {
        Self {
            dir,
            state,
            address: "127.0.0.1",
            offset: None,
            unprivileged: false,
            namespace: None,
            group: None,
            descriptors: None,
            program: None,
            args: Vec::new(),
            env: Vec::new(),
        }
    }
}

/// A running server. Dropping it kills it.
pub struct Server {
    child: Child,
    /// What it announced.
    pub announced: Value,
    /// Its port offset.
    pub offset: u16,
    log: PathBuf,
}

impl Server {
    /// Starts the binary and waits until it reports that it is ready.
    ///
    /// # Panics
    /// When it does not get ready; with its output.
    pub fn start(options: &Options<'_>) -> Self {
        Self::try_start(options).unwrap_or_else(|why| panic!("{why}"))
    }

    /// As [`Server::start`], for tests in which not starting is an outcome.
    ///
    /// # Errors
    /// Its output, if it does not get ready.
    pub fn try_start(options: &Options<'_>) -> Result<Self, String> {
        let offset = options.offset.unwrap_or_else(|| match options.namespace {
            // There any will do.
            Some(_) => ports::next_offset(),
            None => ports::free_offset(options.address),
        });
        let log = log_file();
        let mut command = command(options, offset);
        command.stdout(Stdio::piped()).stderr(File::create(&log).map_err(|e| e.to_string())?);
        let mut child = spawn(&mut command).map_err(|e| format!("{command:?}: {e}"))?;
        let out = child.stdout.take();
        let (say, hear) = mpsc::channel();
        std::thread::spawn(move || {
            let (mut out, mut line) = (BufReader::new(out?), String::new());
            let _end = out.read_line(&mut line);
            let _gone = say.send(line);
            // The pipe stays open for later output.
            io::copy(&mut out, &mut io::sink()).ok()
        });
        let line = hear.recv_timeout(START).unwrap_or_default();
        let mut server = Self { child, announced: Value::Null, offset, log };
        match serde_json::from_str(&line) {
            Ok(announced) => server.announced = announced,
            Err(_) if line.is_empty() && server.child.try_wait().is_ok_and(|end| end.is_none()) => {
                return Err(format!(
                    "not within {START:?}: the server is ready\n{}",
                    server.stderr_text()
                ));
            }
            Err(_) => {
                return Err(format!("the server is not ready: {line:?}\n{}", server.stderr_text()));
            }
        }
        Ok(server)
    }

    /// What it wrote to its standard error so far.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Port of NFS and MOUNT.
    pub fn nfs_port(&self) -> u16 {
        2049 + self.offset
    }

    /// Where the service with this standard port listens.
    pub fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port + self.offset))
    }

    /// Export path of the only share.
    ///
    /// # Panics
    /// When it announced no share.
    pub fn export(&self) -> String {
        let shares = self.announced["shares"].as_object().expect("shares in the announcement");
        format!("/export/{}", shares.keys().next().expect("a share"))
    }

    /// Where NFS and MOUNT listen, when that is on 127.0.0.1.
    pub fn nfs(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.nfs_port()))
    }

    /// A client of it and the root of its only share; calls carry `uid` and `gid`.
    ///
    /// # Panics
    /// When it cannot be mounted.
    pub fn mount(&self, uid: u32, gid: u32) -> (Client, Handle) {
        let mut client = Client::connect(self.nfs(), uid, gid).expect("a connection");
        let root = client.mnt(&self.export()).expect("a mount");
        (client, root)
    }

    /// URL of a path in the share, as libnfs wants it.
    pub fn libnfs_url(&self, path: &str) -> String {
        let (port, export) = (self.nfs_port(), self.export());
        format!("nfs://127.0.0.1{export}/{path}?version=3&nfsport={port}&mountport={port}")
    }

    /// Ends it at once, as a power cut would, and waits until it is gone.
    pub fn kill(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }

    /// Asks it to end and waits.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn stop(&mut self) -> ExitStatus {
        process::signal(self.child.id(), libc::SIGTERM);
        let status = process::wait(&mut self.child, STOP);
        status.unwrap_or_else(|| panic!("still there after SIGTERM\n{}", self.stderr_text()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _left = fs::remove_file(&self.log);
    }
}

fn command(options: &Options<'_>, offset: u16) -> Command {
    let mut command = Command::new(options.program.unwrap_or_else(|| binary()));
    command
        .arg("serve")
        .arg(options.dir)
        .arg("--state")
        .arg(options.state)
        .args(["--address", options.address, "--port-offset", &offset.to_string()])
        .args(["--announce", "json", "--user", "admin:only-for-this-test"])
        .args(&options.args)
        .envs(options.env.iter().map(|(k, v)| (*k, v.as_str())))
        // The registry of running servers must not be the machine's own.
        .env("XDG_RUNTIME_DIR", options.state)
        .stdin(Stdio::null());
    if let Some(namespace) = options.namespace {
        namespace.enter(&mut command);
    }
    if let Some(group) = options.group {
        group.enter(&mut command);
    }
    if let Some(most) = options.descriptors {
        process::limit_descriptors(&mut command, most);
    }
    if options.unprivileged {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// The binary under test: `PLIMSOLL_BIN`, or the one that this build left in the target folder. It
/// is copied to where an ordinary user can run it, unless `PLIMSOLL_BIN_SHARED` names such a copy.
///
/// # Panics
/// When there is none, or it cannot be copied.
pub fn binary() -> &'static Path {
    static SHARED: OnceLock<Option<PathBuf>> = OnceLock::new();
    let shared = || std::env::var_os("PLIMSOLL_BIN_SHARED").map(PathBuf::from);
    if let Some(path) = SHARED.get_or_init(shared) {
        return path;
    }
    let (_, path) = COPY.get_or_init(|| {
        let named = std::env::var_os("PLIMSOLL_BIN").map(PathBuf::from);
        let built = named.unwrap_or_else(|| built("plimsoll"));
        let scratch = Scratch::new("binary");
        let path = scratch.path().join("plimsoll");
        let copied = fs::copy(&built, &path);
        copied.unwrap_or_else(|e| panic!("{}: {e}: build it first (cargo build)", built.display()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("making it runnable");
        // SAFETY: a plain function that takes nothing; what is static is never dropped.
        unsafe { libc::atexit(remove_copy) };
        (scratch, path)
    });
    path
}

extern "C" fn remove_copy() {
    if let Some((scratch, _)) = COPY.get() {
        let _left = fs::remove_dir_all(scratch.path());
    }
}

/// The copy that all servers of this process are started from.
static COPY: OnceLock<(Scratch, PathBuf)> = OnceLock::new();

/// Starts a program that this process has just written: until a child that another thread starts at
/// the same time has become its own program, it has that file open for writing too (ETXTBSY).
fn spawn(command: &mut Command) -> io::Result<Child> {
    let until = Instant::now() + START;
    loop {
        match command.spawn() {
            Err(e) if e.kind() == ErrorKind::ExecutableFileBusy && Instant::now() < until => {
                std::thread::yield_now();
            }
            ended => return ended,
        }
    }
}

/// `target/PROFILE/PROGRAM`, from this test's own `target/PROFILE/deps/NAME`.
///
/// # Panics
/// When this test is somewhere else.
pub fn built(program: &str) -> PathBuf {
    let own = std::env::current_exe().expect("this program's path");
    own.ancestors().nth(2).expect("the target folder").join(program)
}

fn log_file() -> PathBuf {
    static NUMBER: AtomicU16 = AtomicU16::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("plimsoll-test-log-{}-{number}", std::process::id()))
}
