//! CephFS itself: one monitor, three OSDs that keep their objects in memory, one MDS, and mounts by
//! ceph-fuse, each a client of its own. All of them end with the value.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use e2e::loops::tool;
use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::{has, is_root, patience, process};

use super::cluster::{FileSystem, LEFT, RIGHT};

/// What is needed of Debian's packages.
const PROGRAMS: [&str; 6] = ["ceph", "ceph-mon", "ceph-osd", "ceph-mds", "ceph-fuse", "monmaptool"];
/// How long a daemon may take to begin.
const SOON: Duration = patience(60);
/// How often what is waited for is looked at: `ceph` takes a second of processor time.
const EVERY: Duration = Duration::from_millis(200);
/// OSDs; each object is on all of them, and may be written with one missing.
const OSDS: usize = 3;
/// What the advice of `doctor cluster` names.
const COHERENT: &str = "--fuse_disable_pagecache=true";
/// The directory that the test itself has mounted.
const OWN: &str = "own";
/// Names of the mounts of both heads.
pub const HEADS: [&str; 2] = ["a", "b"];

/// The cluster.
pub struct Ceph {
    network: Namespace,
    daemons: BTreeMap<String, Child>,
    mounts: BTreeMap<String, (PathBuf, Child)>,
    scratch: Scratch,
}

impl Ceph {
    /// Starts all daemons, and waits until the file system is there.
    ///
    /// # Errors
    /// What is missing here.
    pub fn start() -> Result<Self, String> {
        if !is_root() {
            return Err("mounts need root".to_owned());
        }
        if let Some(missing) = PROGRAMS.iter().find(|program| !has(program)) {
            return Err(format!("not installed: {missing}"));
        }
        let network = Namespace::with("ip link set lo up\n").map_err(|e| e.to_string())?;
        let scratch = Scratch::new("heads-ceph");
        let (daemons, mounts) = (BTreeMap::new(), BTreeMap::new());
        let mut ceph = Self { network, daemons, mounts, scratch };
        ceph.begin();
        Ok(ceph)
    }

    fn begin(&mut self) {
        let id = fs::read_to_string("/proc/sys/kernel/random/uuid").expect("a number");
        let at = self.scratch.path().to_owned();
        fs::write(self.conf(), configuration(id.trim(), &at)).expect("written");
        ["mon.a", "mds.a"].iter().for_each(|name| drop(self.scratch.folder(name, None)));
        let map = at.join("monmap").display().to_string();
        let monitor = "[v2:127.0.0.1:3300,v1:127.0.0.1:6789]";
        self.run(
            "monmaptool",
            &["--create", "--clobber", "--fsid", id.trim(), "--addv", "a", monitor, &map],
        );
        self.run("ceph-mon", &["--mkfs", "-i", "a", "--monmap", &map]);
        self.daemon("ceph-mon", "a");
        self.wait("the monitor", |ceph| ceph.ceph(&["mon", "stat"]).is_ok());
        for n in 0..OSDS {
            let id = fs::read_to_string("/proc/sys/kernel/random/uuid").expect("a number");
            self.ceph(&["osd", "new", id.trim()]).expect("an OSD");
            drop(self.scratch.folder(&format!("osd.{n}"), None));
            let number = n.to_string();
            self.run("ceph-osd", &["-i", &number, "--mkfs", "--osd-uuid", id.trim()]);
            self.daemon("ceph-osd", &number);
        }
        ["data", "metadata"].iter().for_each(|pool| self.create_pool(pool));
        self.ceph(&["fs", "new", "c", "metadata", "data"]).expect("a file system");
        self.daemon("ceph-mds", "a");
        self.wait("the file system", |ceph| {
            ceph.ceph(&["mds", "stat"]).is_ok_and(|text| text.contains("up:active"))
        });
    }

    /// Where all of them are.
    pub fn network(&self) -> &Namespace {
        &self.network
    }

    /// Makes a pool.
    pub fn create_pool(&self, name: &str) {
        self.ceph(&["osd", "pool", "create", name, "8"]).expect("a pool");
    }

    /// The configuration of all of them.
    pub fn conf(&self) -> PathBuf {
        self.scratch.path().join("ceph.conf")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("-c").arg(self.conf()).stdin(Stdio::null());
        self.network.enter(&mut command);
        command
    }

    fn run(&self, program: &str, words: &[&str]) {
        tool(self.command(program).args(words)).unwrap_or_else(|why| panic!("{program}: {why}"));
    }

    fn ceph(&self, words: &[&str]) -> Result<String, String> {
        tool(self.command("ceph").args(words))
    }

    fn wait(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let until = Instant::now() + SOON;
        while !is_so(self) {
            assert!(Instant::now() < until, "not within {SOON:?}: {what}");
            std::thread::sleep(EVERY);
        }
    }

    fn daemon(&mut self, program: &str, id: &str) {
        let mut command = self.command(program);
        command.args(["-i", id, "-f"]).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("a daemon");
        self.daemons.insert(format!("{program} {id}"), child);
    }

    /// Mounts it coherently, as another client than all others.
    pub fn mount(&mut self, name: &str) -> PathBuf {
        self.mount_with(name, &[COHERENT])
    }

    /// Mounts it with these options.
    pub fn mount_with(&mut self, name: &str, options: &[&str]) -> PathBuf {
        let place = self.scratch.folder(name, None);
        let without = fs::metadata(&place).expect("a directory").dev();
        let mut command = self.command("ceph-fuse");
        command.args(["--id", "admin", "-f"]).args(options).arg(&place);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("ceph-fuse");
        self.mounts.insert(name.to_owned(), (place.clone(), child));
        self.wait("a mount", |_| fs::metadata(&place).is_ok_and(|root| root.dev() != without));
        place
    }

    /// Ends a mount and its client. One that was stopped continues before.
    pub fn unmount(&mut self, name: &str) {
        let (place, mut client) = self.mounts.remove(name).expect("a mount");
        process::signal(client.id(), libc::SIGCONT);
        // What has still a file open keeps the mount until it has closed it.
        let _gone = tool(Command::new("umount").arg("-l").arg(place));
        if process::wait(&mut client, Duration::from_secs(5)).is_none() {
            client.kill().expect("killed");
            client.wait().expect("its end");
        }
    }

    /// Where a mount is.
    pub fn place(&self, name: &str) -> PathBuf {
        self.mounts[name].0.clone()
    }

    /// The client of a mount does nothing any more, or continues.
    pub fn set_running(&self, name: &str, runs: bool) {
        let signal = if runs { libc::SIGCONT } else { libc::SIGSTOP };
        process::signal(self.mounts[name].1.id(), signal);
    }

    /// Kills an OSD.
    pub fn kill_osd(&mut self, n: usize) {
        let mut osd = self.daemons.remove(&format!("ceph-osd {n}")).expect("an OSD");
        osd.kill().expect("killed");
        osd.wait().expect("its end");
    }

    /// The key of a head with the command that evicts a client, from whatever network.
    pub fn evict_key(&self) -> String {
        let network = format!("--net=/proc/{}/ns/net", self.network.pid());
        let conf = self.conf().display().to_string();
        let command = ["nsenter", &network, "ceph", "-c", &conf];
        let words = ["tell", "mds.0", "client", "evict"];
        format!("cephfs_evict = {:?}", [&command[..], &words[..]].concat())
    }

    /// Clients that the MDS knows.
    pub fn clients(&self) -> usize {
        let list = self.ceph(&["tell", "mds.0", "client", "ls"]).expect("a list");
        let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
        list.as_array().expect("a list").len()
    }
}

fn configuration(id: &str, at: &Path) -> String {
    let at = at.display();
    format!(
        "[global]
fsid = {id}
mon host = 127.0.0.1
mon initial members = a
auth cluster required = none
auth service required = none
auth client required = none
public addr = 127.0.0.1
ms bind ipv6 = false
run dir = {at}
admin socket = {at}/$name.$pid.asok
log file = {at}/$name.log
pid file =
osd objectstore = memstore
memstore device bytes = 2147483648
osd pool default size = {OSDS}
osd pool default min size = 2
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd heartbeat grace = 6
osd heartbeat interval = 2
mon osd down out interval = 600
mon data avail warn = 1
mon data avail crit = 1
client mount timeout = 60
[mon.a]
mon data = {at}/mon.a
[osd]
osd data = {at}/osd.$id
[mds.a]
mds data = {at}/mds.a
"
    )
}

impl Drop for Ceph {
    fn drop(&mut self) {
        for (place, client) in self.mounts.values_mut() {
            process::signal(client.id(), libc::SIGCONT);
            let _gone = tool(Command::new("umount").arg("-l").arg(place));
            let _gone = client.kill();
            let _reaped = client.wait();
        }
        for daemon in self.daemons.values_mut() {
            let _gone = daemon.kill();
            let _reaped = daemon.wait();
        }
    }
}

/// The file system of a cluster: each head has a mount of its own, and so has the test.
#[derive(Clone)]
pub struct Shared {
    own: PathBuf,
    heads: [PathBuf; 2],
    ceph: Arc<Mutex<Ceph>>,
}

impl Shared {
    /// Mounts it three times.
    pub fn new(mut ceph: Ceph) -> Self {
        let own = ceph.mount(OWN);
        let heads = [LEFT, RIGHT].map(|head| ceph.mount(HEADS[head]));
        Self { own, heads, ceph: Arc::new(Mutex::new(ceph)) }
    }

    /// The daemons.
    pub fn ceph(&self) -> MutexGuard<'_, Ceph> {
        self.ceph.lock().expect("the daemons")
    }
}

impl FileSystem for Shared {
    fn path(&self) -> &Path {
        &self.own
    }

    fn of(&self, head: usize) -> &Path {
        &self.heads[head]
    }

    fn crash(&mut self) {
        panic!("this one loses nothing");
    }
}
