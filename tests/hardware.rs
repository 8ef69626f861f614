//! Hardware and problems through a running server, on constructed machines: their files are mounted
//! over `/sys` for the server alone. What changes there, by errors, pulled disks, a fake smartctl,
//! is seen in the tree, in a mail, and over a restart.

#[path = "../crates/host/hardware/tests/common/tree.rs"]
mod tree;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use e2e::api::{Api, wait_for};
use e2e::browser::{self, Browser, PASSWORD};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{has, is_root, netns, skip};
use serde_json::{Value, json};

use crate::alerts::{Sink, mail};

/// Within this time a fault is a problem.
const NOTICED: Duration = Duration::from_secs(60);
const HARDWARE: &str = "/maintenance/hardware";
const PROBLEMS: &str = "/maintenance/problems";

/// A machine for the server alone.
struct Bed {
    scratch: Scratch,
}

impl Bed {
    /// Moves this thread to a machine of `crates/host/hardware/tests/machines`.
    fn enter(machine: &str) -> Result<Self, String> {
        if !is_root() || !has("unshare") {
            return Err("needs root and unshare".to_owned());
        }
        let scratch = Scratch::new("hardware");
        let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/host/hardware/tests");
        let root = scratch.folder("machine", None);
        tree::unpack(&machines.join("machines").join(machine).with_extension("tree"), &root);
        for folder in ["data", "bin"] {
            scratch.folder(folder, None);
        }
        let lines = format!("mount --bind {} /sys", root.join("sys").display());
        netns::isolate(&lines).map_err(|e| e.to_string())?;
        Ok(Self { scratch })
    }

    fn sys(&self) -> PathBuf {
        self.scratch.path().join("machine/sys")
    }

    fn start(&self) -> (Server, Api) {
        let (dir, state) = (self.scratch.path().join("data"), self.scratch.path().join("state"));
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.scratch.path().join("bin").display());
        let env = vec![("PATH", path)];
        let options = Options { env, offset: Some(10_000), ..Options::new(&dir, &state) };
        (Server::start(&options), Api::new(&state))
    }

    /// A smartctl that notes its arguments and prints a capture, with one of its words replaced.
    fn smartctl(&self, capture: &str, replace: (&str, &str), status: u8) {
        let captures = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../crates/host/hardware/tests/smartctl")
            .join(capture);
        let text = fs::read_to_string(captures).expect("a capture").replace(replace.0, replace.1);
        let bin = self.scratch.path().join("bin");
        fs::write(bin.join("output"), text).expect("a file");
        let script = format!(
            "#!/bin/sh\necho \"$*\" >>{bin}/calls\n/bin/cat {bin}/output\nexit {status}\n",
            bin = bin.display()
        );
        let program = bin.join("smartctl");
        fs::write(&program, script).expect("a program");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode");
    }

    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.scratch.path().join("bin/calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn node(api: &Api, path: &str) -> Value {
    let (code, node) = api.get(&format!("/api/v1/nodes{path}"));
    assert_eq!(code, 200, "{path}: {node:#}");
    node
}

fn value(api: &Api, path: &str, property: &str) -> Value {
    let node = node(api, path);
    let all = node["properties"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["name"] == property);
    one.map(|one| one["value"].clone()).unwrap_or_default()
}

fn items(api: &Api, path: &str) -> Vec<String> {
    let node = node(api, path);
    let items = node["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item.as_str().or(item["name"].as_str()).map(str::to_owned)).collect()
}

fn wait_for_problem(api: &Api, id: &str) {
    wait_for(id, NOTICED, || items(api, PROBLEMS).iter().any(|one| one == id).then_some(()));
}

/// A page has the machine read at once; without one it takes until the next look.
fn wait_with_page(api: &Api, id: &str, is_there: bool) {
    wait_for(id, NOTICED, || {
        node(api, &format!("{HARDWARE}/disks"));
        (items(api, PROBLEMS).iter().any(|one| one == id) == is_there).then_some(())
    });
}

/// The actions that the API shows with a problem.
fn actions(api: &Api, id: &str) -> Value {
    node(api, &format!("{PROBLEMS}/{id}"))["actions"].clone()
}

fn mark_repaired(api: &Api, id: &str) -> (u16, Value) {
    api.post(&format!("/api/v1/nodes{PROBLEMS}/{id}/actions/mark_repaired"), &json!({}))
}

#[test]
fn slots_adapters_and_ports_of_a_machine() {
    let bed = match Bed::enter("hcas") {
        Ok(bed) => bed,
        Err(why) => skip!("hardware-slots", "{why}"),
    };
    bed.smartctl("standby.json", ("", ""), 2);
    let (_server, api) = bed.start();
    assert_eq!(value(&api, HARDWARE, "product"), "Storage-1");
    assert_eq!(value(&api, &format!("{HARDWARE}/chassis"), "chassis_type"), "Rack Mount Chassis");
    let slots = format!("{HARDWARE}/slots");
    assert_eq!(items(&api, &slots)[..4], ["PCIE1", "PCIE2", "PCIE3", "PCIE4"]);
    let third = format!("{slots}/PCIE3");
    assert_eq!(value(&api, &third, "link"), "x4 of x8 at 5.0 GT/s");
    assert_eq!(value(&api, &third, "firmware"), "2.9.1000");
    assert_eq!(value(&api, &third, "node_guid"), "0002:c903:000b:0200");
    assert_eq!(items(&api, &third), ["mlx4_1-1", "mlx4_1-2"]);
    let port = format!("{third}/mlx4_1-1");
    assert_eq!(value(&api, &port, "state"), "active");
    assert_eq!(value(&api, &port, "rate"), "40 Gb/sec (4X QDR)");
    assert_eq!(value(&api, &port, "pkeys"), json!(["0xffff", "0x8001"]));
    // Each partition of a port is offered to datalinks while the subnet manager gives it.
    let offers = || {
        let offers = value(&api, "/configuration/network/datalinks", "offers");
        let offers = offers.as_array().cloned().unwrap_or_default();
        offers.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let offer = "0x8001 (full): port mlx4_1-1, GUID 0x0002c903000b0201";
    assert!(offers().iter().any(|one| one.starts_with(offer)), "{:?}", offers());
    fs::write(bed.sys().join("class/infiniband/mlx4_1/ports/1/pkeys/1"), "0x0000\n")
        .expect("a file");
    let is_gone = || !offers().iter().any(|one| one.starts_with(offer));
    wait_for("the offer ends", NOTICED, || is_gone().then_some(()));
    assert_eq!(value(&api, &format!("{slots}/PCIE1"), "state"), "empty");
    let module = format!("{HARDWARE}/memory/P2-DIMM2A");
    assert_eq!(value(&api, &module, "corrected_errors"), 3);
    // What was wrong before the server came is no news; a fan and a slot are wrong now.
    let urgent = ["sensor-w83795g-0-002f-fan2", "slot-width-PCIE3"];
    wait_for_problem(&api, urgent[0]);
    assert_eq!(items(&api, PROBLEMS), urgent);
    assert_eq!(value(&api, &format!("{PROBLEMS}/{}", urgent[0]), "severity"), "major");
    assert_eq!(value(&api, "/status", "machine_problems"), 2);
    // It ends with its cause, so that there is nothing to mark.
    assert_eq!(actions(&api, urgent[1]), json!([]));
    let (code, refused) = mark_repaired(&api, urgent[1]);
    assert_eq!(code, 409, "{refused}");
    // One look at all of it by the shell.
    let out = e2e::process::run(
        std::process::Command::new(e2e::server::binary())
            .args(["cli", "--state"])
            .arg(bed.scratch.path().join("state"))
            .args(["-c", "maintenance hardware slots PCIE3 show"]),
        e2e::process::DEADLINE,
    );
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("x4 of x8 at 5.0 GT/s"), "{text}");
}

#[test]
fn a_disk_with_errors_that_is_pulled_and_put_back() {
    let bed = match Bed::enter("chassis") {
        Ok(bed) => bed,
        Err(why) => skip!("hardware-disks", "{why}"),
    };
    bed.smartctl("standby.json", ("", ""), 2);
    let mails = Sink::start(mail);
    let (server, api) = bed.start();
    let at = "/configuration/alerts";
    let set =
        |property: &str, value: Value| json!({ "set": at, "property": property, "value": value });
    let changes = json!({ "changes": [
        set("smtp_host", json!("127.0.0.1")), set("smtp_port", json!(mails.port)),
        set("smtp_security", json!("none")), set("mail_from", json!("plimsoll@example.org")),
        { "create": at, "name": "machine",
          "properties": { "when": "hardware", "mail": ["ops@example.org"] } },
    ]});
    let (code, answer) = api.post("/api/v1/changes", &changes);
    assert_eq!(code, 200, "{answer}");
    let disks = format!("{HARDWARE}/disks");
    let third = "EXAMPLE-ST4000NM0023-Z1Z00002";
    assert_eq!(items(&api, &disks).len(), 24);
    assert_eq!(value(&api, &format!("{disks}/{third}"), "bay"), "enclosure 0:0:24:0, Slot 03");
    assert_eq!(value(&api, &format!("{disks}/EXAMPLE-ST4000NM0023-Z1Z00008"), "fault"), true);
    assert!(items(&api, PROBLEMS).is_empty());
    let device = fs::canonicalize(bed.sys().join("block/sdc/device")).expect("sdc");
    fs::write(device.join("ioerr_cnt"), "0x5\n").expect("a file");
    let errors = format!("disk-errors-{third}");
    wait_for_problem(&api, &errors);
    let what = "3 commands to the disk EXAMPLE ST4000NM0023 (serial number Z1Z00002, enclosure \
                0:0:24:0, Slot 03, sdc) failed.";
    assert_eq!(value(&api, &format!("{PROBLEMS}/{errors}"), "what"), what);
    let text = mails.next("mail").replace("=\r\n", "").replace("\r\n", " ");
    assert!(text.contains("alert machine fired"), "{text}");
    assert!(text.contains("serial number Z1Z00002") && text.contains("Slot 03"), "{text}");
    assert_eq!(actions(&api, &errors), json!(["mark_repaired"]));
    assert_eq!(mark_repaired(&api, &errors).0, 200);
    wait_with_page(&api, &errors, false);
    assert!(mails.next("mail").contains("alert machine has cleared"));
    // Pulled, over a restart of the server, and put back under another name.
    let (old, new) = (bed.sys().join("block/sdc"), bed.sys().join("block/sdz"));
    let link = fs::read_link(&old).expect("a link");
    fs::remove_file(&old).expect("the link");
    let absent = format!("disk-absent-{third}");
    wait_with_page(&api, &absent, true);
    let since = value(&api, &format!("{PROBLEMS}/{absent}"), "since");
    drop(server);
    let (_server, api) = bed.start();
    wait_with_page(&api, &absent, true);
    assert_eq!(value(&api, &format!("{PROBLEMS}/{absent}"), "since"), since);
    assert_eq!(value(&api, &format!("{disks}/{third}"), "state"), "absent");
    std::os::unix::fs::symlink(link, new).expect("a link");
    wait_with_page(&api, &absent, false);
    assert_eq!(items(&api, &disks).len(), 24);
    assert_eq!(value(&api, &format!("{disks}/{third}"), "devices"), json!(["sdz"]));
    assert_eq!(value(&api, &format!("{disks}/{third}"), "failed_commands"), 0);
}

#[test]
fn health_by_a_program_that_is_called_once() {
    let bed = match Bed::enter("hcas") {
        Ok(bed) => bed,
        Err(why) => skip!("hardware-health", "{why}"),
    };
    bed.smartctl("ata.json", ("\"passed\": true", "\"passed\": false"), 8);
    let disk = "Example-SSD-860-S3ZANB0K000001A";
    let (path, fault) = (format!("{HARDWARE}/disks/{disk}"), format!("disk-health-{disk}"));
    let (server, api) = bed.start();
    wait_for_problem(&api, &fault);
    assert_eq!(value(&api, &path, "health"), "failing");
    assert_eq!(value(&api, &path, "temperature"), 31);
    let sentence = "the disk reports its own failure: no reason is given";
    assert_eq!(value(&api, &path, "reason"), sentence);
    let first =
        wait_for("all disks", NOTICED, || Some(bed.calls()).filter(|calls| calls.len() == 3));
    assert!(first.iter().all(|call| call.contains("-n standby")), "{first:?}");
    // A restart does not query them again: their hour is not over.
    drop(server);
    let (_server, api) = bed.start();
    wait_for_problem(&api, &fault);
    let reason = || value(&api, &format!("{HARDWARE}/disks"), "reason");
    assert_eq!(reason(), Value::Null);
    assert_eq!(mark_repaired(&api, &fault).0, 200);
    wait_with_page(&api, &fault, false);
    assert_eq!(bed.calls(), first);
}

/// The pages of a real server on a machine with two adapters and a disk that fails.
#[test]
fn the_pages_of_the_hardware_in_a_browser() {
    if let Some(what) = browser::missing() {
        skip!("hardware-looks", "{what}");
    }
    let bed = match Bed::enter("hcas") {
        Ok(bed) => bed,
        Err(why) => skip!("hardware-looks", "{why}"),
    };
    bed.smartctl("ata.json", ("\"passed\": true", "\"passed\": false"), 8);
    let (server, api) = bed.start();
    let disk = "Example-SSD-860-S3ZANB0K000001A";
    wait_for_problem(&api, &format!("disk-health-{disk}"));
    wait_for_problem(&api, "slot-width-PCIE3");
    let mut page = Browser::start();
    page.open(&server, "admin", PASSWORD);
    let mut looks = |path: &str, name: &str, words: &[&str]| {
        let looks = json!({ "do": "looks", "path": path, "name": name, "words": words });
        page.ask(&looks).unwrap_or_else(|why| panic!("{path}: {why}"));
    };
    looks(HARDWARE, "hardware", &["PCIE3", disk, "P2-DIMM2A"]);
    let words = ["The link runs at x4 of x8 at 5.0 GT/s.", "2.9.1000", "0002:c903:000b:0201"];
    looks(&format!("{HARDWARE}/slots/PCIE3"), "hardware-slot", &words);
    let words = ["The disk reports its own failure: no reason is given.", "S3ZANB0K000001A"];
    looks(&format!("{HARDWARE}/disks/{disk}"), "hardware-disk", &words);
    looks(PROBLEMS, "hardware-problems", &["PCIE3", "S3ZANB0K000001A"]);
    assert_eq!(page.ask(&json!({ "do": "complaints" })), Ok(json!([])));
}

#[test]
fn an_ordinary_user_sees_why_parts_are_missing() {
    let scratch = Scratch::new("hardware-user");
    let dir = scratch.folder("data", Some(e2e::NOBODY));
    let state = scratch.folder("state", Some(e2e::NOBODY));
    let options = Options { unprivileged: true, ..Options::new(&dir, &state) };
    let (_server, api) = (Server::start(&options), Api::new(&state));
    let reason = || value(&api, &format!("{HARDWARE}/disks"), "reason").as_str().map(str::to_owned);
    // Ten seconds after its start the server looks for a way to query disks.
    let reason = wait_for("a reason", NOTICED, reason);
    assert!(reason.contains("the server is not root and no helper runs"), "{reason}");
    for part in ["chassis", "cpus", "memory", "slots", "disks", "sensors"] {
        node(&api, &format!("{HARDWARE}/{part}"));
    }
    let fabric = |property| value(&api, "/maintenance/fabric", property);
    if Path::new("/dev/infiniband/umad0").exists() {
        println!("this machine has an InfiniBand device");
    } else {
        assert_eq!(fabric("state"), "unavailable");
        assert_eq!(
            fabric("reason"),
            "there is no /dev/infiniband/umad*: this machine has no InfiniBand device, or the \
             module ib_umad is not loaded (modprobe ib_umad)"
        );
    }
    let absent = value(&api, HARDWARE, "absent").as_array().cloned().unwrap_or_default();
    for line in absent.iter().filter_map(Value::as_str) {
        let known = ["not offered by this machine", "only root may read it"];
        assert!(known.iter().any(|reason| line.contains(reason)), "{line}");
    }
}
