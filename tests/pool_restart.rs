//! A share on a pool after a restart, a crash, a power cut, and the import of the configuration on
//! another state directory: it is there, with its settings.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use base::random::{Random, SeededRandom};
use e2e::api::{Api, wait_for};
use e2e::loops::tool;
use e2e::nfs3::Failure;
use e2e::pool_disk::{PoolDisk, act, change, done, value, wait_online};
use e2e::server::{Options, Server};
use e2e::{patience, skip};
use serde_json::{Value, json};
use wire::nfs3::{Nfsstat3, StableHow};

use crate::pool_mount::Mounted;

const SHARE: &str = "work";
const MIB: usize = 1 << 20;
const QUOTA: usize = 32 * MIB;
/// The kernel keeps some of a quota for metadata of changes that are not written yet.
const RESERVED: usize = 8 * MIB;
/// Bytes of a write.
const PIECE: usize = 64 << 10;
const SETTINGS: [&str; 4] = ["quota", "compression", "snapshots_weekly", "snapshots_monthly"];

fn btrfs(arguments: &[&str]) -> String {
    tool(Command::new("btrfs").args(arguments)).unwrap_or_else(|e| panic!("{e}"))
}

fn settings(api: &Api) -> [Value; 4] {
    SETTINGS.map(|name| value(api, &format!("/shares/default/{SHARE}"), name))
}

/// Names of the snapshots of the share.
fn snapshots(bed: &PoolDisk, api: &Api) -> Vec<String> {
    let (_, node) = api.get(&format!("/api/v1/nodes{}/snapshots", bed.node()));
    let items = node["items"].as_array().cloned().unwrap_or_default();
    let names = items.iter().filter_map(|one| one["name"].as_str().or(one.as_str()));
    names.filter_map(|name| name.strip_prefix(&format!("{SHARE}@"))).map(str::to_owned).collect()
}

/// Waits for snapshots of the schedules by week and month: shorter periods could begin during the
/// test, and keep what it removes.
fn wait_scheduled(bed: &PoolDisk, api: &Api) {
    wait_for("the snapshots of the schedules", patience(60), || {
        let names = snapshots(bed, api);
        let has = |kind: &str| names.iter().any(|name| name.starts_with(kind));
        (has("weekly-2") && has("monthly-2")).then_some(())
    });
}

/// Removes the snapshots of the schedules, while no server runs or it does not look.
fn remove_scheduled(bed: &PoolDisk) {
    let folder = format!("{}/.snapshots/{SHARE}", bed.directory());
    let names = fs::read_dir(&folder).expect("a listing").flatten();
    let names = names.filter_map(|one| one.file_name().into_string().ok());
    let mut removed = 0;
    for name in names.filter(|name| name.contains("ly-2")) {
        btrfs(&["subvolume", "delete", &format!("{folder}/{name}")]);
        removed += 1;
    }
    assert!(removed >= 2, "{removed} snapshots of schedules");
}

/// Writes until it is refused, and removes what was written.
fn refuses_beyond(bed: &PoolDisk, server: &Server, quota: usize) {
    // What was removed when the last server ended counts until then.
    btrfs(&["filesystem", "sync", &bed.directory()]);
    let mut mounted = Mounted::new(server, SHARE);
    let (mut piece, mut random) = (vec![0; PIECE], SeededRandom::new(7));
    let file = mounted.make("large", b"");
    let mut taken = 0;
    let refused = loop {
        random.fill(&mut piece);
        match mounted.client.write(&file, taken as u64, &piece, StableHow::UNSTABLE) {
            Ok(_) => taken += PIECE,
            Err(refused) => break refused,
        }
        assert!(taken <= quota, "{taken} bytes were taken");
    };
    assert!(matches!(refused, Failure::Status(Nfsstat3::DQUOT)), "{refused:?}");
    assert!(taken + RESERVED >= quota, "only {taken} bytes were taken");
    mounted.client.remove(&mounted.root, "large", false).expect("removed");
    btrfs(&["filesystem", "sync", &bed.directory()]);
}

/// What the file system has for the share, as another program reads it.
fn of_kernel(bed: &PoolDisk) -> (String, String) {
    let at = format!("{}/{SHARE}", bed.directory());
    let compression = btrfs(&["property", "get", &at, "compression"]);
    let id = btrfs(&["inspect-internal", "rootid", &at]);
    let all = btrfs(&["qgroup", "show", "--raw", "-r", &bed.directory()]);
    let id = format!("0/{}", id.trim());
    let line = all.lines().find(|line| line.split_whitespace().next() == Some(&id));
    let quota = line.and_then(|line| line.split_whitespace().nth(3)).unwrap_or("-");
    (quota.to_owned(), compression.trim().to_owned())
}

/// A server with a share that has a quota, compression, schedules, a snapshot by hand, and a file.
fn configured(bed: &PoolDisk) -> (Server, Api) {
    let (server, api) = bed.start();
    bed.create(&api, SHARE);
    let at = format!("/shares/default/{SHARE}");
    let set =
        |property: &str, value: Value| json!({ "set": at, "property": property, "value": value });
    change(
        &api,
        &json!([
            set("quota", json!(QUOTA)),
            set("compression", json!("zstd")),
            set("snapshots_weekly", json!(8)),
            set("snapshots_monthly", json!(12)),
        ]),
    );
    wait_scheduled(bed, &api);
    let mut mounted = Mounted::new(&server, SHARE);
    mounted.put("file", b"one");
    bed.snapshot(&api, SHARE, "by-hand");
    mounted.put("file", b"two");
    (server, api)
}

/// The share is as it was configured, with its files.
fn as_before(bed: &PoolDisk, (server, api): (&Server, &Api), before: &[Value; 4]) {
    wait_online(api, SHARE);
    assert_eq!(&settings(api), before);
    assert_eq!(of_kernel(bed), (QUOTA.to_string(), "compression=zstd".to_owned()));
    wait_scheduled(bed, api);
    let mut mounted = Mounted::new(server, SHARE);
    for (path, content) in [("file", b"two"), (".snapshot/by-hand/file", b"one")] {
        let file = mounted.find(path).expect(path);
        assert_eq!(mounted.read(&file).expect(path), content);
    }
    refuses_beyond(bed, server, QUOTA);
}

/// As after a power cut: nothing is mounted.
fn unmount(bed: &PoolDisk) {
    wait_for("the pool is not in use", patience(60), || {
        let done = Command::new("umount").arg(bed.directory()).output().expect("umount");
        done.status.success().then_some(())
    });
}

#[test]
fn settings_of_a_share_on_a_pool_stay_after_a_restart_and_a_crash() {
    let bed = match PoolDisk::new("restart", 512) {
        Ok(bed) => bed,
        Err(why) => skip!("pool-restart", "{why}"),
    };
    let (mut server, mut api) = configured(&bed);
    let before = settings(&api);
    let by_hand = |api: &Api| snapshots(&bed, api).iter().any(|name| name == "by-hand");
    refuses_beyond(&bed, &server, QUOTA);
    for end in ["restart", "crash", "power cut"] {
        match end {
            "restart" => drop(server.stop()),
            _ => server.kill(),
        }
        drop(server);
        // A schedule makes them again, which shows that it runs.
        remove_scheduled(&bed);
        if end == "power cut" {
            unmount(&bed);
        }
        (server, api) = bed.start();
        println!("{end}");
        as_before(&bed, (&server, &api), &before);
        assert!(by_hand(&api), "{end}");
    }
}

/// Has the disk as it was when `image` was copied, connected again.
fn restore(bed: &mut PoolDisk, image: &Path) {
    unmount(bed);
    btrfs(&["device", "scan", "--forget", bed.device.trim()]);
    tool(Command::new("losetup").args(["--detach", bed.device.trim()])).expect("disconnected");
    // It is only marked as going while another test reads what is on all disks.
    let disk = bed.scratch.path().join("disk");
    let backing = bed.device.trim().replace("/dev/", "/sys/block/") + "/loop/backing_file";
    wait_for("the disk is disconnected", patience(60), || {
        let is_there = fs::read_to_string(&backing).is_ok_and(|at| Path::new(at.trim()) == disk);
        (!is_there).then_some(())
    });
    fs::rename(image, &disk).expect("the image of before");
    let device = tool(Command::new("losetup").args(["--find", "--show"]).arg(&disk));
    bed.device = device.expect("connected");
}

#[test]
fn a_share_that_was_acknowledged_is_there_after_a_power_cut() {
    let mut bed = match PoolDisk::new("created", 256) {
        Ok(bed) => bed,
        Err(why) => skip!("pool-created", "{why}"),
    };
    let (mut server, mut api) = bed.start();
    let (disk, cut) = (bed.scratch.path().join("disk"), bed.scratch.path().join("cut"));
    // A subvolume, and a directory that is made.
    for share in [SHARE, "plain"] {
        let at = format!("{}/{share}", bed.directory());
        if share == SHARE {
            bed.create(&api, share);
        } else {
            let properties = json!({ "directory": at, "make_directory": true, "root_mode": "777" });
            let create = "/shares/default";
            change(&api, &json!([{ "create": create, "name": share, "properties": properties }]));
        }
        fs::copy(&disk, &cut).expect("what is on the disk");
        server.stop();
        drop(server);
        restore(&mut bed, &cut);
        (server, api) = bed.start();
        wait_online(&api, share);
        let mode = fs::metadata(&at).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o777, "{share}: {mode:o}");
    }
}

#[test]
fn an_imported_configuration_keeps_the_settings_of_shares_on_pools() {
    let bed = match PoolDisk::new("imported", 512) {
        Ok(bed) => bed,
        Err(why) => skip!("pool-imported", "{why}"),
    };
    let (mut server, api) = configured(&bed);
    let before = settings(&api);
    let (code, text) = api.text("/api/v1/configuration");
    assert_eq!(code, 200, "{text}");
    // The pool has other settings than those of the configuration that is imported.
    let at = format!("/shares/default/{SHARE}");
    let other =
        |property: &str, value: Value| json!({ "set": at, "property": property, "value": value });
    change(&api, &json!([other("quota", json!(2 * QUOTA)), other("compression", json!("off"))]));
    server.stop();
    drop(server);
    remove_scheduled(&bed);
    let (dir, state) = (bed.scratch.path().join("data"), bed.scratch.path().join("other"));
    let start = || Server::start(&Options { offset: Some(10_000), ..Options::new(&dir, &state) });
    let (mut server, api) = (start(), Api::new(&state));
    // Without the pool nothing of it is taken over, and the pool is not taken from another server.
    let import = || api.put_text("/api/v1/configuration", &text);
    let (code, answer) = import();
    let sentence = format!("there is no pool {}", bed.pool);
    assert!(code == 400 && answer.to_string().contains(&sentence), "{code} {answer}");
    assert_eq!(value(&api, &at, "quota"), Value::Null);
    let name = json!({ "name": bed.pool });
    let (code, answer) = act(&api, "/storage/pools", "import_pool", &name);
    let sentence = format!("is mounted at {} by a server", bed.directory());
    assert!(code == 409 && answer.to_string().contains(&sentence), "{code} {answer}");
    unmount(&bed);
    done(&api, "/storage/pools", "import_pool", &name);
    let (code, answer) = import();
    assert_eq!(code, 200, "{answer}");
    as_before(&bed, (&server, &api), &before);
    server.stop();
    drop(server);
    server = start();
    as_before(&bed, (&server, &Api::new(&state)), &before);
}
