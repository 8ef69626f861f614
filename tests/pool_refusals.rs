//! Rollbacks and clones that are refused: with one sentence, and nothing is changed.

use std::fs;
use std::process::Command;

use e2e::api::Api;
use e2e::pool_disk::{PoolDisk, act, change, done, value, wait_online};
use e2e::process;
use e2e::server::{Server, binary};
use e2e::{patience, skip};
use serde_json::{Value, json};
use wire::nfs3::StableHow;

use crate::pool_mount::Mounted;

const SHARE: &str = "work";

fn snapshot(bed: &PoolDisk, name: &str) -> String {
    format!("{}/snapshots/{SHARE}@{name}", bed.node())
}

fn sorted(path: &str) -> Vec<String> {
    let names = fs::read_dir(path).expect("a listing").flatten();
    let mut names: Vec<String> =
        names.map(|one| one.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// All that could change: the subvolumes, the snapshots, the shares, and the live file.
fn state(
    bed: &PoolDisk,
    api: &Api,
    mounted: &mut Mounted,
) -> (Vec<String>, Vec<String>, Value, Vec<u8>) {
    let file = mounted.find("file").expect("there");
    let content = mounted.read(&file).expect("read");
    let (_, shares) = api.get("/api/v1/nodes/shares/default");
    let snapshots = sorted(&format!("{}/.snapshots/{SHARE}", bed.directory()));
    (sorted(&bed.directory()), snapshots, shares["items"].clone(), content)
}

/// Refused, with this in its one sentence.
fn refused((code, answer): (u16, Value), because: &str) {
    assert!((400..500).contains(&code), "{code} {answer}");
    assert!(answer.to_string().contains(because), "{because}: {answer}");
}

/// A command line with the rights of a role.
fn as_role(bed: &PoolDisk, (server, api): (&Server, &Api), role: &str, line: &str) -> String {
    let create = json!({ "create": "/configuration/tokens", "name": role,
        "properties": { "role": role } });
    change(api, &json!([create]));
    let answer = done(api, &format!("/configuration/tokens/{role}"), "issue", &json!({}));
    let file = bed.scratch.path().join(role);
    fs::write(&file, answer["result"]["token"].as_str().expect("a token")).expect("written");
    let state = bed.scratch.path().join("state");
    fs::copy(state.join("certificate.pem"), bed.scratch.path().join("certificate.pem"))
        .expect("copied");
    let url = server.announced["admin"].as_str().expect("a URL");
    let mut command = Command::new(binary());
    command.args(["cli", "--server", url.trim_end_matches('/'), "--token-file"]).arg(file);
    let output = process::run(command.args(["-c", line]), patience(60));
    assert!(!output.status.success(), "{role}: {line}");
    [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat()
}

#[test]
fn a_clone_or_rollback_that_is_refused_changes_nothing() {
    let bed = match PoolDisk::new("refusals", 256) {
        Ok(bed) => bed,
        Err(why) => skip!("pool-refusals", "{why}"),
    };
    let (server, api) = bed.start();
    bed.create(&api, SHARE);
    let mut mounted = Mounted::new(&server, SHARE);
    let file = mounted.put("file", b"old");
    bed.snapshot(&api, SHARE, "monday");
    mounted.client.write(&file, 0, b"now", StableHow::FILE_SYNC).expect("written");
    bed.snapshot(&api, SHARE, "tuesday");
    let before = state(&bed, &api, &mut mounted);
    let role = |name: &str, permissions: &[&str]| {
        json!({ "create": "/configuration/roles", "name": name,
            "properties": { "permissions": permissions } })
    };
    let storage = role("keeper", &["storage:change", "shares:change", "status:read"]);
    change(&api, &json!([storage, role("shares", &["storage:read", "shares:change"])]));
    let at = format!("storage pools {} snapshots {SHARE}@monday", bed.pool);
    let rights = [
        ("keeper", "clone name=copy", "requires the permission *"),
        ("shares", "rollback confirm=work --yes", "storage:change"),
    ];
    for (role, line, because) in rights {
        let text = as_role(&bed, (&server, &api), role, &format!("{at} {line}"));
        assert!(text.contains(because), "{role}: {text}");
        assert_eq!(state(&bed, &api, &mut mounted), before, "{role}: {text}");
    }
    clones(&bed, &api);
    assert_eq!(state(&bed, &api, &mut mounted), before);
    for name in ["wednesday", "..", "monday/file"] {
        let node = snapshot(&bed, name);
        let (code, answer) = act(&api, &node, "rollback", &json!({ "confirm": SHARE }));
        assert!((400..500).contains(&code), "{name}: {code} {answer}");
    }
    assert_eq!(state(&bed, &api, &mut mounted), before);
    names_in_use(&bed, &api);
    assert_eq!(state(&bed, &api, &mut mounted), before);
    in_use(&bed, &api, &mut mounted);
}

/// Clones to a place that is not there, or taken.
fn clones(bed: &PoolDisk, api: &Api) {
    let monday = snapshot(bed, "monday");
    let clone = |name: &str, project: &str| {
        act(api, &monday, "clone", &json!({ "name": name, "project": project }))
    };
    refused(clone("copy", "nowhere"), "the share cannot be created");
    refused(clone("copy", "../default"), "the share cannot be created");
    refused(clone(SHARE, "default"), "there is a share with this name");
    refused(clone(&"n".repeat(300), "default"), "");
    refused(clone("with space ", "default"), "the share cannot be created");
    let project = json!({ "create": "/shares", "name": "other" });
    change(api, &json!([project]));
    // Names of shares are those of all projects.
    refused(clone(SHARE, "other"), SHARE);
    change(api, &json!([{ "destroy": "/shares/other", "confirm": true }]));
    // The files of a share that was destroyed stay as they are.
    let create = json!({ "create": "/shares/default", "name": "gone",
        "properties": { "pool": bed.pool } });
    change(api, &json!([create]));
    let kept = format!("{}/gone/kept", bed.directory());
    fs::write(&kept, "kept").expect("written");
    change(api, &json!([{ "destroy": "/shares/default/gone", "confirm": true }]));
    refused(clone("gone", "default"), "there is something named gone");
    assert_eq!(fs::read_to_string(&kept).expect("read"), "kept");
    let done = Command::new("btrfs")
        .args(["subvolume", "delete", &format!("{}/gone", bed.directory())])
        .output();
    assert!(done.expect("btrfs").status.success());
}

/// Names of other snapshots, and of schedules.
fn names_in_use(bed: &PoolDisk, api: &Api) {
    let monday = snapshot(bed, "monday");
    for (name, because) in
        [("tuesday", "there is a snapshot tuesday"), ("hourly-2026-01-01-10-00", "of a schedule")]
    {
        refused(act(api, &monday, "rename_snapshot", &json!({ "name": name })), because);
        let create = json!({ "share": SHARE, "name": name });
        assert_ne!(act(api, &bed.node(), "create_snapshot", &create).0, 200, "{name}");
    }
}

/// A rollback while a LUN is a file of the share, and while another share is inside its directory.
fn in_use(bed: &PoolDisk, api: &Api, mounted: &mut Mounted) {
    let rollback = || act(api, &snapshot(bed, "monday"), "rollback", &json!({ "confirm": SHARE }));
    let path = format!("{}/{SHARE}/unit", bed.directory());
    let properties = json!({ "backing": "file", "path": path, "volsize": "8M", "sparse": true });
    let lun = json!({ "create": "/shares/default/luns", "name": "unit", "properties": properties });
    change(api, &json!([lun]));
    let before = state(bed, api, mounted);
    refused(rollback(), "files of the share are LUNs: take them offline first");
    assert_eq!(state(bed, api, mounted), before);
    change(api, &json!([{ "destroy": "/shares/default/luns/unit", "confirm": true }]));
    fs::remove_file(&path)
        .or_else(|e| match e.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(e),
        })
        .expect("removed");
    let root = mounted.root.clone();
    mounted.client.mkdir(&root, "sub", Default::default()).expect("created");
    let inner = json!({ "create": "/shares/default", "name": "inner",
        "properties": { "directory": format!("{}/{SHARE}/sub", bed.directory()) } });
    change(api, &json!([inner]));
    wait_online(api, "inner");
    let before = state(bed, api, mounted);
    refused(rollback(), "shares are inside the directory of the share: inner");
    assert_eq!(state(bed, api, mounted), before);
    change(api, &json!([{ "destroy": "/shares/default/inner", "confirm": true }]));
    // Without these it is done, over a later snapshot, which stays.
    let (code, answer) = rollback();
    assert_eq!(code, 200, "{answer}");
    let after = state(bed, api, mounted);
    assert_eq!(after.3, b"old");
    let kept = |name: &str| after.1.iter().any(|one| one.starts_with(name));
    assert!(kept("monday") && kept("tuesday") && kept("before-rollback-"), "{:?}", after.1);
    assert_eq!(value(api, &format!("/shares/default/{SHARE}"), "state"), "online");
}
