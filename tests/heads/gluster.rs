//! GlusterFS itself, for `make test-long`: a volume of three bricks, mounted by FUSE. With its
//! defaults it is found unfit, with the options that are named it is fit; handles are good after it
//! was mounted again and at a second head; a brick killed under load and takeovers are no error.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use e2e::loops::{LoopDisk, tool};
use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::{has, is_root, patience, process, skip};
use serde_json::Value;

use super::cluster::{ACCOUNTS, Cluster, FileSystem, LEFT, RIGHT, Setup};
use super::refusals::compare;
use super::writer::{Version, Writer};
use super::{handles, progress};

/// The address of its daemons: one of loopback is refused.
const ADDRESS: &str = "10.99.9.1";
const NETWORK: &str = "ip link set lo up\nip addr add 10.99.9.1/32 dev lo\n";
/// Where its daemons have their state.
const OWN: &str = "/var/lib/glusterd";
/// How long its daemon may take to start: it queries its modules first.
const SOON: Duration = patience(120);
/// Options that the advice of `doctor cluster` names.
const CACHES: [&str; 7] = [
    "open-behind",
    "quick-read",
    "io-cache",
    "read-ahead",
    "stat-prefetch",
    "write-behind",
    "readdir-ahead",
];
/// The options of a mount that it names.
const COHERENT: [&str; 3] =
    ["--direct-io-mode=enable", "--attribute-timeout=0", "--entry-timeout=0"];

/// A volume with its daemons; they end with this value.
struct Volume {
    network: Namespace,
    daemon: Child,
    bricks: Vec<LoopDisk>,
    mounts: Vec<PathBuf>,
    scratch: Scratch,
}

impl Volume {
    fn start() -> Result<Self, String> {
        if !is_root() {
            return Err("mounts need root".to_owned());
        }
        let tools = ["glusterd", "gluster", "glusterfs"];
        if let Some(missing) = tools.iter().find(|tool| !has(tool)) {
            return Err(format!("not installed: {missing}"));
        }
        if fs::read_dir(OWN).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(format!("GlusterFS of this machine has its state in {OWN}"));
        }
        let network = Namespace::with(NETWORK).map_err(|e| e.to_string())?;
        let bricks: Result<Vec<_>, _> = (0..3).map(|_| LoopDisk::with("xfs")).collect();
        let scratch = Scratch::new("heads-gluster");
        let mut command = Command::new("glusterd");
        command.args(["-N", "--log-file"]).arg(scratch.path().join("glusterd.log"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        network.enter(&mut command);
        let daemon = command.spawn().map_err(|e| format!("glusterd: {e}"))?;
        let volume = Self { network, daemon, bricks: bricks?, mounts: Vec::new(), scratch };
        let until = Instant::now() + SOON;
        while let Err(why) = volume.gluster(&["pool", "list"]) {
            assert!(Instant::now() < until, "glusterd does not begin: {why}");
            std::thread::sleep(Duration::from_millis(200));
        }
        let places =
            volume.bricks.iter().map(|brick| format!("{ADDRESS}:{}/data", brick.path().display()));
        let places: Vec<_> = places.collect();
        let mut create = vec!["volume", "create", "v", "replica", "3"];
        create.extend(places.iter().map(String::as_str));
        create.push("force");
        volume.gluster(&create).expect("a volume");
        volume.gluster(&["volume", "start", "v"]).expect("started");
        Ok(volume)
    }

    fn gluster(&self, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new("gluster");
        command.arg("--mode=script").args(words);
        self.network.enter(&mut command);
        tool(&mut command)
    }

    /// Mounts it below the scratch directory.
    fn mount(&mut self, name: &str, options: &[&str]) -> PathBuf {
        let place = self.scratch.folder(name, None);
        let mut command = Command::new("glusterfs");
        command.args(options).arg(format!("--volfile-server={ADDRESS}"));
        command.arg("--volfile-id=v").arg("--log-file");
        command.arg(self.scratch.path().join(format!("{name}.log"))).arg(&place);
        self.network.enter(&mut command);
        tool(&mut command).expect("mounted");
        self.mounts.push(place.clone());
        place
    }

    fn unmount(&mut self, place: &Path) {
        tool(Command::new("umount").arg(place)).expect("unmounted");
        self.mounts.retain(|one| one != place);
    }

    /// Sets the options that make it coherent.
    fn make_coherent(&self) {
        for option in CACHES {
            let name = format!("performance.{option}");
            self.gluster(&["volume", "set", "v", &name, "off"]).expect("set");
        }
    }

    /// The process of one brick.
    fn brick(&self, n: usize) -> u32 {
        let status = self.gluster(&["volume", "status", "v", "--xml"]).expect("the status");
        let place = self.bricks[n].path().display().to_string();
        let after = status.split_once(&place).expect("the brick").1;
        let pid = after.split_once("<pid>").and_then(|(_, rest)| rest.split_once('<'));
        let pid = pid.and_then(|(pid, _)| pid.parse().ok());
        pid.unwrap_or_else(|| panic!("no process: {status}"))
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        for place in std::mem::take(&mut self.mounts) {
            let _gone = tool(Command::new("umount").arg("-l").arg(place));
        }
        // Bricks are processes of their own.
        let _ended = self.gluster(&["volume", "stop", "v", "force"]);
        let _ended = self.gluster(&["volume", "delete", "v"]);
        let _gone = self.daemon.kill();
        let _reaped = self.daemon.wait();
        let _left = fs::remove_dir_all(OWN);
    }
}

/// The volume as the file system of a cluster: each head has a mount of its own, and so has the
/// test.
struct Shared {
    own: PathBuf,
    heads: [PathBuf; 2],
    _volume: Volume,
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

#[test]
fn it_is_fit_with_the_options_that_are_named() {
    let mut volume = match Volume::start() {
        Ok(volume) => volume,
        Err(why) => skip!("heads-gluster", "{why}"),
    };
    let [a, b] = ["a", "b"].map(|name| volume.mount(name, &[]));
    let (code, report) = compare(&a, &b);
    println!("with its defaults: {report:#}");
    assert_eq!((code, &report["fit"]), (Some(1), &Value::Bool(false)));
    let advice = report["advice"].as_str().expect("advice");
    for option in CACHES.iter().chain(&["direct-io-mode", "attribute-timeout=0", "entry-timeout=0"])
    {
        assert!(advice.contains(option), "{option}: {advice}");
    }
    [a, b].iter().for_each(|place| volume.unmount(place));

    volume.make_coherent();
    let [a, b] = ["c", "d"].map(|name| volume.mount(name, &COHERENT));
    let (code, report) = compare(&a, &b);
    println!("with the options: {report:#}");
    assert_eq!((code, &report["fit"]), (Some(0), &Value::Bool(true)));
}

#[test]
fn handles_are_good_after_it_was_mounted_again_and_at_a_second_head() {
    let mut volume = match Volume::start() {
        Ok(volume) => volume,
        Err(why) => skip!("heads-gluster", "{why}"),
    };
    volume.make_coherent();
    let [a, b] = ["a", "b"].map(|name| volume.mount(name, &COHERENT));
    handles::outlive([&a, &b], || {
        volume.unmount(&a);
        assert_eq!(volume.mount("a", &COHERENT), a);
    });
}

#[test]
fn a_brick_that_is_killed_and_takeovers_are_no_error() {
    let mut volume = match Volume::start() {
        Ok(volume) => volume,
        Err(why) => skip!("heads-gluster", "{why}"),
    };
    volume.make_coherent();
    let [own, a, b] = ["own", "a", "b"].map(|name| volume.mount(name, &COHERENT));
    let setup = Setup { nfs_lease: "15", ..Setup::default() };
    let brick = volume.brick(1);
    let shared = Box::new(Shared { own, heads: [a, b], _volume: volume });
    let mut cluster = Cluster::set_up(shared, &[ACCOUNTS], &setup).expect("a cluster");
    let versions = [Version::V3, Version::V4];
    let mut writers = versions.map(|version| Writer::start(&cluster, ACCOUNTS, version));
    progress(&mut writers, "the first writes");
    process::signal(brick, libc::SIGKILL);
    progress(&mut writers, "a brick was killed");
    for writer in &writers {
        assert_eq!(writer.troubles(), Vec::<String>::new(), "{}", writer.name());
    }
    cluster.command(RIGHT, &["takeover", ACCOUNTS.name]);
    progress(&mut writers, "planned");
    let server = cluster.process(ACCOUNTS, RIGHT);
    cluster.kill(RIGHT);
    process::signal(server, libc::SIGKILL);
    cluster.wait_for_owner(ACCOUNTS, LEFT);
    progress(&mut writers, "kill -9");
    for writer in writers {
        writer.check(&cluster);
    }
    cluster.start_head(RIGHT);
    cluster.wait_for_member(LEFT, RIGHT);
    cluster.end();
}
