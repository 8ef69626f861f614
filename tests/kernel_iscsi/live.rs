//! Units that change while a Linux initiator uses them: one that grows under a mounted file system,
//! and one of which a snapshot is taken under load; the file system in the snapshot replays its
//! journal. The initiator signs in by the lines that the server shows.

use e2e::api::Api;
use e2e::disk::Disk;
use e2e::{skip, uml};
use serde_json::{Value, json};

use super::{PORT, Stage, end_blocks, portal, unavailable};

/// The node of a unit.
fn node(name: &str) -> String {
    format!("/shares/default/luns/{name}")
}

fn change(api: &Api, change: &Value) {
    let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": [change] }));
    assert_eq!(code, 200, "{change}: {answer}");
}

/// The lines for an initiator of Linux that a unit shows, with the secret.
fn lines(stage: &Stage, api: &Api, name: &str) -> Vec<String> {
    let (code, node) = api.get(&format!("/api/v1/nodes{}", node(name)));
    assert_eq!(code, 200, "{node}");
    let properties = node["properties"].as_array().expect("properties");
    let connect = properties.iter().find(|one| one["name"] == "connect").expect("its lines");
    let lines = connect["value"].as_array().expect("lines").iter().filter_map(Value::as_str);
    let secret = &stage.access.secret;
    let with = |line: &str| line.replace("USER", "plimsoll").replace("SECRET", secret);
    lines.filter(|line| line.starts_with("iscsiadm ")).map(with).collect()
}

#[test]
fn a_unit_grows_under_a_mounted_file_system() {
    if let Some(why) = unavailable() {
        skip!("kernel-iscsi-grow", "{why}");
    }
    let _turn = uml::turn();
    let mut stage = match Stage::new(1, 120) {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-iscsi-grow", "{why}"),
    };
    let api = Api::new(&stage.scratch.path().join("state"));
    let lines = lines(&stage, &api, "disk");
    assert!(lines.len() >= 3, "{lines:?}");
    stage.run(0, &lines.join("\n"));
    stage.guests[0].install("blocks");
    stage.run(0, "disk sda\nmkfs.ext4 -q -F /dev/sda\nmount /dev/sda /mnt/nfs");
    let task = stage.begin(0, "exec blocks writer /mnt/nfs/blocks /tmp/stop 3");
    stage.guests[0].event("writer at");
    change(&api, &json!({"set": node("disk"), "property": "volsize", "value": "160M"}));
    // The session stays, and the writer with it; the disk has sectors of 512 bytes.
    let sectors = (160 << 20) / 512;
    stage.run(
        0,
        &format!(
            "before=$(iscsiadm -m session)\n\
             until [ \"$(cat /sys/block/sda/size)\" = {sectors} ]; do\n\
             echo 1 >/sys/block/sda/device/rescan; sleep 0.1; done\n\
             [ \"$before\" = \"$(iscsiadm -m session)\" ]\n\
             resize2fs /dev/sda\n\
             head -c 100M /dev/zero >/mnt/nfs/more\nsync"
        ),
    );
    let log = end_blocks(&mut stage, &task);
    stage.run(0, "umount /mnt/nfs\nfsck.ext4 -fn /dev/sda");
    println!("grown under {}", log.trim());
    assert!(stage.server.stop().success());
}

#[test]
fn a_snapshot_under_load_replays_its_journal() {
    if let Some(why) = unavailable() {
        skip!("kernel-iscsi-snapshot", "{why}");
    }
    let disk = match Disk::new("xfs") {
        Ok(disk) => disk,
        Err(why) => skip!("kernel-iscsi-snapshot", "{why}"),
    };
    let _turn = uml::turn();
    let mut stage = match Stage::new(1, 120) {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-iscsi-snapshot", "{why}"),
    };
    let api = Api::new(&stage.scratch.path().join("state"));
    let path = disk.path().join("unit");
    let properties = json!({"backing": "file", "path": path, "volsize": "64M"});
    change(
        &api,
        &json!({"create": "/shares/default/luns", "name": "cloned",
        "properties": properties}),
    );
    let at = portal(PORT);
    stage.guests[0].install("blocks");
    stage.run(
        0,
        &format!(
            "node {at} -o new\nnode {at} --login\ndisk sdb\nmkfs.ext4 -q -F /dev/sdb\n\
             mount /dev/sdb /mnt/nfs\nsync"
        ),
    );
    let task = stage.begin(0, "exec blocks writer /mnt/nfs/blocks /tmp/stop 4");
    // Into the work: with a journal that has something to replay.
    for _ in 0..4 {
        stage.guests[0].event("writer at");
    }
    let action = format!("/api/v1/nodes{}/actions/snapshot", node("cloned"));
    let (code, answer) = api.post(&action, &json!({"parameters": {"name": "monday"}}));
    assert_eq!(code, 200, "{answer}");
    stage.guests[0].event("writer at");
    let log = end_blocks(&mut stage, &task);
    // A snapshot cannot be written; a clone of it can, and needs no repair but its journal's.
    let action = format!("/api/v1/nodes{}/actions/clone", node("monday"));
    let (code, answer) = api.post(&action, &json!({"parameters": {"name": "copy"}}));
    assert_eq!(code, 200, "{answer}");
    stage.run(
        0,
        "umount /mnt/nfs\nfsck.ext4 -fn /dev/sdb\niscsiadm -m session --rescan\n\
         disk sdc\ndisk sdd\n[ \"$(cat /sys/block/sdc/ro)\" = 1 ]\n\
         mount /dev/sdd /mnt/nfs\n[ -s /mnt/nfs/blocks ]\numount /mnt/nfs\n\
         fsck.ext4 -fn /dev/sdd",
    );
    println!("a snapshot under {}", log.trim());
    assert!(stage.server.stop().success());
    drop(stage);
}
