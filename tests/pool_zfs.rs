//! A pool of ZFS through a running server, with zfs-fuse on loop devices: mirror, log and cache,
//! a share that a client of NFS writes, snapshots by hand and by schedule, rollback, clone, a
//! damaged leg, a leg offline, its replacement. `zpool` and `zfs`, read by a program in another
//! language, are the oracle.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base::random::{Random, SeededRandom};
use e2e::api::{Api, wait_for};
use e2e::loops::tool;
use e2e::pool_disk::{act, change, done, value, wait_online};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{has, is_root, netns, patience, skip};
use serde_json::{Value, json};
use wire::nfs3::{CreateHow, StableHow};

use crate::pool_mount::Mounted;

#[path = "pool_zfs/rollback.rs"]
mod rollback;

/// How long a task of a pool of this size may take.
const TASK: Duration = patience(120);
const MIB: usize = 1 << 20;
const DISK_MIB: u64 = 192;
/// Reads `zpool status` and `zfs list`, and prints a line for each device, share and snapshot.
const READER: &str = include_str!("../crates/host/pools/tests/zfs/reader.py");

/// zfs-fuse in the namespace of mounts of the test, with its disks.
struct Bed {
    daemon: Option<Child>,
    devices: Vec<String>,
    pool: String,
    scratch: Scratch,
}

impl Bed {
    fn new(count: usize) -> Result<Self, String> {
        let tools = ["unshare", "losetup", "zfs-fuse", "zpool", "python3"];
        if !is_root() || !tools.iter().all(|tool| has(tool)) {
            return Err("needs root, unshare, losetup, zfs-fuse and python3".to_owned());
        }
        let fuse = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        fuse.map_err(|e| format!("/dev/fuse: {e}"))?;
        // The files of the daemon and the mount points of other servers are not those of this one.
        let folders = "for at in /run /etc/zfs /var/lib/zfs; do mount -t tmpfs tmpfs $at; done
            mkdir -p /run/zfs /run/lock/zfs";
        netns::isolate(folders).map_err(|e| e.to_string())?;
        let scratch = Scratch::new("pool-zfs");
        scratch.folder("data", None);
        let pool = format!("zfs{}", std::process::id());
        let mut bed = Self { daemon: None, devices: Vec::new(), pool, scratch };
        for at in 0..count {
            let image = bed.scratch.path().join(format!("disk{at}"));
            let file = File::create(&image).and_then(|file| file.set_len(DISK_MIB << 20));
            file.map_err(|e| e.to_string())?;
            let device = tool(Command::new("losetup").args(["--find", "--show"]).arg(&image))?;
            bed.devices.push(device.trim().to_owned());
        }
        let mut command = Command::new("zfs-fuse");
        command.args(["--no-daemon", "--pidfile", "/run/zfs/pid"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        bed.daemon = Some(command.spawn().map_err(|e| e.to_string())?);
        wait_for("zfs-fuse answers", patience(60), || {
            tool(Command::new("zpool").args(["list", "-H", "-o", "name"])).ok()
        });
        Ok(bed)
    }

    fn node(&self) -> String {
        format!("/storage/pools/{}", self.pool)
    }

    fn start(&self) -> (Server, Api) {
        let (dir, state) = (self.scratch.path().join("data"), self.scratch.path().join("state"));
        let options = Options { offset: Some(10_000), ..Options::new(&dir, &state) };
        (Server::start(&options), Api::new(&state))
    }

    /// Bytes that were written to a disk since it was connected.
    fn written(&self, at: usize) -> u64 {
        let name = self.devices[at].trim_start_matches("/dev/");
        let stat = fs::read_to_string(format!("/sys/class/block/{name}/stat")).expect("read");
        let sectors = stat.split_whitespace().nth(6).expect("sectors");
        sectors.parse::<u64>().expect("a number") * 512
    }

    /// The number of the member on a disk, and its node.
    fn member(&self, api: &Api, at: usize) -> (String, String) {
        let device = self.devices[at].trim_start_matches("/dev/");
        let (_, node) = api.get(&format!("/api/v1/nodes{}/disks?depth=1", self.node()));
        let items = node["items"].as_array().cloned().unwrap_or_default();
        let names = items.iter().filter_map(|item| item["name"].as_str().map(str::to_owned));
        let found = names.map(|name| (format!("{}/disks/{name}", self.node()), name));
        let mut found = found.filter(|(path, _)| value(api, path, "device") == device);
        let (path, name) = found.next().unwrap_or_else(|| panic!("{device}: {node}"));
        (name, path)
    }

    /// The pool as the tree has it, in the lines of the reader.
    fn lines(&self, api: &Api) -> String {
        let text = |path: &str, name: &str| match value(api, path, name) {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let node = self.node();
        let mut lines = vec![format!("pool {} {}", text(&node, "used"), text(&node, "available"))];
        for at in 1.. {
            let disk = format!("{node}/disks/{at}");
            if value(api, &disk, "state") == Value::Null {
                break;
            }
            let state = text(&disk, "state").replace("present", "online");
            let errors = ["read", "write", "corruption"]
                .map(|kind| text(&disk, &format!("{kind}_errors")))
                .join(" ");
            lines.push(format!(
                "{} {} {state} {errors}",
                text(&disk, "role"),
                text(&disk, "device")
            ));
        }
        let shares = value(api, &node, "shares").as_array().cloned().unwrap_or_default();
        lines.extend(shares.iter().map(|one| format!("share {}", one.as_str().unwrap_or(""))));
        let (_, snapshots) = api.get(&format!("/api/v1/nodes{node}/snapshots?depth=1"));
        let snapshots = snapshots["items"].as_array().cloned().unwrap_or_default();
        let names = snapshots.iter().filter_map(|one| one["name"].as_str());
        lines.extend(names.map(|one| format!("snapshot {one}")));
        lines.join("\n")
    }

    /// Waits until both are the same: space that is freed is counted some seconds later.
    fn is_as_the_commands_have_it(&self, api: &Api) {
        let mut last = (String::new(), String::new());
        let deadline = std::time::Instant::now() + patience(30);
        while last.0.is_empty() || last.0 != last.1 {
            assert!(std::time::Instant::now() < deadline, "{}\n--\n{}", last.0, last.1);
            let read = tool(Command::new("python3").args(["-c", READER, &self.pool]));
            last = (self.lines(api), read.expect("read").trim().to_owned());
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _gone = tool(Command::new("zpool").args(["export", "-f", &self.pool]));
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        for device in &self.devices {
            let _gone = tool(Command::new("losetup").args(["--detach", device]));
        }
    }
}

fn until(api: &Api, pool: &str, state: &str) {
    wait_for(state, TASK, || {
        let is_idle = value(api, pool, "task") == Value::Null;
        (is_idle && value(api, pool, "state") == state).then_some(())
    });
}

fn property(dataset: &str, name: &str) -> String {
    let get = ["get", "-H", "-p", "-o", "value", name, dataset];
    tool(Command::new("zfs").args(get)).expect("a property").trim().to_owned()
}

#[test]
fn a_pool_of_zfs_with_a_share_from_create_to_replace() {
    let bed = match Bed::new(5) {
        Ok(bed) => bed,
        Err(why) => skip!("pool-zfs", "{why}"),
    };
    let (server, api) = bed.start();
    let (node, disks) = (bed.node(), &bed.devices);
    let request = json!({ "name": bed.pool, "kind": "zfs", "profile": "mirror",
        "disks": [disks[0], disks[1]], "log": [disks[2]], "cache": [disks[3]],
        "record_size": 8192 });
    done(&api, "/storage/pools", "create_pool", &request);
    assert_eq!(value(&api, &node, "state"), "healthy");
    create_share(&bed, &api);
    let dataset = format!("{}/work", bed.pool);
    assert_eq!(property(&dataset, "recordsize"), "8192");
    assert_eq!(property(&dataset, "quota"), (64 * MIB).to_string());
    assert_eq!(property(&dataset, "reservation"), (20 * MIB).to_string());
    let mut mounted = Mounted::new(&server, "work");
    synchronous_writes_use_the_log(&bed, &mut mounted);
    let mut right = vec![0; 8 * MIB];
    SeededRandom::new(1).fill(&mut right);
    write(&mut mounted, "large", &right);
    bed.is_as_the_commands_have_it(&api);
    snapshots(&bed, &server, &api, &mut mounted);
    bed.is_as_the_commands_have_it(&api);
    legs(&bed, &api, &mut mounted, &right);
    bed.is_as_the_commands_have_it(&api);
}

fn create_share(bed: &Bed, api: &Api) {
    let properties = json!({ "pool": bed.pool, "root_mode": "777", "quota": 64 * MIB,
        "reservation": 20 * MIB });
    let create = json!({ "create": "/shares/default", "name": "work", "properties": properties });
    change(api, &json!([create]));
    wait_online(api, "work");
}

fn write(mounted: &mut Mounted, name: &str, bytes: &[u8]) {
    let how = CreateHow::Guarded(Default::default());
    let file = mounted.client.create(&mounted.root, name, how).expect("created").handle;
    for (at, block) in bytes.chunks(64 << 10).enumerate() {
        let offset = (at * (64 << 10)) as u64;
        mounted.client.write(&file, offset, block, StableHow::UNSTABLE).expect("written");
    }
    mounted.client.commit(&file).expect("stable");
}

fn synchronous_writes_use_the_log(bed: &Bed, mounted: &mut Mounted) {
    let how = CreateHow::Guarded(Default::default());
    let file = mounted.client.create(&mounted.root, "log", how).expect("created").handle;
    let before = bed.written(2);
    for at in 0..200 {
        let done = mounted.client.write(&file, at * 4096, &[7; 4096], StableHow::FILE_SYNC);
        done.expect("written");
    }
    let written = bed.written(2) - before;
    println!("200 synchronous writes of 4 KiB: {} KiB on the log device", written >> 10);
    assert!(written >= 200 * 4096, "{written} bytes were written to the log");
}

/// Snapshots by hand and by schedule, rollback, clone, rename.
fn snapshots(bed: &Bed, server: &Server, api: &Api, mounted: &mut Mounted) {
    let node = bed.node();
    let snapshot = |name: &str| {
        done(api, &node, "create_snapshot", &json!({ "share": "work", "name": name }));
    };
    mounted.put("file", b"one");
    snapshot("monday");
    mounted.put("file", b"two");
    snapshot("tuesday");
    mounted.put("file", b"now");
    let at = |name: &str| format!("{node}/snapshots/work@{name}");
    let confirm = json!({ "confirm": "work" });
    let refused = |name: &str, why: &str| {
        let (code, answer) = act(api, &at(name), "rollback", &confirm);
        assert!(code == 409 && answer.to_string().contains(why), "{code} {answer}");
    };
    refused("monday", "destroy the later ones first: tuesday");
    for (name, content) in [("tuesday", b"two"), ("monday", b"one")] {
        done(api, &at(name), "rollback", &confirm);
        if name == "tuesday" {
            done(api, &at(name), "destroy_snapshot", &json!({}));
        }
        let file = mounted.find("file").expect("there");
        assert_eq!(mounted.read(&file).expect("read"), content);
    }
    done(api, &at("monday"), "rename_snapshot", &json!({ "name": "first" }));
    done(api, &at("first"), "clone", &json!({ "name": "copy" }));
    wait_online(api, "copy");
    let mut copy = Mounted::new(server, "copy");
    let file = copy.find("file").expect("there");
    assert_eq!(copy.read(&file).expect("read"), b"one");
    let (code, answer) = act(api, &at("first"), "destroy_snapshot", &json!({}));
    assert!(code == 409 && answer.to_string().contains("copy"), "{code} {answer}");
    // The schedule of an hour makes one at once.
    change(
        api,
        &json!([{ "set": "/shares/default/work", "property": "snapshots_hourly", "value": 2 }]),
    );
    wait_for("a snapshot by schedule", TASK, || {
        let (_, all) = api.get(&format!("/api/v1/nodes{node}/snapshots?depth=1"));
        all.to_string().contains("work@hourly-").then_some(())
    });
}

/// A damaged leg is scrubbed, taken offline, online, and replaced.
fn legs(bed: &Bed, api: &Api, mounted: &mut Mounted, right: &[u8]) {
    let node = bed.node();
    let mut noise = vec![0; 20 * MIB];
    SeededRandom::new(2).fill(&mut noise);
    // The labels at both ends stay.
    let leg = OpenOptions::new().write(true).open(&bed.devices[1]).expect("a leg");
    leg.write_all_at(&noise, 8 << 20).expect("written");
    leg.sync_all().expect("flushed");
    drop(leg);
    done(api, &node, "scrub", &json!({}));
    until(api, &node, "healthy");
    let history = value(api, &node, "history")[0].as_str().unwrap_or_default().to_owned();
    assert!(history.contains("0 errors without a right copy"), "{history}");
    let (number, path) = bed.member(api, 1);
    assert!(value(api, &path, "corruption_errors").as_u64() > Some(0));
    bed.is_as_the_commands_have_it(api);
    done(api, &node, "offline", &json!({ "member": number }));
    assert_eq!(value(api, &node, "state"), "degraded");
    bed.is_as_the_commands_have_it(api);
    write(mounted, "meanwhile", right);
    done(api, &node, "replace", &json!({ "member": number, "disk": bed.devices[4] }));
    until(api, &node, "healthy");
    // All is on the new leg.
    let (first, _) = bed.member(api, 0);
    done(api, &node, "offline", &json!({ "member": first }));
    fs::write("/proc/sys/vm/drop_caches", "3").expect("drop_caches");
    for name in ["large", "meanwhile"] {
        let file = mounted.find(name).expect("there");
        assert!(mounted.read(&file).expect("read") == right, "{name} is wrong");
    }
    done(api, &node, "online", &json!({ "member": first }));
    until(api, &node, "healthy");
    assert!(Path::new(&format!("/run/plimsoll-pools/{}/work/large", bed.pool)).exists());
}
