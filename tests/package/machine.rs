//! A clean machine: a new Debian with systemd as its first process, in its own namespaces; its
//! changes are gone with it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use e2e::process::{self, DEADLINE};
use e2e::scratch::Scratch;

/// The release that the root is made of.
const RELEASE: &str = "bookworm";
/// Making the root takes a minute where the mirror is near.
const MAKING: Duration = Duration::from_secs(600);
const PATH: &str = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";

/// A running machine. Dropping it ends it.
pub struct Machine {
    child: Child,
    init: u32,
    cgroup: PathBuf,
    scratch: Scratch,
}

impl Machine {
    /// Boots one.
    ///
    /// # Errors
    /// Why that is not possible here.
    ///
    /// # Panics
    /// When systemd was started and does not come up.
    pub fn boot() -> Result<Self, String> {
        let root = clean_root()?;
        let scratch = Scratch::new("machine");
        let (work, notify) = (scratch.folder("work", None), scratch.path().join("notify"));
        let listener = UnixDatagram::bind(&notify).map_err(|e| format!("a socket: {e}"))?;
        let cgroup = cgroup()?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("package/boot.sh");
        let mut child = Command::new("sh")
            .args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec unshare \"$@\""])
            .arg(&cgroup)
            .args(["-m", "-p", "-n", "-u", "-i", "-C", "--fork", "--kill-child", "sh"])
            .arg(script)
            .args([&root, &work, &notify])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("unshare: {e}"))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(|e| e.to_string())?;
        }
        if line != "booting\n" {
            let out = child.wait_with_output().map_err(|e| e.to_string())?;
            remove_cgroup(&cgroup);
            return Err(format!("no machine: {}", String::from_utf8_lossy(&out.stderr).trim()));
        }
        let init = only_child(child.id());
        let machine = Self { child, init, cgroup, scratch };
        machine.wait_until_up(&listener);
        Ok(machine)
    }

    /// systemd notifies the process that started it, as any service does.
    fn wait_until_up(&self, listener: &UnixDatagram) {
        listener.set_read_timeout(Some(DEADLINE)).expect("a socket");
        let mut message = [0; 4096];
        loop {
            let n = listener.recv(&mut message).expect("systemd is up in time");
            let text = String::from_utf8_lossy(&message[..n]);
            if text.lines().any(|line| line == "READY=1") {
                return;
            }
        }
    }

    /// A path of the machine as seen from here.
    pub fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.init))
    }

    /// A folder on this side.
    pub fn outside(&self) -> &Path {
        self.scratch.path()
    }

    /// A command on the machine.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.enter(&["-m", "-p", "-n", "-u", "-i", "-C", "-r", "-w"]);
        command.args(["env", "-i", PATH, "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"]).args(words);
        command
    }

    /// A program of this side that uses the machine's network.
    pub fn over_its_network(&self, words: &[&str]) -> Output {
        process::run(self.enter(&["-n"]).args(words), DEADLINE)
    }

    fn enter(&self, namespaces: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.init.to_string()]).args(namespaces);
        command
    }

    /// What a command on the machine prints; it must succeed.
    ///
    /// # Panics
    /// When it does not.
    pub fn run(&self, words: &[&str]) -> String {
        let out = process::succeed(&mut self.command(words));
        String::from_utf8_lossy(&out).trim().to_owned()
    }

    /// Whether a command on the machine succeeds.
    pub fn succeeds(&self, words: &[&str]) -> bool {
        process::run(&mut self.command(words), DEADLINE).status.success()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // With its first process everything in the machine ends, and unshare with that: then the
        // group is empty.
        process::signal(self.init, libc::SIGKILL);
        let _ended = process::wait(&mut self.child, DEADLINE);
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
        remove_cgroup(&self.cgroup);
    }
}

/// The one child of `unshare --fork`, which is the first process of the new namespace.
fn only_child(pid: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("the kernel lists children");
    children.trim().parse().expect("exactly one child")
}

/// A control group for the machine, in the unified hierarchy.
fn cgroup() -> Result<PathBuf, String> {
    let mounts = fs::read_to_string("/proc/self/mounts").map_err(|e| e.to_string())?;
    let unified = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let place = words.next()?;
        (words.next()? == "cgroup2").then_some(place)
    });
    let place = unified.ok_or("no unified control groups are mounted")?;
    let path = Path::new(place).join(format!("plimsoll-test-{}", std::process::id()));
    fs::create_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

/// Removes a group and those below; they are empty once their processes are gone.
fn remove_cgroup(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_cgroup(&entry.path());
        }
    }
    let _left = fs::remove_dir(path);
}

/// A minimal Debian with systemd, retained in the target folder.
fn clean_root() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let target = own.ancestors().nth(3).ok_or("no target folder")?;
    let (root, making) =
        (target.join("clean-root").join(RELEASE), target.join("clean-root/being-made"));
    if root.exists() {
        return Ok(root);
    }
    fs::create_dir_all(&making).map_err(|e| e.to_string())?;
    fs::remove_dir_all(&making).map_err(|e| e.to_string())?;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap
        .args(["--variant=minbase", "--include=adduser,systemd,systemd-sysv", RELEASE])
        .arg(&making);
    let out = process::run(&mut debootstrap, MAKING);
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stdout);
        let last = said.lines().last().unwrap_or_default().to_owned();
        return Err(format!("debootstrap made no clean root ({last})"));
    }
    fs::rename(&making, &root).map_err(|e| e.to_string())?;
    Ok(root)
}
