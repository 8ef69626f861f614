//! One run: `plimsoll dsync` as a child. The kernel ends it together with the thread that has
//! started it, and so with the server; what it starts in turn (ssh) is in its process group and
//! ends with it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::place::{Endpoint, Opened};
use super::plan::{Plan, Secrets};
use super::progress::{self, Progress};
use super::record::Outcome;
use super::served::Served;

/// Below the state directory: what runs need, and which machines have shown which keys.
const FOLDER: &str = "replication";
/// Mode of folders: access for the owner only.
const OWN: u32 = 0o700;
/// Folders of runs, each with a number behind it.
const RUN: &str = "run-";
/// Exit code of `dsync`: done except for the reported failures.
const PARTIAL: i32 = 3;
/// Names of files that clients are uploading (`serve/files/upload.rs`), as a pattern.
const UPLOADS: &str = ".plimsoll-upload-*";
/// Retries of a run after a broken connection, within half a minute: enough for an appliance that
/// restarts. A longer interruption is left to the next run.
const RETRY: [&str; 2] = ["--retry", "5"];
/// Options that hold for each contact. Files are named as they are called from the folder of the
/// run, since the name of the state directory may have spaces.
const SSH: &str = "ssh -F none -o LogLevel=ERROR -o NumberOfPasswordPrompts=1 -o ConnectTimeout=30 \
                   -o ServerAliveInterval=30 -o ServerAliveCountMax=4";

/// What runs need of this machine.
pub struct Environment {
    /// This program.
    pub program: PathBuf,
    /// The state directory.
    pub state: PathBuf,
}

/// How a run ended: the outcome, and why it is not done.
pub type End = (Outcome, String);

/// A run, from its start to its end.
pub struct Run {
    /// What started it: `schedule`, or a user.
    pub by: String,
    /// When, seconds since the epoch.
    pub began: u64,
    /// Times that it was due again meanwhile.
    pub skipped: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    progress: Progress,
    /// The process group, while it can be named: its leader was not waited for.
    group: Option<i32>,
    /// Why it is to end before it is done.
    stopped: Option<String>,
}

impl Environment {
    /// Removes what runs of a server that was killed have left.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn prepare(&self) -> io::Result<()> {
        let folder = self.state.join(FOLDER);
        match fs::symlink_metadata(&folder) {
            // No run has begun yet.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            meta => restore_mode(&folder, &meta?)?,
        }
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_name().as_bytes().starts_with(RUN.as_bytes()) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    fn folder(&self) -> io::Result<Folder> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let all = self.state.join(FOLDER);
        make_folder(&all)?;
        restore_mode(&all, &fs::symlink_metadata(&all)?)?;
        let path = all.join(format!("{RUN}{number}"));
        make_folder(&path)?;
        Ok(Folder(path))
    }
}

/// Creates a folder if it does not exist. Its owner and mode are on disk before it is used: after a
/// power cut in between, a server that does not run as root could not use it otherwise.
fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(OWN).create(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.and_then(|()| File::open(path)?.sync_all()),
    }
}

/// Gives the folder its mode again, which a power cut can have taken from one that was just made.
fn restore_mode(path: &Path, meta: &Metadata) -> io::Result<()> {
    if meta.is_dir() && meta.mode() & 0o7777 != OWN {
        fs::set_permissions(path, Permissions::from_mode(OWN))?;
    }
    Ok(())
}

/// The folder of a run; it goes with all that is in it.
struct Folder(PathBuf);

impl Folder {
    fn write(&self, name: &str, text: &str, mode: u32) -> io::Result<()> {
        let path = self.0.join(name);
        let mut file = File::options().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(text.as_bytes())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.0) {
            base::warning!("replication", "{} cannot be removed: {e}", self.0.display());
        }
    }
}

impl Run {
    /// One that begins now.
    pub fn new(by: &str, began: u64) -> Self {
        let (by, skipped, inner) = (by.to_owned(), AtomicU64::new(0), Mutex::default());
        Self { by, began, skipped, inner }
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.inner().progress.clone()
    }

    /// Ends it; `why` is a sentence.
    pub fn stop(&self, why: &str) {
        let mut inner = self.inner();
        inner.stopped.get_or_insert_with(|| why.to_owned());
        inner.kill();
    }

    /// Whether it is to end.
    pub fn is_stopped(&self) -> bool {
        self.inner().stopped.is_some()
    }

    /// Runs it, on a thread that stays until it has ended.
    pub fn go(&self, kit: &Environment, plan: &Plan, secrets: &Secrets, served: &Served) -> End {
        match self.child(kit, plan, secrets, served) {
            Ok(end) => end,
            Err(why) => match self.inner().stopped.take() {
                Some(stopped) => (Outcome::Stopped, stopped),
                None => (Outcome::Failed, progress::one_line(&why)),
            },
        }
    }

    fn child(
        &self,
        kit: &Environment,
        plan: &Plan,
        secrets: &Secrets,
        served: &Served,
    ) -> Result<End, String> {
        let here = |e: io::Error| format!("this machine cannot start a run: {e}");
        // What may not be read has nothing made for it.
        let source = Side::open(&plan.source, served, &kit.state, false)?;
        let destination = Side::open(&plan.destination, served, &kit.state, true)?;
        let folder = kit.folder().map_err(here)?;
        let sides = [&source, &destination];
        // The run checks each file in the table of opens, as a client does.
        let guard = (served.guard)().map_err(here)?;
        let command = command(kit, plan, secrets, &folder, sides, guard.as_raw_fd())?;
        let (mut child, said) = self.start(command).map_err(here)?;
        // The child alone has it now: its end is the end of the run's opens.
        drop(guard);
        let said = said.map_err(here)?;
        let read = child
            .stdout
            .take()
            .map(|out| progress::lines(out, |line| self.inner().progress.take(line)));
        // The output is read to its end before the process is waited for, and ends when the process
        // closes it or its reader has failed.
        if let Some(Err(_)) = read {
            self.inner().kill();
        }
        let status = self.wait(&mut child).map_err(here)?;
        let said = said.join().unwrap_or_default();
        Ok(self.ended(status, &said, plan.host()))
    }

    /// Starts it, and a thread that reads its standard error.
    fn start(&self, mut command: Command) -> io::Result<(Child, io::Result<OutputReader>)> {
        let mut inner = self.inner();
        if inner.stopped.is_some() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut child = command.spawn()?;
        inner.group = i32::try_from(child.id()).ok();
        drop(inner);
        let errors = child.stderr.take();
        let thread = std::thread::Builder::new().name("replication-said".into());
        let said = thread.spawn(move || {
            errors.and_then(|errors| progress::tail(errors).ok()).unwrap_or_default()
        });
        if said.is_err() {
            // Its standard error would not be read: it must not continue without a reader.
            self.inner().kill();
        }
        Ok((child, said))
    }

    /// Waits for its end. Its process group can be named until its leader has been waited for, and
    /// what is left of the group ends before.
    fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        // SAFETY: plain data, for which all zeros is a value.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        loop {
            // SAFETY: the pointer is to a value of this function.
            let waited = unsafe {
                let flags = libc::WEXITED | libc::WNOWAIT;
                libc::waitid(libc::P_PID, child.id(), &raw mut info, flags)
            };
            if waited == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break;
            }
        }
        let mut inner = self.inner();
        inner.kill();
        inner.group = None;
        drop(inner);
        child.wait()
    }

    fn ended(&self, status: ExitStatus, said: &str, host: Option<&str>) -> End {
        let stopped = self.inner().stopped.take();
        match (status.code(), stopped) {
            (Some(0), _) => (Outcome::Done, String::new()),
            (Some(PARTIAL), _) => {
                let reason = "entries could not be copied; the first are listed";
                (Outcome::Partial, reason.to_owned())
            }
            (_, Some(why)) => (Outcome::Stopped, why),
            (Some(_), None) => (Outcome::Failed, progress::reason(said, host)),
            (None, None) => {
                let signal = status.signal().unwrap_or_default();
                (Outcome::Failed, format!("it was killed by signal {signal}"))
            }
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that reads the standard error of a run.
type OutputReader = std::thread::JoinHandle<String>;

impl Inner {
    fn kill(&self) {
        if let Some(group) = self.group {
            // SAFETY: a system call with two numbers. One that has ended already is as good.
            unsafe { libc::killpg(group, libc::SIGKILL) };
        }
    }
}

/// A side of a run.
enum Side {
    /// With the rule that leaves the state directory out, if that lies in it.
    Local(Opened, Option<OsString>),
    Remote(String),
}

impl Side {
    fn open(place: &Endpoint, served: &Served, state: &Path, change: bool) -> Result<Self, String> {
        let (name, path) = match place {
            Endpoint::Remote { url, .. } => return Ok(Self::Remote(url.clone())),
            Endpoint::Share { name, path } => (name, path),
        };
        let shares = (served.shares)();
        let Some(share) = shares.iter().find(|share| share.name == *name) else {
            return Err(format!("the share {name:?} is not served"));
        };
        if change && share.read_only {
            return Err(format!("the share {name} is read-only, and is the destination"));
        }
        let opened = Opened::below(Path::new(&share.dir), name, path, change);
        let opened = opened.map_err(|e| e.to_string())?;
        let hides = hides(&opened, state)?;
        Ok(Self::Local(opened, hides))
    }

    fn argument(&self) -> OsString {
        match self {
            Self::Local(opened, _) => opened.name().into(),
            Self::Remote(url) => url.into(),
        }
    }

    fn fd(&self) -> Option<i32> {
        match self {
            Self::Local(opened, _) => Some(opened.fd()),
            Self::Remote(_) => None,
        }
    }

    fn hidden(&self) -> Option<&OsStr> {
        match self {
            Self::Local(_, hides) => hides.as_deref(),
            Self::Remote(_) => None,
        }
    }
}

/// The rule that leaves the state directory out, if it lies in a directory: its keys stay here, and
/// nothing takes them away.
fn hides(opened: &Opened, state: &Path) -> Result<Option<OsString>, String> {
    let failed = |e: io::Error| format!("the directory of the share cannot be resolved: {e}");
    let (real, state) = (opened.real().map_err(failed)?, state.canonicalize().map_err(failed)?);
    if real.starts_with(&state) {
        return Err("the directory is inside the state directory".to_owned());
    }
    Ok(state.strip_prefix(&real).ok().map(|below| escaped(below.as_os_str())))
}

/// A path from the top as a pattern that fits only it.
fn escaped(path: &OsStr) -> OsString {
    let mut pattern = b"--exclude=/".to_vec();
    for byte in path.as_bytes() {
        if b"*?[\\".contains(byte) {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    OsString::from_vec(pattern)
}

fn command(
    kit: &Environment,
    plan: &Plan,
    secrets: &Secrets,
    folder: &Folder,
    sides: [&Side; 2],
    guard: i32,
) -> Result<Command, String> {
    let mut command = Command::new(&kit.program);
    command.args(["dsync", "--json"]);
    command.arg(format!("--guard={guard}"));
    for side in sides {
        command.args(side.hidden());
    }
    // What a client uploads at the moment is no file of the share yet.
    command.arg(format!("--exclude={UPLOADS}"));
    if plan.host().is_some() {
        command.args(RETRY);
        let rsh = credentials(plan, secrets, folder);
        command.arg("--rsh").arg(rsh.map_err(|e| format!("the key files cannot be written: {e}"))?);
    }
    command.args(&plan.options).arg("--").args(sides.map(Side::argument));
    // Nothing of the server's own surroundings but what finds ssh and its home.
    command.env_clear();
    for name in ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    if secrets.password.is_some() {
        // ssh takes a password from a program alone.
        command
            .env("SSH_ASKPASS", "./ask")
            .env("SSH_ASKPASS_REQUIRE", "force")
            .env("DISPLAY", ":0");
    }
    command.current_dir(&folder.0).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let [one, other] = sides.map(Side::fd);
    with_server(&mut command, [one, other, Some(guard)]);
    Ok(command)
}

/// Has it end with the thread that starts it, and gives it the directories of shares.
fn with_server(command: &mut Command, kept: [Option<i32>; 3]) {
    // SAFETY: system calls with numbers alone, which may be made between fork and exec.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) != 0 {
                return Err(io::Error::last_os_error());
            }
            for fd in kept.into_iter().flatten() {
                if libc::fcntl(fd, libc::F_SETFD, 0) != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}

/// Puts what ssh needs into the folder of the run; how it is called.
fn credentials(plan: &Plan, secrets: &Secrets, folder: &Folder) -> io::Result<String> {
    let mut rsh = SSH.to_owned();
    match &plan.host_key {
        Some(key) => {
            // Whatever it is called: it is this key that counts.
            folder.write("known_hosts", &format!("* {key}\n"), 0o600)?;
            rsh += " -o StrictHostKeyChecking=yes -o UserKnownHostsFile=known_hosts";
        }
        None => {
            rsh += " -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=../known_hosts";
        }
    }
    // Neither an agent nor the files of the server's user: the server authenticates with the
    // configured credentials only.
    rsh += " -o GlobalKnownHostsFile=none -o IdentityAgent=none -o IdentitiesOnly=yes";
    match &secrets.key {
        Some(key) => {
            folder.write("key", &format!("{}\n", key.trim_end()), 0o600)?;
            rsh += " -i key";
        }
        None => rsh += " -o IdentityFile=none -o PubkeyAuthentication=no",
    }
    match &secrets.password {
        Some(password) => {
            folder.write("password", &format!("{password}\n"), 0o600)?;
            folder.write("ask", "#!/bin/sh\nexec cat password\n", 0o700)?;
        }
        None => rsh += " -o BatchMode=yes",
    }
    Ok(rsh)
}
