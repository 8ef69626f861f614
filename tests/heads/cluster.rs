//! Two heads with their namespaces, a bridge between them, and the file system that both have.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use e2e::api::Api;
use e2e::disk::Disk;
use e2e::loops::{LoopDisk, tool};
use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::server::binary;
use e2e::{patience, process};
use serde_json::{Value, json};

use super::etcd::StandIn;
use super::members::Members;
use super::network;
use super::one_owner::OneOwner;

/// The heads.
pub const LEFT: usize = 0;
/// The other one.
pub const RIGHT: usize = 1;
const NAMES: [&str; 2] = ["left", "right"];
/// A resource.
#[derive(Debug)]
pub struct Resource {
    /// Its name.
    pub name: &'static str,
    /// Its address.
    address: &'static str,
    /// The head that is preferred.
    preferred: usize,
}

/// The resource of most tests.
pub const ACCOUNTS: &Resource =
    &Resource { name: "accounts", address: "10.77.0.101", preferred: LEFT };
/// One with an address of IPv6.
pub const VAULT: &Resource = &Resource { name: "vault", address: "fd00:77::103", preferred: LEFT };
/// Another one.
pub const PROJECTS: &Resource =
    &Resource { name: "projects", address: "10.77.0.102", preferred: RIGHT };
/// How long anything may take.
const SOON: Duration = patience(30);

/// The file system that all heads have.
pub trait FileSystem {
    /// Where it is mounted.
    fn path(&self) -> &Path;

    /// Where a head has it mounted, if that is another mount.
    fn of(&self, _head: usize) -> &Path {
        self.path()
    }

    /// Loses what was not flushed; nothing uses it.
    fn crash(&mut self);
}

impl FileSystem for LoopDisk {
    fn path(&self) -> &Path {
        self.path()
    }

    fn crash(&mut self) {
        panic!("this one loses nothing");
    }
}

impl FileSystem for Disk {
    fn path(&self) -> &Path {
        self.path()
    }

    fn crash(&mut self) {
        self.crash();
    }
}

/// What can be chosen.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    /// etcd itself, in the place of the stand-in.
    pub program: Option<&'a Path>,
    /// Whether etcd has a network of its own, so that the link of a head for its clients can be cut
    /// alone.
    pub management: bool,
    /// Guests, which reach the heads through the switch.
    pub guests: u8,
    /// The lease of NFSv4, and with it the grace period.
    pub nfs_lease: &'static str,
    /// More lines of the configuration: of the head, and of each resource.
    pub head_keys: &'a str,
    /// See there.
    pub resource_keys: &'a str,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            program: None,
            management: false,
            guests: 0,
            nfs_lease: "4",
            head_keys: "",
            resource_keys: "",
        }
    }
}

/// All of it.
pub struct Cluster {
    heads: [Option<Child>; 2],
    namespaces: [Namespace; 2],
    /// Where clients and etcd are.
    pub switch: Namespace,
    /// The stand-in for etcd; also there, and not used, with etcd itself.
    pub etcd: StandIn,
    /// etcd itself.
    pub members: Option<Members>,
    disk: Box<dyn FileSystem>,
    mounts: Vec<PathBuf>,
    scratch: Scratch,
    resources: Vec<&'static Resource>,
    one_owner: OneOwner,
}

impl Cluster {
    /// Makes the namespaces and the file system, and starts both heads; the first one owns all
    /// resources.
    ///
    /// # Errors
    /// What is missing here.
    pub fn start(resources: &[&'static Resource]) -> Result<Self, String> {
        Self::with(resources, None)
    }

    /// The same with three members of etcd, this program, in the place of the stand-in.
    ///
    /// # Errors
    /// What is missing here.
    pub fn with(resources: &[&'static Resource], program: Option<&Path>) -> Result<Self, String> {
        Self::on(Box::new(LoopDisk::with("xfs")?), resources, program)
    }

    /// The same on this file system.
    ///
    /// # Errors
    /// What is missing here.
    pub fn on(
        disk: Box<dyn FileSystem>,
        resources: &[&'static Resource],
        program: Option<&Path>,
    ) -> Result<Self, String> {
        Self::set_up(disk, resources, &Setup { program, ..Setup::default() })
    }

    /// The same with all that can be chosen.
    ///
    /// # Errors
    /// What is missing here.
    pub fn set_up(
        disk: Box<dyn FileSystem>,
        resources: &[&'static Resource],
        setup: &Setup,
    ) -> Result<Self, String> {
        let text = |e: std::io::Error| e.to_string();
        let switch = network::switch(setup)?;
        let namespaces = [network::head(setup, &switch, 1)?, network::head(setup, &switch, 2)?];
        let scratch = Scratch::new("heads");
        let at = if setup.management { "10.78.0.1:2379" } else { "10.77.0.1:2379" };
        let etcd = switch.spawn(move || StandIn::start(at));
        let etcd = etcd.join().map_err(|_| "the stand-in for etcd does not start".to_owned())?;
        let members = setup.program.map(|program| Members::start(program, &switch, scratch.path()));
        for resource in resources {
            fs::create_dir_all(disk.path().join(resource.name)).map_err(text)?;
        }
        let states = resources.iter().map(|one| {
            NAMES.map(|name| scratch.path().join(name).join(".plimsoll").join(one.name))
        });
        let one_owner = OneOwner::watch(states.collect());
        let mut cluster = Self {
            heads: [None, None],
            namespaces,
            switch,
            etcd,
            members,
            disk,
            mounts: Vec::new(),
            scratch,
            resources: resources.to_vec(),
            one_owner,
        };
        for head in [LEFT, RIGHT] {
            cluster.mount(head)?;
            cluster.configure(head, setup);
        }
        // The first one alone: it claims at once.
        cluster.start_head(LEFT);
        for resource in resources {
            cluster.wait_for_owner(resource, LEFT);
        }
        cluster.start_head(RIGHT);
        cluster.wait_for_member(LEFT, RIGHT);
        Ok(cluster)
    }

    /// The file system as a head has it.
    fn place(&self, head: usize) -> PathBuf {
        self.scratch.path().join(NAMES[head])
    }

    /// All machines lose their power: what runs is gone, and what was not flushed. Heads are to be
    /// started again.
    pub fn cut_power(&mut self) {
        for head in [LEFT, RIGHT] {
            if self.is_running(head) {
                self.kill(head);
            }
        }
        for mount in std::mem::take(&mut self.mounts) {
            // A server may just have been forked.
            self.wait_for("nothing uses the file system", || {
                let servers = self.one_owner.servers();
                servers.iter().for_each(|server| process::signal(*server, libc::SIGKILL));
                tool(Command::new("umount").arg(&mount)).is_ok()
            });
        }
        self.disk.crash();
        for head in [LEFT, RIGHT] {
            self.mount(head).expect("mounted again");
        }
    }

    /// The state of a resource at a head and its process, asked as often as can be; nothing while
    /// the head does not answer.
    pub fn observe(&self, resource: &Resource, head: usize) -> Option<(String, bool)> {
        let status = self.ask(head, &json!({ "command": "status" }))?;
        let all = status["status"]["resources"].as_array()?;
        let one = all.iter().find(|one| one["name"] == resource.name)?;
        Some((one["state"].as_str()?.to_owned(), one["pid"].is_number()))
    }

    /// A request on the local socket of a head.
    pub fn ask(&self, head: usize, request: &Value) -> Option<Value> {
        let socket = self.scratch.path().join("run").join(format!("{}.sock", NAMES[head]));
        let mut stream = UnixStream::connect(socket).ok()?;
        stream.set_read_timeout(Some(SOON)).ok()?;
        stream.write_all(format!("{request}\n").as_bytes()).ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    fn mount(&mut self, head: usize) -> Result<(), String> {
        let place = self.scratch.folder(NAMES[head], None);
        tool(Command::new("mount").arg("--bind").arg(self.disk.of(head)).arg(&place))?;
        self.mounts.push(place);
        Ok(())
    }

    /// Takes the file system away from a head that does not run, and from what still uses it.
    pub fn unmount(&mut self, head: usize) {
        let place = self.place(head);
        tool(Command::new("umount").arg("-l").arg(&place)).expect("unmounted");
        self.mounts.retain(|mount| *mount != place);
    }

    /// Gives it to the head again.
    pub fn mount_again(&mut self, head: usize) {
        self.mount(head).expect("mounted again");
    }

    fn config(&self, head: usize) -> PathBuf {
        self.scratch.path().join(format!("{}.toml", NAMES[head]))
    }

    fn configure(&self, head: usize, setup: &Setup) {
        let place = self.place(head);
        let (at, run) = (place.display(), self.scratch.path().join("run"));
        let members = match self.members {
            Some(_) => Members::urls().to_vec(),
            None => vec![format!("http://{}", self.etcd.address)],
        };
        let mut text = format!(
            "name = \"{}\"\ncluster = \"lab\"\nrun = \"{}\"\netcd.members = {members:?}\n{}\n",
            NAMES[head],
            run.display(),
            setup.head_keys
        );
        for Resource { name, address, preferred } in &self.resources {
            let length = if address.contains(':') { 64 } else { 24 };
            text += &format!(
                "[[resource]]\nname = \"{name}\"\ndirectory = \"{at}/{name}\"\n\
                 state = \"{at}/.plimsoll/{name}\"\naddress = \"{address}/{length}\"\nlink = \"eth0\"\n\
                 preferred = \"{}\"\noptions = [\"--nfs-lease\", \"{}\", \
                 \"--user\", \"admin:only-for-this-test\"]\n{}\n",
                NAMES[*preferred], setup.nfs_lease, setup.resource_keys
            );
        }
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

    fn run(&self, head: usize, args: &[&str]) -> (bool, String) {
        let mut command = Command::new(binary());
        command.arg("head").args(args).arg("--config").arg(self.config(head));
        let output = process::run(&mut command, SOON + SOON);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// A command of a head, which must succeed.
    pub fn command(&self, head: usize, args: &[&str]) {
        let (done, text) = self.run(head, args);
        assert!(done, "{args:?}: {text}\n{}", self.logs());
    }

    /// A command of a head, which must be refused; with what.
    pub fn refused(&self, head: usize, args: &[&str]) -> String {
        let (done, text) = self.run(head, args);
        assert!(!done, "{args:?} was not refused");
        text
    }

    /// What a command prints that is run on the machine of a head, with its configuration.
    pub fn output(&self, head: usize, args: &[&str]) -> String {
        let mut command = Command::new(binary());
        command.args(args).arg("--cluster").arg(self.config(head));
        self.namespaces[head].enter(&mut command);
        let output = process::run(&mut command, SOON);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {errors}\n{}", self.logs());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The state directory of a resource, without any head.
    pub fn state(&self, resource: &Resource) -> PathBuf {
        self.disk.path().join(".plimsoll").join(resource.name)
    }

    /// The directory of a resource, without any head.
    pub fn directory(&self, resource: &Resource) -> PathBuf {
        self.disk.path().join(resource.name)
    }

    /// The administration of a resource, at whichever head serves it.
    pub fn api(&self, resource: &Resource) -> Api {
        Api::new(&self.state(resource))
    }

    /// Waits for something; at no time are there two servers of a resource.
    pub fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        self.wait_for(what, is_so);
    }

    /// The state of a head; nothing while it does not answer.
    fn status(&self, head: usize) -> Option<Value> {
        let mut command = Command::new(binary());
        command.args(["head", "status", "--json", "--config"]).arg(self.config(head));
        let output = process::run(&mut command, SOON);
        output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
    }

    fn resource(&self, resource: &Resource, head: usize) -> Option<Value> {
        let status = self.status(head)?;
        let all = status["resources"].as_array().expect("a list");
        all.iter().find(|one| one["name"] == resource.name).cloned()
    }

    fn wait_for(&self, what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + SOON;
        while !is_so() {
            assert!(self.one_owner.holds(), "{what}: two servers at one time");
            assert!(Instant::now() < until, "not within {SOON:?}: {what}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a head serves a resource, and prints how long its phases took.
    pub fn wait_for_owner(&self, resource: &Resource, head: usize) {
        let name = resource.name;
        self.wait_for(&format!("{} serves {name}", NAMES[head]), || {
            self.server_of(resource, head).is_some()
        });
        let took = self.resource(resource, head).map(|one| one["takeover_ms"].to_string());
        println!("{}: ms from claim to lock and from there to service: {took:?}", NAMES[head]);
    }

    /// Waits until some head serves a resource; its server.
    pub fn wait_for_some_owner(&self, resource: &Resource) -> u32 {
        let server = || self.server_of(resource, LEFT).or_else(|| self.server_of(resource, RIGHT));
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

    /// The process of a resource at its owner, once it serves.
    fn server_of(&self, resource: &Resource, head: usize) -> Option<u32> {
        let one = self.resource(resource, head).filter(|one| one["state"] == "owner")?;
        one["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())
    }

    /// The same; it must be there.
    pub fn process(&self, resource: &Resource, head: usize) -> u32 {
        self.server_of(resource, head).expect("the head serves")
    }

    /// When the lease of the owner of a resource ends in etcd, or has ended.
    pub fn lease_end(&self, resource: &Resource) -> Instant {
        let key = format!("/plimsoll/lab/owners/{}", resource.name);
        self.etcd.lease_end(&key).expect("an owner in etcd")
    }

    /// Takes the link of a head out of the switch, or puts it back: it has a carrier all the time.
    pub fn connect(&self, head: usize, connected: bool) {
        let mut command = Command::new("ip");
        let port = format!("head{}", head + 1);
        match connected {
            true => command.args(["link", "set", &port, "master", "br0"]),
            false => command.args(["link", "set", &port, "nomaster"]),
        };
        self.switch.enter(&mut command);
        tool(&mut command).expect("a link");
    }

    /// Why a resource is not as it is to be at a head, and why clients do not reach it there.
    pub fn reasons(&self, resource: &Resource, head: usize) -> (String, String) {
        let one = self.resource(resource, head).unwrap_or_default();
        let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
        (text("why"), text("cut"))
    }

    /// The cause of the last takeover.
    pub fn last_cause(&self, resource: &Resource, head: usize) -> String {
        let one = self.resource(resource, head).unwrap_or_default();
        one["last"]["cause"].as_str().unwrap_or_default().to_owned()
    }

    /// How long the phases of the last takeover took, in milliseconds, once it is recorded.
    pub fn last_phases(&self, resource: &Resource, head: usize) -> String {
        let phases = || {
            let one = self.resource(resource, head)?;
            one["last"]["phases"].is_object().then(|| one["last"]["phases"].to_string())
        };
        self.wait_for("the takeover is recorded", || phases().is_some());
        phases().unwrap_or_default()
    }

    /// Cuts the link of a head, or connects it again.
    pub fn set_link(&self, head: usize, state: &str) {
        let mut command = Command::new("ip");
        command.args(["link", "set", &format!("head{}", head + 1), state]);
        self.switch.enter(&mut command);
        tool(&mut command).expect("a link");
    }

    /// A client that has a connection, which is recorded for the next owner, and reads from it
    /// until it ends. It sends nothing.
    pub fn idle_client(&self, resource: &Resource) -> JoinHandle<std::io::Result<usize>> {
        let address = resource.address();
        let connected = self.switch.spawn(move || TcpStream::connect(address)).join();
        let mut stream = connected.expect("a client").expect("a connection");
        let own = stream.local_addr().expect("an address").to_string();
        let recorded = self.state(resource).join("connections");
        self.wait_for("the connection is recorded", || {
            fs::read_to_string(&recorded).is_ok_and(|text| text.contains(&own))
        });
        std::thread::spawn(move || {
            stream.set_read_timeout(Some(SOON))?;
            stream.read(&mut [0; 16])
        })
    }

    /// The hardware address of the link of a head.
    pub fn hardware(&self, head: usize) -> String {
        let mut command = Command::new("ip");
        command.args(["link", "show", "eth0"]);
        self.namespaces[head].enter(&mut command);
        let output = process::run(&mut command, SOON);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words = text.split_whitespace().skip_while(|one| *one != "link/ether");
        words.nth(1).unwrap_or_default().to_owned()
    }

    /// Waits until the process of a resource is started at a head, which need not serve yet.
    pub fn wait_for_process(&self, resource: &Resource, head: usize) -> u32 {
        let pid = || self.resource(resource, head)?["pid"].as_u64();
        self.wait_for("a process is started", || pid().is_some());
        pid().and_then(|pid| u32::try_from(pid).ok()).expect("a process")
    }

    fn head(&mut self, head: usize) -> &mut Child {
        self.heads[head].as_mut().expect("a head")
    }

    /// Kills a head; what it has started stays.
    pub fn kill(&mut self, head: usize) {
        let mut killed = self.heads[head].take().expect("a head");
        process::signal(killed.id(), libc::SIGKILL);
        killed.wait().expect("its end");
    }

    /// Whether a head was started and not killed.
    pub fn is_running(&self, head: usize) -> bool {
        self.heads[head].is_some()
    }

    /// Stops a head and the process of its resource.
    pub fn stop(&mut self, head: usize, pid: u32) {
        process::signal(self.head(head).id(), libc::SIGSTOP);
        process::signal(pid, libc::SIGSTOP);
    }

    /// Stops a head alone.
    pub fn stop_head(&mut self, head: usize) {
        process::signal(self.head(head).id(), libc::SIGSTOP);
    }

    /// Wakes it.
    pub fn wake_head(&mut self, head: usize) {
        process::signal(self.head(head).id(), libc::SIGCONT);
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

    /// A file of a resource as the file system has it, without any head.
    pub fn content(&self, resource: &Resource, file: &str) -> Vec<u8> {
        fs::read(self.directory(resource).join(file)).expect("the file")
    }

    /// Ends the heads that run, in order; there was one server of each resource at a time.
    pub fn end(&mut self) {
        self.one_owner.check();
        for head in [LEFT, RIGHT] {
            self.set_link(head, "up");
        }
        for head in self.heads.iter().flatten() {
            process::signal(head.id(), libc::SIGCONT);
            process::signal(head.id(), libc::SIGTERM);
        }
        for head in [LEFT, RIGHT] {
            let Some(mut head) = self.heads[head].take() else { continue };
            let ended = process::wait(&mut head, SOON);
            assert!(ended.is_some_and(|status| status.success()), "{ended:?}\n{}", self.logs());
        }
    }
}

impl Resource {
    /// Where clients reach it.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.address.parse().expect("an address"), 2049)
    }

    /// Its share.
    pub fn export(&self) -> String {
        format!("/export/{}", self.name)
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
