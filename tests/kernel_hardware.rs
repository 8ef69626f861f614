//! Disks of a Linux kernel that fail: SCSI disks in memory (scsi_debug) of a guest of User Mode
//! Linux. A medium error is a problem with serial number within a minute; a disk that is deleted is
//! absent, and the same item when it is back.
//!
//! Guest side: `uml/hardware.sh`.

use std::path::Path;
use std::time::{Duration, Instant};

use e2e::scratch::Scratch;
use e2e::skip;
use e2e::uml::{self, Guest};
use serde_json::Value;

/// Memory of a guest that holds the server.
const MEMORY: &str = "mem=768M";
/// How long a script may take.
const ANSWER: Duration = e2e::patience(120);
/// Within this time an error is a problem, on a machine that is not busy.
const NOTICED: Duration = e2e::patience(60);

struct Stage {
    guest: Guest,
    _scratch: Scratch,
}

impl Stage {
    fn new() -> Result<Self, String> {
        if let Some(why) = uml::server_unavailable() {
            return Err(why);
        }
        let namespace = uml::namespace(1)?;
        let scratch = Scratch::new("kernel-hardware");
        let kernel = uml::DEBIAN.as_ref();
        let mut guest = Guest::boot_with(kernel, MEMORY, &namespace, 0, scratch.path());
        guest.answers_within(ANSWER);
        let program = guest.share().join("plimsoll");
        std::fs::copy(e2e::server::binary(), program).expect("the server");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("uml/hardware.sh");
        std::fs::copy(script, guest.share().join("hardware.sh")).expect("the script");
        let mut stage = Self { guest, _scratch: scratch };
        stage.run("disks\nbegin_server");
        Ok(stage)
    }

    fn run(&mut self, script: &str) -> String {
        self.guest.run(&format!(". /mnt/host/hardware.sh\n{script}"))
    }

    fn json(&mut self, script: &str) -> Value {
        let text = self.run(script);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{script}: {e}: {text}"))
    }

    /// Names and values of the items of a node.
    fn items(&mut self, script: &str) -> Vec<(String, Value)> {
        let node = self.json(script);
        let items = node["items"].as_array().cloned().unwrap_or_default();
        let named = |item: Value| (item["name"].as_str().unwrap_or_default().to_owned(), item);
        items.into_iter().map(named).collect()
    }
}

fn value(item: &Value, property: &str) -> String {
    let all = item["properties"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["name"] == property);
    let value = one.map(|one| one["value"].clone()).unwrap_or_default();
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn a_medium_error_and_a_disk_that_is_pulled_are_problems() {
    let _turn = uml::turn();
    let mut stage = match Stage::new() {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-hardware", "{why}"),
    };
    let disks = stage.items("disk_nodes");
    assert_eq!(disks.len(), 2, "{disks:#?}");
    let first = disks.iter().find(|(_, disk)| value(disk, "devices") == "[\"sda\"]").expect("sda");
    let (name, serial) = (first.0.clone(), value(&first.1, "serial"));
    assert_eq!(value(&first.1, "model"), "Linux scsi_debug");
    assert!(!serial.is_empty() && name.ends_with(&serial), "{name} {serial}");
    assert!(stage.items("problems").is_empty());
    // A medium error.
    let start = Instant::now();
    stage.run("medium_errors\nread_bad\nno_errors\nuntil_problem disk-errors-");
    assert!(start.elapsed() < NOTICED, "{:?}", start.elapsed());
    println!("a medium error is a problem after {:.0} s", start.elapsed().as_secs_f64());
    let problems = stage.items("problems");
    let [(id, problem)] = problems.as_slice() else { panic!("{problems:#?}") };
    assert_eq!(*id, format!("disk-errors-{name}"));
    let what = value(problem, "what");
    assert!(what.contains(&format!("serial number {serial}")) && what.contains("sda"), "{what}");
    stage.run(&format!("act {id}\nuntil_none disk-errors-"));
    // Deleted, and found again: another device of the kernel may be the same disk.
    stage.run("pull\nuntil_problem disk-absent-");
    let problems = stage.items("problems");
    assert_eq!(problems[0].0, format!("disk-absent-{name}"), "{problems:#?}");
    let disks = stage.items("disk_nodes");
    let state = |disks: &[(String, Value)]| {
        disks.iter().find(|(one, _)| *one == name).map(|(_, disk)| value(disk, "state"))
    };
    assert_eq!((disks.len(), state(&disks).as_deref()), (2, Some("absent")));
    stage.run("put_back\nuntil_none disk-absent-");
    let disks = stage.items("disk_nodes");
    assert_eq!((disks.len(), state(&disks).as_deref()), (2, Some("present")));
    assert!(stage.items("problems").is_empty());
}
