//! Linux clients as User Mode Linux guests that a test controls: scripts run in them in parallel,
//! report events on the guest's console, and end with a status.
//!
//! Guest side: `uml/init.sh` (its process 1) and `uml/agent.sh` (what takes the orders).

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::netns::{HOST, Namespace};
use crate::process::{self, succeed};
use crate::{has, is_root};

/// Memory of a guest that runs small tools only.
const MEMORY: &str = "mem=256M";
/// Debian's kernel as a program.
pub const DEBIAN: &str = "linux.uml";
/// The kernel to boot, when it is not Debian's.
const KERNEL: &str = "PLIMSOLL_UML_KERNEL";
/// A boot takes 3 s on an idle machine.
const BOOT: Duration = crate::patience(60);
/// How long a script or an event may take: a client waits for a server's grace period, and 30 s at
/// most between two requests for a lock.
const ANSWER: Duration = crate::patience(90);

/// Why a guest cannot run here.
pub fn unavailable() -> Option<String> {
    if !is_root() {
        return Some("needs root for a network namespace with a tap device".to_owned());
    }
    let tools = [DEBIAN, "mount.nfs", "insmod", "unshare", "ip", "gcc"];
    let missing: Vec<_> = tools.into_iter().filter(|tool| !has(tool)).collect();
    (!missing.is_empty()).then(|| format!("not installed: {}", missing.join(", ")))
}

/// Whether guests run Debian's kernel, and not one that the environment names.
pub fn is_debian() -> bool {
    std::env::var_os(KERNEL).is_none()
}

/// Why a guest of Debian's kernel, with its modules, cannot hold a server.
pub fn server_unavailable() -> Option<String> {
    if let Some(why) = unavailable() {
        return Some(why);
    }
    if !is_debian() {
        return Some("the kernel of guests has no modules".to_owned());
    }
    (!has("curl")).then(|| "not installed: curl".to_owned())
}

/// The kernel that the environment names, or the one that `tests/uml/build-kernel` has left in its
/// folder.
pub fn built_kernel() -> Option<PathBuf> {
    let named = std::env::var_os(KERNEL).map(PathBuf::from);
    named.or_else(|| {
        let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
        Some(cache.join("plimsoll/uml/linux-6.12")).filter(|kernel| kernel.exists())
    })
}

/// The turn to run guests: a test's own processor time is part of what it measures.
pub fn turn() -> MutexGuard<'static, ()> {
    static GUESTS: Mutex<()> = Mutex::new(());
    GUESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A namespace with a tap device for each of `guests`, all with the host's one address.
///
/// # Errors
/// What is missing, for a SKIP line.
pub fn namespace(guests: u8) -> Result<Namespace, String> {
    let setup = format!("set -e\nip link set lo up\n{}", taps(guests));
    Namespace::with(&setup).map_err(|e| format!("no network namespace with tap devices: {e}"))
}

/// What makes tap devices for this number of guests, for a namespace that has more.
pub fn taps(guests: u8) -> String {
    let mut setup = String::new();
    for guest in 0..guests {
        let (tap, address) = (tap(guest), address(guest));
        setup += &format!("ip tuntap add dev {tap} mode tap\nip addr add {HOST}/32 dev {tap}\n");
        setup += &format!("ip link set {tap} up\nip route add {address}/32 dev {tap}\n");
    }
    setup
}

fn tap(guest: u8) -> String {
    format!("tap{guest}")
}

fn address(guest: u8) -> String {
    format!("10.0.2.{}", 15 + guest)
}

fn sources() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("uml")
}

/// A script that runs in a guest.
#[derive(Debug)]
#[must_use]
pub struct Task(String);

/// A running guest. Dropping it cuts its power.
pub struct Guest {
    child: Child,
    lines: Receiver<String>,
    /// Everything on its console so far.
    console: Vec<String>,
    /// Events that were not waited for yet, in order.
    events: Vec<String>,
    share: PathBuf,
    scripts: u32,
    number: u8,
    /// How long a script or an event may take.
    answer: Duration,
}

impl Guest {
    /// Boots the guest of this number; its shared folder lies in `scratch`.
    ///
    /// # Panics
    /// When it does not get ready; with its console.
    pub fn boot(namespace: &Namespace, number: u8, scratch: &Path) -> Self {
        let kernel = std::env::var_os(KERNEL).unwrap_or_else(|| DEBIAN.into());
        Self::boot_with(&kernel, MEMORY, namespace, number, scratch)
    }

    /// The same with this kernel, and with this memory (`mem=256M`).
    ///
    /// # Panics
    /// When it does not get ready; with its console.
    pub fn boot_with(
        kernel: &OsStr,
        memory: &str,
        namespace: &Namespace,
        number: u8,
        scratch: &Path,
    ) -> Self {
        Self::boot_with_disks(kernel, memory, namespace, number, scratch, &[])
    }

    /// The same with disks, `/dev/ubda` and following, which are these files and outlive it.
    ///
    /// # Panics
    /// When it does not get ready; with its console.
    pub fn boot_with_disks(
        kernel: &OsStr,
        memory: &str,
        namespace: &Namespace,
        number: u8,
        scratch: &Path,
        disks: &[PathBuf],
    ) -> Self {
        let share = scratch.join(format!("guest{number}"));
        fs::create_dir_all(&share).expect("a shared folder");
        fs::copy(sources().join("agent.sh"), share.join("job")).expect("the guest's job");
        let mut command = command(kernel, number, &share, scratch);
        command.arg(memory);
        for (at, disk) in disks.iter().enumerate() {
            command.arg(format!("ubd{at}={}", disk.display()));
        }
        namespace.enter(&mut command);
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let out = child.stdout.take().expect("a pipe");
        let (say, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(out).split(b'\n').map_while(Result::ok);
            lines.try_for_each(|line| say.send(String::from_utf8_lossy(&line).trim().to_owned()))
        });
        let (console, events) = (Vec::new(), Vec::new());
        let (scripts, answer) = (0, ANSWER);
        let mut guest = Self { child, lines, console, events, share, scripts, number, answer };
        guest.event_within("ready", BOOT);
        guest
    }

    /// Lets scripts and events take up to this long: for a guest with slow scripts.
    pub fn answers_within(&mut self, deadline: Duration) {
        self.answer = deadline;
    }

    /// Puts a program, compiled from `uml/NAME.c`, on the guest's path.
    ///
    /// # Panics
    /// When it does not compile.
    pub fn install(&self, name: &str) {
        let source = sources().join(name).with_extension("c");
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-o"]);
        succeed(gcc.arg(self.share.join(name)).arg(source));
    }

    /// The folder that guest and host share, `/mnt/host` in the guest.
    pub fn share(&self) -> &Path {
        &self.share
    }

    /// Mounts `export` at `/mnt/NAME` with these options.
    ///
    /// # Panics
    /// When the client cannot.
    pub fn mount(&mut self, name: &str, port: u16, export: &str, options: &str) {
        let script = format!(
            "mkdir -p /mnt/{name}\n\
             mount -t nfs -o {options},proto=tcp,port={port},noresvport {HOST}:{export} /mnt/{name}"
        );
        self.run(&script);
    }

    /// Starts a script.
    ///
    /// # Panics
    /// When the guest is gone.
    pub fn begin(&mut self, script: &str) -> Task {
        self.scripts += 1;
        let name = format!("script{}", self.scripts);
        fs::write(self.share.join(&name), format!("{script}\n")).expect("a script");
        let input = self.child.stdin.as_mut().expect("a pipe");
        input.write_all(format!("{name}\n").as_bytes()).expect("a guest that listens");
        Task(name)
    }

    /// Waits for a script's end: its status, and what it wrote.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn end(&mut self, task: &Task) -> (i32, String) {
        let words = self.event(&format!("{} ended", task.0));
        let log = fs::read(self.share.join(format!("{}.log", task.0))).unwrap_or_default();
        (words.parse().unwrap_or(-1), String::from_utf8_lossy(&log).into_owned())
    }

    /// Runs a script to its end, which must be a good one; returns what it wrote.
    ///
    /// # Panics
    /// When it fails, or takes too long.
    pub fn run(&mut self, script: &str) -> String {
        let task = self.begin(script);
        let (status, log) = self.end(&task);
        assert_eq!(status, 0, "guest {}: {script}\n{log}\n{}", self.number, self.said());
        log
    }

    /// Waits for an event that begins with these words; returns the rest of it.
    ///
    /// # Panics
    /// When it does not come in time; with the console.
    pub fn event(&mut self, words: &str) -> String {
        self.event_within(words, self.answer)
    }

    fn event_within(&mut self, words: &str, deadline: Duration) -> String {
        let end = Instant::now() + deadline;
        loop {
            if let Some(at) = self.events.iter().position(|event| is(event, words)) {
                let event = self.events.remove(at);
                return event.get(words.len()..).unwrap_or_default().trim().to_owned();
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.record_line(line),
                Err(why) => {
                    let why = if why == RecvTimeoutError::Timeout { "too late" } else { "gone" };
                    panic!("guest {}: no {words:?}: {why}\n{}", self.number, self.said());
                }
            }
        }
    }

    /// Removes the pending events with these words; whether there was one.
    pub fn forget(&mut self, words: &str) -> bool {
        while let Ok(line) = self.lines.try_recv() {
            self.record_line(line);
        }
        let before = self.events.len();
        self.events.retain(|event| !is(event, words));
        self.events.len() < before
    }

    fn record_line(&mut self, line: String) {
        if let Some((_, event)) = line.split_once("@ ") {
            self.events.push(event.to_owned());
        }
        self.console.push(line);
    }

    /// Its console so far, and what its scripts have written.
    pub fn said(&self) -> String {
        let mut text = self.console.join("\n");
        for script in 1..=self.scripts {
            let log = self.share.join(format!("script{script}.log"));
            let log = fs::read_to_string(log).unwrap_or_default();
            if !log.is_empty() {
                text += &format!("\n-- script{script}\n{}", log.trim_end());
            }
        }
        text
    }

    /// Stops it where it is, as when its machine is suspended, or lets it continue.
    pub fn suspend(&self, stop: bool) {
        // Its kernel alone: that is what runs its processes, and what would see them stopped.
        process::signal(self.child.id(), if stop { libc::SIGSTOP } else { libc::SIGCONT });
    }

    /// Cuts its power.
    pub fn cut(&mut self) {
        // Its processes are processes of the host, in a group of their own.
        process::signal_group(self.child.id(), libc::SIGKILL);
        let _reaped = self.child.wait();
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.cut();
    }
}

/// Whether an event begins with these words, and not only with these letters.
fn is(event: &str, words: &str) -> bool {
    event.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn command(kernel: &OsStr, number: u8, share: &Path, scratch: &Path) -> Command {
    let mut guest = guest(kernel, number, &tap(number), share, scratch);
    guest
        .arg("con0=fd:0,fd:1")
        .arg(format!("plimsoll.address={}", address(number)))
        .arg(format!("plimsoll.name=guest{number}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    guest
}

/// What boots `kernel` on the host's own files, read-only, with `uml/init.sh` as its process 1:
/// `share` is its folder, `tap` its network. Memory and console are the caller's matter.
///
/// # Panics
/// When what it needs does not compile.
pub fn guest(kernel: &OsStr, number: u8, tap: &str, share: &Path, scratch: &Path) -> Command {
    let mut guest = Command::new(kernel);
    guest
        .args(["rootfstype=hostfs", "root=/dev/root", "rootflags=/", "ro", "quiet", "con=null"])
        .arg(format!("umid=guest{}-{number}", std::process::id()))
        .arg(format!("uml_dir={}", scratch.display()))
        .arg(format!("vec0:transport=tap,ifname={tap},depth=64,gro=1"))
        .arg(format!("init={}", sources().join("init.sh").display()))
        .arg(format!("plimsoll.share={}", share.display()))
        .env("LD_PRELOAD", whole_state(scratch));
    // Its memory is a file: in shared memory where there is room, not on a disk.
    if Path::new("/dev/shm").is_dir() {
        guest.env("TMPDIR", "/dev/shm");
    }
    guest
}

/// `uml/whole_state.c`, compiled.
fn whole_state(scratch: &Path) -> PathBuf {
    let library = scratch.join("whole_state.so");
    if !library.exists() {
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o"]);
        succeed(gcc.arg(&library).arg(sources().join("whole_state.c")));
    }
    library
}
