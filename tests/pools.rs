//! Pools of disks through a running server, on loop devices: a mirror with a share that clients of
//! NFS use, a damaged leg, a lost leg, its replacement, a leg that returns; what is refused; and
//! servers that cannot have pools.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base::random::{Random, SeededRandom};
use e2e::api::{Api, wait_for};
use e2e::loops::tool;
use e2e::nfs3::{Client, Handle};
pub use e2e::pool_disk::{act, change, done, value, wait_online};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{has, is_root, netns, skip};
use serde_json::{Value, json};
use wire::nfs3::{CreateHow, StableHow};

/// How long a task of a pool of these sizes may take.
const TASK: Duration = e2e::patience(240);
/// How long a pool may take to be mounted.
pub const PATIENCE: Duration = e2e::patience(60);
pub const POOLS: &str = "/storage/pools";
pub const MIB: usize = 1 << 20;
/// Bytes of a write.
const BLOCK: usize = 64 << 10;

pub fn run(program: &str, arguments: &[&str]) -> String {
    tool(Command::new(program).args(arguments)).unwrap_or_else(|e| panic!("{e}"))
}

/// Disks for a server in a namespace of mounts of its own.
pub struct Bed {
    pub scratch: Scratch,
    devices: Vec<Option<String>>,
    sizes: Vec<u64>,
}

impl Bed {
    pub fn new(mib: &[u64]) -> Result<Self, String> {
        let tools = ["unshare", "losetup", "mkfs.btrfs", "btrfs", "mkfs.ext4", "mkswap"];
        if !is_root() || !tools.iter().all(|tool| has(tool)) {
            return Err("needs root, unshare, losetup, btrfs-progs and e2fsprogs".to_owned());
        }
        let systems = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if !systems.lines().any(|line| line.trim() == "btrfs") {
            return Err("the kernel has no btrfs".to_owned());
        }
        // Mount points of other servers are not those of this one.
        netns::isolate("mount -t tmpfs tmpfs /run").map_err(|e| e.to_string())?;
        let scratch = Scratch::new("pools");
        for folder in ["data", "other"] {
            scratch.folder(folder, None);
        }
        let sizes = mib.iter().map(|mib| mib << 20).collect();
        let mut bed = Self { scratch, devices: vec![None; mib.len()], sizes };
        for at in 0..mib.len() {
            bed.attach(at)?;
        }
        Ok(bed)
    }

    fn image(&self, at: usize) -> PathBuf {
        self.scratch.path().join(format!("disk{at}"))
    }

    pub fn attach(&mut self, at: usize) -> Result<(), String> {
        let image = self.image(at);
        let file = File::options().create(true).truncate(false).write(true).open(&image);
        file.and_then(|file| file.set_len(self.sizes[at])).map_err(|e| e.to_string())?;
        let device = tool(Command::new("losetup").args(["--find", "--show"]).arg(&image))?;
        self.devices[at] = Some(device);
        Ok(())
    }

    pub fn detach(&mut self, at: usize) {
        let device = self.devices[at].take().expect("connected");
        forget(&device);
        run("losetup", &["--detach", &device]);
        let backing = device.replace("/dev/", "/sys/block/") + "/loop/backing_file";
        let image = self.image(at);
        wait_for("the disk is disconnected", PATIENCE, || {
            let file = fs::read_to_string(&backing).unwrap_or_default();
            (Path::new(file.trim()) != image).then_some(())
        });
    }

    pub fn disk(&self, at: usize) -> String {
        self.devices[at].clone().expect("connected")
    }

    pub fn start(&self) -> (Server, Api) {
        let (dir, state) = (self.scratch.path().join("data"), self.scratch.path().join("state"));
        let options = Options { offset: Some(10_000), ..Options::new(&dir, &state) };
        (Server::start(&options), Api::new(&state))
    }

    fn sums(&self) -> Vec<String> {
        self.sums_from(0)
    }

    /// A digest of each disk from this one on.
    pub fn sums_from(&self, first: usize) -> Vec<String> {
        let images = (first..self.devices.len()).map(|at| self.image(at));
        images.map(|image| run("sha256sum", &[image.to_str().expect("text")])).collect()
    }

    /// Overwrites 200 places of a disk that is in use.
    fn damage(&self, at: usize, seed: u64) {
        let mut random = SeededRandom::new(seed);
        let leg = File::options().write(true).open(self.image(at)).expect("an image");
        let mut junk = vec![0; BLOCK];
        for _ in 0..200 {
            random.fill(&mut junk);
            let place = (100 << 20) + ((random.next_u64() % (150 << 20)) & !0xffff);
            leg.write_all_at(&junk, place).expect("overwritten");
        }
        leg.sync_all().expect("flushed");
        run("sync", &[]);
        fs::write("/proc/sys/vm/drop_caches", "3").expect("drop_caches");
    }
}

fn forget(device: &str) {
    let _forgotten = tool(Command::new("btrfs").args(["device", "scan", "--forget", device]));
}

impl Drop for Bed {
    fn drop(&mut self) {
        let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
        let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
        for place in places.filter(|place| place.starts_with("/run/plimsoll-pools/")) {
            let _gone = tool(Command::new("umount").args(["-l", place]));
        }
        let _gone = tool(Command::new("umount").arg("-l").arg(self.scratch.path().join("other")));
        for device in self.devices.iter().flatten() {
            forget(device);
            let _gone = tool(Command::new("losetup").args(["--detach", device]));
        }
    }
}

/// A line of the command line.
pub fn cli(bed: &Bed, lines: &[&str]) -> String {
    let mut command = Command::new(e2e::server::binary());
    command.args(["cli", "--state"]).arg(bed.scratch.path().join("state"));
    for line in lines {
        command.args(["-c", line]);
    }
    let output = e2e::process::run(&mut command, PATIENCE);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Waits until no task runs and the pool has a state. Progress never goes back.
fn wait_until(api: &Api, pool: &str, state: &str) {
    let mut last = 0;
    wait_for(state, TASK, || {
        if value(api, pool, "task") != Value::Null {
            let progress = value(api, pool, "progress").as_u64().unwrap_or(last);
            assert!(progress >= last, "went back from {last} to {progress}");
            last = progress;
            return None;
        }
        (value(api, pool, "state") == state).then_some(())
    });
}

/// A client with a file of a share.
pub struct Writer {
    pub client: Client,
    pub root: Vec<u8>,
}

impl Writer {
    pub fn new(server: &Server, share: &str) -> Self {
        let mut client = Client::connect(server.nfs(), 0, 0).expect("a connection");
        let root = client.mnt(&format!("/export/{share}")).expect("mounted").to_vec();
        Self { client, root }
    }

    /// Writes a file; all of it is acknowledged as stable.
    pub fn write(&mut self, name: &str, seed: u64, size: usize) -> Vec<u8> {
        let bytes = content(seed, size);
        let file = self.make(name);
        self.overwrite(&file, &bytes);
        bytes
    }

    fn make(&mut self, name: &str) -> Handle {
        let made = self.client.create(&self.root, name, CreateHow::Guarded(Default::default()));
        made.expect("created").handle
    }

    fn overwrite(&mut self, file: &[u8], bytes: &[u8]) {
        for (at, block) in bytes.chunks(BLOCK).enumerate() {
            let offset = (at * BLOCK) as u64;
            let done = self.client.write(file, offset, block, StableHow::UNSTABLE);
            assert_eq!(done.expect("written").0 as usize, block.len());
        }
        self.client.commit(file).expect("stable");
    }

    pub fn reads(&mut self, name: &str, bytes: &[u8]) {
        let file = self.client.lookup(&self.root, name).expect("there").handle;
        assert!(self.client.read_all(&file).expect("read") == bytes, "a wrong read of {name}");
    }
}

fn content(seed: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    SeededRandom::new(seed).fill(&mut bytes);
    bytes
}

/// Names of files, and their right bytes.
type Files = Vec<(String, Vec<u8>)>;

/// Clients that overwrite files, and read back what was acknowledged, until they are
/// stopped. Each call must succeed, and each read be right.
struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Files>>,
}

impl Load {
    /// Clients of a load.
    const CLIENTS: u64 = 2;
    /// Files of a client, and the bytes of each.
    const FILES: usize = 32;
    const SIZE: usize = 2 * BLOCK;

    /// Their files have names with this word.
    fn begin(server: &Server, share: &str, word: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let client = |number: u64| {
            let (writer, stop) = (Writer::new(server, share), stop.clone());
            let word = format!("{word}{number}");
            // Seeds of the bytes of different clients differ.
            thread::spawn(move || Self::work(writer, &word, number << 32, &stop))
        };
        let clients = (0..Self::CLIENTS).map(client).collect();
        Self { stop, clients }
    }

    fn work(mut writer: Writer, word: &str, seed: u64, stop: &AtomicBool) -> Files {
        let mut random = SeededRandom::new(seed);
        let name = |at: usize| format!("{word}-{at}");
        let handles: Vec<Handle> = (0..Self::FILES).map(|at| writer.make(&name(at))).collect();
        // What was acknowledged last of each.
        let mut seeds = vec![None; Self::FILES];
        let mut any = || random.below(Self::FILES as u64) as usize;
        // At least once, however soon they are stopped.
        for round in 1.. {
            let (written, read) = (any(), any());
            writer.overwrite(&handles[written], &content(seed + round, Self::SIZE));
            seeds[written] = Some(seed + round);
            if let Some(seed) = seeds[read] {
                let bytes = writer.client.read_all(&handles[read]).expect("read");
                assert!(bytes == content(seed, Self::SIZE), "a wrong read of {}", name(read));
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        let acknowledged = seeds.into_iter().enumerate();
        acknowledged.filter_map(|(at, seed)| Some((name(at), content(seed?, Self::SIZE)))).collect()
    }

    /// Stops the clients: what was acknowledged.
    fn end(self) -> Files {
        self.stop.store(true, Ordering::Relaxed);
        let files = self.clients.into_iter().flat_map(|one| one.join().expect("a client"));
        let files: Files = files.collect();
        println!("{} files were acknowledged last", files.len());
        files
    }
}

/// Each of these disks alone has all of these files of a share.
fn each_leg_alone_is_right(bed: &Bed, legs: [usize; 2], share: &str, files: &Files) {
    let aside = bed.scratch.path().join("other");
    let aside = aside.to_str().expect("text");
    for leg in legs {
        legs.into_iter().for_each(|at| forget(&bed.disk(at)));
        run("mount", &["-o", "degraded,ro", &bed.disk(leg), aside]);
        for (file, bytes) in files {
            let read = fs::read(Path::new(aside).join(share).join(file)).expect("read");
            assert!(read == *bytes, "{file} on {leg} alone");
        }
        run("umount", &[aside]);
    }
}

/// As after a power cut: nothing is mounted.
pub fn unmount(at: &str) {
    wait_for("the pool is not in use", PATIENCE, || {
        tool(Command::new("umount").arg(at)).ok().map(drop)
    });
}

/// Counters of `btrfs device stats`: write, read, flush, corruption, generation of each device.
fn stats(at: &str) -> Vec<u64> {
    let text = run("btrfs", &["device", "stats", at]);
    let number = |line: &str| line.split_whitespace().last().and_then(|one| one.parse().ok());
    text.lines().filter_map(number).collect()
}

fn shown_stats(api: &Api, pool: &str) -> Vec<u64> {
    let of = |disk: u64| {
        ["write", "read", "flush", "corruption", "generation"].map(|kind| {
            let at = format!("{pool}/disks/{disk}");
            value(api, &at, &format!("{kind}_errors")).as_u64().expect("a number")
        })
    };
    [1, 2].into_iter().flat_map(of).collect()
}

#[test]
fn a_mirror_with_a_share_loses_a_disk_and_nothing_else() {
    let mut bed = match Bed::new(&[768, 768, 768]) {
        Ok(bed) => bed,
        Err(why) => skip!("pools-mirror", "{why}"),
    };
    let name = format!("tank{}", std::process::id());
    let pool = format!("{POOLS}/{name}");
    let at = format!("/run/plimsoll-pools/{name}");
    let (mut server, api) = bed.start();
    let disks = format!("{},{}", bed.disk(0), bed.disk(1));
    cli(&bed, &[&format!("storage pools create_pool name={name} disks={disks}")]);
    assert_eq!(value(&api, &pool, "state"), "healthy");
    let create = format!("shares default create safe pool={name}");
    cli(&bed, &[&create, "commit"]);
    assert_eq!(value(&api, "/shares/default/safe", "directory"), format!("{at}/safe"));
    assert_eq!(value(&api, &pool, "shares"), json!(["safe"]));
    // A damaged leg, while clients write and read: no wrong read, and a scrub corrects it.
    let mut writer = Writer::new(&server, "safe");
    let before = writer.write("before", 1, 100 * MIB);
    let load = Load::begin(&server, "safe", "damaged");
    bed.damage(1, 2);
    writer.reads("before", &before);
    bed.damage(1, 3);
    done(&api, &pool, "scrub", &json!({}));
    wait_until(&api, &pool, "healthy");
    let mut files = load.end();
    files.push(("before".to_owned(), before));
    let history = value(&api, &pool, "history")[0].as_str().unwrap_or_default().to_owned();
    assert!(history.contains("corrected, 0 without a right copy"), "{history}");
    let shown = shown_stats(&api, &pool);
    assert_eq!(shown, stats(&at));
    assert!(shown[8] > 0, "{shown:?}");
    // The pool cannot go while the share is there.
    let (code, answer) = act(&api, &pool, "export_pool", &json!({}));
    assert!(code == 409 && answer.to_string().contains("safe"), "{answer}");
    drop(writer);
    server.stop();
    drop(server);
    lose_a_leg(&mut bed, &name, files);
}

/// A leg is lost while the server is down, and replaced while clients write and read; then each
/// leg alone has all files.
fn lose_a_leg(bed: &mut Bed, name: &str, mut files: Files) {
    let pool = format!("{POOLS}/{name}");
    let at = format!("/run/plimsoll-pools/{name}");
    unmount(&at);
    bed.detach(1);
    let (server, api) = bed.start();
    assert_eq!(value(&api, &pool, "state"), "failed");
    assert_eq!(value(&api, "/shares/default/safe", "state"), "offline");
    let problem = format!("/maintenance/problems/pool-{name}");
    let is = |severity: Value| {
        wait_for("the problem", PATIENCE, || {
            (value(&api, &problem, "severity") == severity).then_some(())
        });
    };
    is(json!("critical"));
    done(&api, &pool, "mount", &json!({ "degraded": true }));
    assert_eq!(value(&api, &pool, "state"), "degraded");
    assert_eq!(value(&api, "/shares/default/safe", "state"), "online");
    let mut writer = Writer::new(&server, "safe");
    files.iter().for_each(|(file, bytes)| writer.reads(file, bytes));
    let load = Load::begin(&server, "safe", "lost");
    files.push(("after".to_owned(), writer.write("after", 4, 100 * MIB)));
    files.extend(fill_chunks_with_copies(&api, &pool, &mut writer));
    let disk = bed.disk(2);
    done(&api, &pool, "replace", &json!({ "member": "2", "disk": disk }));
    wait_until(&api, &pool, "healthy");
    is(Value::Null);
    files.extend(load.end());
    let usage = run("btrfs", &["filesystem", "df", &at]);
    let mut single = usage.lines().filter(|line| line.contains("single"));
    assert!(single.all(|line| line.starts_with("GlobalReserve")), "{usage}");
    files.iter().for_each(|(file, bytes)| writer.reads(file, bytes));
    // Exported, each leg alone has all files.
    change(&api, &json!([{ "destroy": "/shares/default/safe", "confirm": true }]));
    done(&api, &pool, "export_pool", &json!({}));
    let offered = value(&api, POOLS, "importable").to_string();
    assert!(offered.contains(name), "{offered}");
    drop(server);
    each_leg_alone_is_right(bed, [0, 2], "safe", &files);
}

/// Writes until a chunk is made, without a copy since a leg is missing: those from before are used
/// first.
fn fill_chunks_with_copies(api: &Api, pool: &str, writer: &mut Writer) -> Files {
    let mut files = Files::new();
    while value(api, pool, "without_copies").as_u64() == Some(0) {
        let name = format!("more{}", files.len());
        assert!(files.len() < 8, "all has copies without a leg");
        files.push((name.clone(), writer.write(&name, files.len() as u64, 40 * MIB)));
    }
    files
}

#[test]
fn a_disk_that_returns_is_repaired_while_its_share_is_used() {
    let mut bed = match Bed::new(&[512, 512]) {
        Ok(bed) => bed,
        Err(why) => skip!("pools-returned", "{why}"),
    };
    let name = format!("back{}", std::process::id());
    let (pool, at) = (format!("{POOLS}/{name}"), format!("/run/plimsoll-pools/{name}"));
    let (mut server, api) = bed.start();
    let disks = format!("{},{}", bed.disk(0), bed.disk(1));
    cli(&bed, &[&format!("storage pools create_pool name={name} disks={disks}")]);
    cli(&bed, &[&format!("shares default create safe pool={name}"), "commit"]);
    let mut files = Vec::new();
    files.push(("before".to_owned(), Writer::new(&server, "safe").write("before", 1, 30 * MIB)));
    server.stop();
    unmount(&at);
    bed.detach(1);
    // What is written without the disk is what it does not have when it returns.
    server = bed.start().0;
    done(&api, &pool, "mount", &json!({ "degraded": true }));
    files.push(("without".to_owned(), Writer::new(&server, "safe").write("without", 2, 120 * MIB)));
    server.stop();
    unmount(&at);
    // It comes late: nothing is requested for the pool or for its share.
    server = bed.start().0;
    assert_eq!(value(&api, "/shares/default/safe", "state"), "offline");
    bed.attach(1).expect("connected again");
    wait_online(&api, "safe");
    let load = Load::begin(&server, "safe", "returned");
    // Healthy only after a repair, which was not requested.
    wait_for("the end of the repair", TASK, || {
        let state = value(&api, &pool, "state");
        let is_idle = value(&api, &pool, "task") == Value::Null;
        let history = value(&api, &pool, "history").to_string();
        let is_repaired = history.contains("repair: ") && history.contains("has its copies");
        let is_over = state == "healthy" && is_idle;
        assert!(is_repaired || !is_over, "healthy without a repair: {history}");
        assert!(!history.contains("no room"), "{history}");
        is_over.then_some(())
    });
    files.extend(load.end());
    let mut reader = Writer::new(&server, "safe");
    files.iter().for_each(|(file, bytes)| reader.reads(file, bytes));
    change(&api, &json!([{ "destroy": "/shares/default/safe", "confirm": true }]));
    done(&api, &pool, "export_pool", &json!({}));
    drop(server);
    each_leg_alone_is_right(&bed, [0, 1], "safe", &files);
}

#[test]
fn disks_with_something_on_them_are_refused_and_not_written() {
    let bed = match Bed::new(&[192, 192, 192, 192, 192, 192, 192, 100]) {
        Ok(bed) => bed,
        Err(why) => skip!("pools-refused", "{why}"),
    };
    let (_server, api) = bed.start();
    let disks = [0, 1, 2, 3, 4, 5, 6, 7].map(|at| bed.disk(at));
    let [mounted, swap, member, md, lvm, ext, free, small] = disks;
    run("mkfs.ext4", &["-q", &mounted]);
    let other = bed.scratch.path().join("other");
    run("mount", &["-o", "ro", &mounted, other.to_str().expect("text")]);
    run("mkswap", &[&swap]);
    run("mkfs.ext4", &["-q", &ext]);
    let other = format!("other{}", std::process::id());
    let request = json!({ "name": other, "profile": "stripe", "disks": [member] });
    done(&api, POOLS, "create_pool", &request);
    for (disk, offset, magic) in
        [(&md, 0x1000, &0xa92b_4efc_u32.to_le_bytes()[..]), (&lvm, 0x200, b"LABELONE")]
    {
        let file = File::options().write(true).open(disk).expect("a disk");
        file.write_all_at(magic, offset).expect("written");
        file.sync_all().expect("flushed");
    }
    run("sync", &[]);
    // A mounted pool may write at any time.
    done(&api, &format!("{POOLS}/{other}"), "export_pool", &json!({}));
    let root = run("findmnt", &["-n", "-o", "SOURCE", "/"]);
    let sums = bed.sums();
    let name = format!("refused{}", std::process::id());
    let in_pool = format!("member of the pool {other}");
    let mut cases = vec![
        (mounted.as_str(), "it is mounted at"),
        (&swap, "signature of swap"),
        (&member, &in_pool),
        (&md, "signature of MD member"),
        (&lvm, "signature of LVM"),
        (&ext, "signature of ext"),
        (&small, "smaller than 128 MiB"),
        (&free, "appears twice"),
        ("/dev/loop-control", "there is no such disk"),
        ("../etc/passwd", "there is no such disk"),
    ];
    if root.trim().starts_with("/dev/") {
        cases.push((root.trim(), "mounted at /"));
    }
    for (disk, why) in cases {
        let request = json!({ "name": name, "disks": [free, disk] });
        let (code, answer) = act(&api, POOLS, "create_pool", &request);
        assert!(matches!(code, 400 | 409), "{disk}: {code} {answer}");
        let text = answer.to_string();
        assert!(text.contains(why) || text.contains("names of the kernel"), "{disk}: {text}");
    }
    for bad in ["../x", "9x", "a/b", ""] {
        let (code, answer) =
            act(&api, POOLS, "create_pool", &json!({ "name": bad, "disks": [free, small] }));
        assert!((400..500).contains(&code), "{bad}: {answer}");
    }
    assert_eq!(bed.sums(), sums, "a disk was written");
}

#[test]
fn a_server_without_rights_shows_why() {
    let scratch = Scratch::new("pools-user");
    let dir = scratch.folder("data", Some(e2e::NOBODY));
    let state = scratch.folder("state", Some(e2e::NOBODY));
    let options = Options { unprivileged: true, ..Options::new(&dir, &state) };
    let (_server, api) = (Server::start(&options), Api::new(&state));
    let reason = value(&api, POOLS, "reason");
    let expected = "the server is not root and no helper runs: start the helper (systemctl enable \
                    --now plimsoll-host), or start the server as root";
    assert_eq!(reason, expected);
    assert_eq!(value(&api, "/storage/disks", "reason"), expected);
    let (code, answer) =
        act(&api, POOLS, "create_pool", &json!({ "name": "tank", "disks": ["a", "b"] }));
    assert!(code != 200 && answer.to_string().contains("no helper runs"), "{answer}");
    let share = json!({ "create": "/shares/default", "name": "s", "properties": { "pool": "t" } });
    let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": [share] }));
    assert!(code != 200 && answer.to_string().contains("the pool t is not mounted"), "{answer}");
}
