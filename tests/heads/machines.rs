//! Two machines as docs/howto/heads.md has them: each with a network, `/etc` and `/run` of its own,
//! the cluster file system at two places, and etcd at the addresses of the page. A line of the
//! page is run by a shell on one of them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use e2e::loops::LoopDisk;
use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::server::binary;
use e2e::{has, is_root, patience, process};

use super::cluster::{LEFT, RIGHT};
use super::etcd::StandIn;

/// The page.
pub const PAGE: &str = include_str!("../../docs/howto/heads.md");
/// Where the page has the cluster file system, and where it is here.
const PLACES: [&str; 2] = ["/cluster/", "/mnt/cluster/"];
const SWITCH: &str = "set -e
ip link set lo up
ip link add br0 type bridge
ip addr add 10.0.0.1/24 dev br0
ip addr add 10.0.0.5/24 dev br0
ip link set br0 up
";
/// How long a command, or what it begins, may take.
const SOON: Duration = patience(60);
const EVERY: Duration = Duration::from_millis(20);

/// A machine: a process that keeps its namespaces, and its head.
struct Machine {
    holder: Child,
    head: Option<Child>,
    log: PathBuf,
}

/// A program next to a head.
pub struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Both, with their network.
pub struct Machines {
    both: [Machine; 2],
    _switch: Namespace,
    _etcd: StandIn,
    disk: LoopDisk,
    scratch: Scratch,
}

/// The lines of all blocks of the page, in order.
pub fn blocks() -> Vec<Vec<&'static str>> {
    let blocks = PAGE.split("```\n").skip(1).step_by(2);
    blocks.map(|block| block.lines().collect()).collect()
}

/// The configuration of the page.
pub fn configuration() -> String {
    let is_it = |block: &&Vec<&str>| block.first() == Some(&"name = \"left\"");
    let lines = blocks().into_iter().find(|block| is_it(&block)).expect("the configuration");
    lines.join("\n").replace(PLACES[0], PLACES[1])
}

impl Machines {
    /// Makes them; no head runs yet.
    ///
    /// # Errors
    /// What is missing here.
    pub fn start() -> Result<Self, String> {
        if !is_root() {
            return Err("namespaces and loop devices need root".to_owned());
        }
        if !has("nsenter") {
            return Err("nsenter is not installed".to_owned());
        }
        let disk = LoopDisk::with("xfs")?;
        let scratch = Scratch::new("heads-howto");
        let switch = Namespace::with(SWITCH).map_err(|e| e.to_string())?;
        let etcd = switch.spawn(|| StandIn::start("10.0.0.5:2379")).join();
        let etcd = etcd.map_err(|_| "the stand-in for etcd does not start".to_owned())?;
        let both = [
            Self::machine(LEFT, &switch, &disk, &scratch)?,
            Self::machine(RIGHT, &switch, &disk, &scratch)?,
        ];
        Ok(Self { both, _switch: switch, _etcd: etcd, disk, scratch })
    }

    fn machine(
        n: usize,
        switch: &Namespace,
        disk: &LoopDisk,
        scratch: &Scratch,
    ) -> Result<Machine, String> {
        let (number, shared) = (n + 1, disk.path().display());
        let setup = format!(
            "set -e
ip link set lo up
ip link add eth0 type veth peer name head{number} netns {pid}
ip addr add 10.0.0.1{number}/24 dev eth0
ip link set eth0 up
mount -t tmpfs none /run
mkdir /run/etc /run/work
mount -t overlay none -o lowerdir=/etc,upperdir=/run/etc,workdir=/run/work /etc
mkdir -p /etc/plimsoll
mount -t tmpfs none /mnt
for at in cluster a b; do mkdir /mnt/$at; mount --bind {shared} /mnt/$at; done
echo ready >/run/ready
read -r _ || :",
            pid = switch.pid()
        );
        let mut command = Command::new("unshare");
        command.args(["-m", "-n", "--propagation", "private", "sh", "-c", &setup]);
        let holder = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let holder = holder.map_err(|e| e.to_string())?;
        let log = scratch.path().join(format!("head{number}.log"));
        let mut machine = Machine { holder, head: None, log };
        let until = Instant::now() + SOON;
        while !process::run(machine.shell("[ -e /run/ready ]").stdin(Stdio::null()), SOON)
            .status
            .success()
        {
            if machine.holder.try_wait().map_err(|e| e.to_string())?.is_some() {
                return Err("a machine cannot be made".to_owned());
            }
            assert!(Instant::now() < until, "a machine is not made within {SOON:?}");
            std::thread::sleep(EVERY);
        }
        let mut connect = Command::new("ip");
        connect.args(["link", "set", &format!("head{number}"), "master", "br0", "up"]);
        switch.enter(&mut connect);
        process::succeed(&mut connect);
        Ok(machine)
    }

    /// Runs a line of the page on a machine.
    pub fn output(&self, n: usize, line: &str) -> Output {
        process::run(&mut self.both[n].shell(line), SOON)
    }

    /// The same; it must succeed. What it printed.
    pub fn run(&self, n: usize, line: &str) -> String {
        let output = self.output(n, line);
        let (printed, errors) = texts(&output);
        assert!(output.status.success(), "{line}: {printed}{errors}\n{}", self.logs());
        printed
    }

    /// The same; it must be refused. What it printed about that.
    pub fn refused(&self, n: usize, line: &str) -> String {
        let output = self.output(n, line);
        let (printed, errors) = texts(&output);
        assert!(!output.status.success(), "{line}: {printed}{errors}");
        errors
    }

    /// Writes the configuration of a machine.
    pub fn configure(&self, n: usize, text: &str) {
        fs::write(self.both[n].root("etc/plimsoll/head.toml"), text).expect("written");
    }

    /// Begins a line of the page that does not end: the head.
    pub fn begin(&mut self, n: usize, line: &str) {
        let machine = &mut self.both[n];
        let log = File::options().create(true).append(true).open(&machine.log).expect("a log");
        // The shell is replaced by what it starts, which gets the signals then.
        let mut command = machine.shell(&format!("exec {line}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        machine.head = Some(command.spawn().expect("a shell"));
    }

    /// Begins another program on a machine, which ends with the value.
    pub fn alongside(&self, n: usize, line: &str) -> Beside {
        let mut command = self.both[n].shell(&format!("exec {line}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Beside(command.spawn().expect("a shell"))
    }

    /// Ends the head of a machine.
    pub fn end(&mut self, n: usize) {
        let mut head = self.both[n].head.take().expect("a head");
        process::signal(head.id(), libc::SIGTERM);
        let ended = process::wait(&mut head, SOON);
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}\n{}", self.logs());
    }

    /// Waits until a line prints something on a machine.
    pub fn wait_for(&self, n: usize, line: &str, what: &str) {
        self.wait(&format!("{line} prints {what:?}"), || {
            let (printed, errors) = texts(&self.output(n, line));
            (printed + &errors).contains(what)
        });
    }

    /// Waits until the head of a machine has logged something.
    pub fn wait_for_log(&self, n: usize, what: &str) {
        let log = &self.both[n].log;
        self.wait(&format!("the log has {what:?}"), || {
            fs::read_to_string(log).is_ok_and(|text| text.contains(what))
        });
    }

    fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + SOON;
        while !is_so() {
            assert!(Instant::now() < until, "not within {SOON:?}: {what}\n{}", self.logs());
            std::thread::sleep(EVERY);
        }
    }

    /// Waits until a machine serves the resource.
    pub fn wait_for_owner(&self, n: usize) {
        let served = |line: &&str| line.starts_with("accounts ") && line.contains(" owner ");
        self.wait("the resource is served", || {
            let (printed, _) = texts(&self.output(n, "plimsoll head status"));
            printed.lines().any(|line| served(&line))
        });
    }

    /// The cluster file system as no machine has it.
    pub fn disk(&self) -> &Path {
        self.disk.path()
    }

    /// Mounts a directory of a machine's own where it has the cluster file system, or has that
    /// again.
    pub fn set_mounted(&self, n: usize, mounted: bool) {
        let own = self.scratch.folder("own", None);
        fs::create_dir_all(own.join("accounts")).expect("made");
        let line = match mounted {
            true => format!("umount {}", PLACES[0]),
            false => format!("mount --bind {} {}", own.display(), PLACES[0]),
        };
        self.run(n, &line);
    }

    fn logs(&self) -> String {
        let logs = self.both.iter().map(|one| fs::read_to_string(&one.log).unwrap_or_default());
        logs.collect::<Vec<_>>().join("\n---\n")
    }
}

/// Standard output and errors.
fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

impl Machine {
    /// A shell on it, which finds the program.
    fn shell(&self, line: &str) -> Command {
        let folder = binary().parent().expect("its folder").display().to_string();
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
        let line = line.replace(PLACES[0], PLACES[1]);
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.holder.id())).args(["--mount", "--net"]);
        command.args(["sh", "-c", &line]).env("PATH", path).env_remove("XDG_RUNTIME_DIR");
        command
    }

    /// A path on it, from outside.
    fn root(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.holder.id())).join(path)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(head) = &mut self.head {
            process::signal(head.id(), libc::SIGTERM);
            if process::wait(head, SOON).is_none() {
                let _gone = head.kill();
                let _reaped = head.wait();
            }
        }
        drop(self.holder.stdin.take());
        if process::wait(&mut self.holder, SOON).is_none() {
            let _gone = self.holder.kill();
            let _reaped = self.holder.wait();
        }
    }
}
