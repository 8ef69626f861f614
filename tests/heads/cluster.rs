//! Two heads with their namespaces, a bridge between them, and the file system that both have.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use e2e::loops::{LoopDisk, tool};
use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::server::binary;
use e2e::{patience, process};
use serde_json::Value;

use super::etcd::StandIn;
use super::one_owner::OneOwner;

/// The heads.
pub const LEFT: usize = 0;
/// The other one.
pub const RIGHT: usize = 1;
const NAMES: [&str; 2] = ["left", "right"];
/// The resource, its address and its preferred head.
pub const RESOURCE: &str = "accounts";
const ADDRESS: &str = "10.77.0.101";
const PREFERRED: &str = NAMES[LEFT];
/// Its owner in etcd.
const OWNER_KEY: &str = "/plimsoll/lab/owners/accounts";
/// The lease of NFSv4, and with it the grace period.
const NFS_LEASE: &str = "4";
/// How long anything may take.
const SOON: Duration = patience(30);

/// All of it.
pub struct Cluster {
    heads: [Option<Child>; 2],
    namespaces: [Namespace; 2],
    /// Where clients and etcd are.
    pub switch: Namespace,
    /// The stand-in for etcd.
    pub etcd: StandIn,
    disk: LoopDisk,
    mounts: Vec<PathBuf>,
    scratch: Scratch,
    one_owner: OneOwner,
}

impl Cluster {
    /// Makes the namespaces and the file system, and starts both heads.
    ///
    /// # Errors
    /// What is missing here.
    pub fn start() -> Result<Self, String> {
        let text = |e: std::io::Error| e.to_string();
        let switch = Namespace::with(
            "ip link set lo up\nip link add br0 type bridge\nip addr add 10.77.0.1/24 dev br0\n\
             ip link set br0 up\n",
        );
        let switch = switch.map_err(text)?;
        let head = |n: usize| -> Result<Namespace, String> {
            let setup = format!(
                "ip link set lo up\nip link add eth0 type veth peer name head{n} netns {}\n\
                 ip addr add 10.77.0.1{n}/24 dev eth0\nip link set eth0 up\n",
                switch.pid()
            );
            let namespace = Namespace::with(&setup).map_err(text)?;
            let mut command = Command::new("ip");
            command.args(["link", "set", &format!("head{n}"), "master", "br0", "up"]);
            switch.enter(&mut command);
            tool(&mut command)?;
            Ok(namespace)
        };
        let namespaces = [head(1)?, head(2)?];
        let disk = LoopDisk::with("xfs")?;
        let scratch = Scratch::new("heads");
        let etcd = switch.spawn(|| StandIn::start("10.77.0.1:2379"));
        let etcd = etcd.join().map_err(|_| "the stand-in for etcd does not start".to_owned())?;
        fs::create_dir_all(disk.path().join(RESOURCE)).map_err(text)?;
        let heads = [None, None];
        let states = NAMES.map(|name| scratch.path().join(name).join(".plimsoll").join(RESOURCE));
        let one_owner = OneOwner::watch(states);
        let mut cluster =
            Self { heads, namespaces, switch, etcd, disk, mounts: Vec::new(), scratch, one_owner };
        for head in [LEFT, RIGHT] {
            cluster.mount(head)?;
            cluster.configure(head);
        }
        // The first one alone: it claims at once.
        cluster.start_head(LEFT);
        cluster.wait_for_owner(LEFT);
        cluster.start_head(RIGHT);
        cluster.wait_for_member(LEFT, RIGHT);
        Ok(cluster)
    }

    /// The file system as a head has it.
    fn place(&self, head: usize) -> PathBuf {
        self.scratch.path().join(NAMES[head])
    }

    fn mount(&mut self, head: usize) -> Result<(), String> {
        let place = self.scratch.folder(NAMES[head], None);
        tool(Command::new("mount").arg("--bind").arg(self.disk.path()).arg(&place))?;
        self.mounts.push(place);
        Ok(())
    }

    fn config(&self, head: usize) -> PathBuf {
        self.scratch.path().join(format!("{}.toml", NAMES[head]))
    }

    fn configure(&self, head: usize) {
        let place = self.place(head);
        let (at, run) = (place.display(), self.scratch.path().join("run"));
        let text = format!(
            "name = \"{}\"\ncluster = \"lab\"\nrun = \"{}\"\n\
             etcd.members = [\"http://{}\"]\n\
             [[resource]]\nname = \"{RESOURCE}\"\ndirectory = \"{at}/{RESOURCE}\"\n\
             state = \"{at}/.plimsoll/{RESOURCE}\"\naddress = \"{ADDRESS}/24\"\nlink = \"eth0\"\n\
             preferred = \"{PREFERRED}\"\noptions = [\"--nfs-lease\", \"{NFS_LEASE}\", \
             \"--user\", \"admin:only-for-this-test\"]\n",
            NAMES[head],
            run.display(),
            self.etcd.address
        );
        fs::write(self.config(head), text).expect("written");
    }

    /// Starts a head.
    pub fn start_head(&mut self, head: usize) {
        let log = self.scratch.path().join(format!("{}.log", NAMES[head]));
        let log = File::options().create(true).append(true).open(log).expect("a log");
        let mut command = Command::new(binary());
        command.arg("head").arg("--config").arg(self.config(head));
        command.env("XDG_RUNTIME_DIR", self.scratch.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.namespaces[head].enter(&mut command);
        self.heads[head] = Some(command.spawn().expect("a head"));
    }

    /// What both heads have logged.
    fn logs(&self) -> String {
        let log = |name: &&str| {
            let path = self.scratch.path().join(format!("{name}.log"));
            format!("--- {name}\n{}", fs::read_to_string(path).unwrap_or_default())
        };
        NAMES.iter().map(log).collect()
    }

    /// A command of a head, which must succeed.
    pub fn command(&self, head: usize, args: &[&str]) {
        let mut command = Command::new(binary());
        command.arg("head").args(args).arg("--config").arg(self.config(head));
        let output = process::run(&mut command, SOON + SOON);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {text}\n{}", self.logs());
    }

    /// The state of a head; nothing while it does not answer.
    fn status(&self, head: usize) -> Option<Value> {
        let mut command = Command::new(binary());
        command.args(["head", "status", "--json", "--config"]).arg(self.config(head));
        let output = process::run(&mut command, SOON);
        output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
    }

    fn resource(&self, head: usize) -> Option<Value> {
        Some(self.status(head)?["resources"][0].clone())
    }

    fn wait_for(&self, what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + SOON;
        while !is_so() {
            assert!(self.one_owner.holds(), "{what}: two servers at one time");
            assert!(Instant::now() < until, "not within {SOON:?}: {what}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a head serves the resource, and prints how long its phases took.
    pub fn wait_for_owner(&self, head: usize) {
        self.wait_for(&format!("{} serves", NAMES[head]), || self.server_of(head).is_some());
        let took = self.resource(head).map(|one| one["takeover_ms"].to_string());
        println!("{}: ms from claim to lock and from there to service: {took:?}", NAMES[head]);
    }

    /// Waits until some head serves the resource; its server.
    pub fn wait_for_some_owner(&self) -> u32 {
        let server = || self.server_of(LEFT).or_else(|| self.server_of(RIGHT));
        self.wait_for("some head serves", || server().is_some());
        server().expect("a server that has just been there")
    }

    /// Waits until a head has seen that the other one is a member.
    pub fn wait_for_member(&self, head: usize, other: usize) {
        self.wait_for(&format!("{} is a member", NAMES[other]), || {
            self.status(head).is_some_and(|status| {
                let members = status["members"].as_array().expect("a list");
                members.iter().any(|member| member[0] == NAMES[other])
            })
        });
    }

    /// The process of the resource at its owner, once it serves.
    fn server_of(&self, head: usize) -> Option<u32> {
        let one = self.resource(head).filter(|one| one["state"] == "owner")?;
        one["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())
    }

    /// The same; it must be there.
    pub fn process(&self, head: usize) -> u32 {
        self.server_of(head).expect("the head serves")
    }

    /// When the lease of the owner ends in etcd, or has ended.
    pub fn lease_end(&self) -> Instant {
        self.etcd.lease_end(OWNER_KEY).expect("an owner in etcd")
    }

    fn head(&mut self, head: usize) -> &mut Child {
        self.heads[head].as_mut().expect("a head")
    }

    /// Kills a head; what it has started stays.
    pub fn kill(&mut self, head: usize) {
        process::signal(self.head(head).id(), libc::SIGKILL);
        self.head(head).wait().expect("its end");
    }

    /// Stops a head and the process of its resource.
    pub fn stop(&mut self, head: usize, pid: u32) {
        process::signal(self.head(head).id(), libc::SIGSTOP);
        process::signal(pid, libc::SIGSTOP);
    }

    /// Wakes both.
    pub fn wake(&mut self, head: usize, pid: u32) {
        process::signal(pid, libc::SIGCONT);
        process::signal(self.head(head).id(), libc::SIGCONT);
    }

    /// Waits until a process has ended.
    pub fn wait_until_gone(&self, pid: u32) {
        self.wait_for("the process is gone", || !Path::new(&format!("/proc/{pid}")).exists());
    }

    /// Where clients reach the resource.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(ADDRESS.parse().expect("an address"), 2049)
    }

    /// A file as the file system has it, without any head.
    pub fn content(&self, file: &str) -> Vec<u8> {
        fs::read(self.disk.path().join(RESOURCE).join(file)).expect("the file")
    }

    /// Ends both heads in order; there was one server at a time.
    pub fn end(&mut self) {
        self.one_owner.check();
        for head in [LEFT, RIGHT] {
            process::signal(self.head(head).id(), libc::SIGTERM);
        }
        for head in [LEFT, RIGHT] {
            let ended = process::wait(self.head(head), SOON);
            assert!(ended.is_some_and(|status| status.success()), "{ended:?}\n{}", self.logs());
            self.heads[head] = None;
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for head in self.heads.iter_mut().flatten() {
            process::signal(head.id(), libc::SIGCONT);
            process::signal(head.id(), libc::SIGTERM);
            if process::wait(head, SOON).is_none() {
                let _gone = head.kill();
                let _reaped = head.wait();
            }
        }
        for mount in &self.mounts {
            let _gone = tool(Command::new("umount").arg("-l").arg(mount));
        }
    }
}
