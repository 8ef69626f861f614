//! The pages of pools on a real server: a mirror is created, loses a disk, is mounted without it,
//! and gets another one, all of it in a browser. With `SHOTS_DIR` the pages are photographed.

use std::fs::File;
use std::process::Command;
use std::time::Duration;

use e2e::api::{Api, wait_for};
use e2e::browser::{self, Browser, PASSWORD};
use e2e::loops::tool;
use e2e::pool_disk::{PoolDisk, value};
use e2e::scratch::Scratch;
use e2e::{patience, skip};
use serde_json::{Value, json};

/// How long a task of a pool of this size may take.
const TASK: Duration = patience(120);

/// Further disks.
struct Disks {
    scratch: Scratch,
    devices: Vec<String>,
}

impl Disks {
    fn add(&mut self, mib: u64) -> Result<(), String> {
        let image = self.scratch.path().join(format!("more{}", self.devices.len()));
        let file = File::create(&image).and_then(|file| file.set_len(mib << 20));
        file.map_err(|e| e.to_string())?;
        let device = tool(Command::new("losetup").args(["--find", "--show"]).arg(&image))?;
        self.devices.push(device.trim().to_owned());
        Ok(())
    }

    /// The title of a disk on the pages.
    fn title(device: &str) -> &str {
        device.trim().trim_start_matches("/dev/")
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        for device in &self.devices {
            let _gone = tool(Command::new("btrfs").args(["device", "scan", "--forget", device]));
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

/// A browser on the pages of a pool.
struct Page(Browser);

impl Page {
    fn go(&mut self, path: &str) {
        let stay = json!({ "do": "stay", "path": path });
        self.0.ask(&stay).unwrap_or_else(|e| panic!("{path}: {e}"));
    }

    fn steps(&mut self, steps: &Value) {
        let all = json!({ "do": "use", "steps": steps });
        self.0.ask(&all).unwrap_or_else(|e| panic!("{steps}: {e}"));
    }

    fn looks(&mut self, path: &str, name: &str, words: &[&str]) {
        let looks = json!({ "do": "looks", "path": path, "name": name, "words": words });
        self.0.ask(&looks).unwrap_or_else(|e| panic!("{path}: {e}"));
    }
}

#[test]
fn a_mirror_is_created_and_a_lost_disk_replaced_from_the_page_alone() {
    if let Some(what) = browser::missing() {
        skip!("pool-page", "{what}");
    }
    let bed = match PoolDisk::new("page", 384) {
        Ok(bed) => bed,
        Err(why) => skip!("pool-page", "{why}"),
    };
    let mut more = Disks { scratch: Scratch::new("page-disks"), devices: Vec::new() };
    for _ in 0..2 {
        more.add(384).expect("a disk");
    }
    let (mut server, api) = bed.start();
    let mut page = Page(Browser::start());
    page.0.open(&server, "admin", PASSWORD);
    let (first, second) = (Disks::title(&bed.device), Disks::title(&more.devices[0]).to_owned());
    page.go("/storage/pools");
    page.steps(&json!([{ "press": "Create pool", "opens": true },
        { "fill": "Name", "with": bed.pool }, { "choose": first }, { "choose": second },
        { "press": "Create" }, { "shows": bed.pool }]));
    let pool = bed.node();
    assert_eq!(value(&api, &pool, "profile"), "mirror");
    assert_eq!(value(&api, &pool, "state"), "healthy");
    page.looks("/storage/pools", "pools-healthy", &[&bed.pool, "healthy"]);
    page.looks(&pool, "pool-healthy", &[&second, "healthy"]);
    // The disk is lost while the server is down.
    server.stop();
    drop(server);
    let at = bed.directory();
    wait_for("the pool is not in use", TASK, || {
        tool(Command::new("umount").arg(&at)).ok().map(drop)
    });
    let lost = more.devices.remove(0);
    tool(Command::new("btrfs").args(["device", "scan", "--forget", &lost])).expect("forgotten");
    tool(Command::new("losetup").args(["--detach", &lost])).expect("detached");
    is_replaced(&bed, &mut page, Disks::title(&more.devices[0]));
    tool(Command::new("umount").args(["-l", &at])).expect("unmounted");
}

/// The pool is mounted without its lost disk, which is replaced.
fn is_replaced(bed: &PoolDisk, page: &mut Page, new: &str) {
    let (server, api) = bed.start();
    let pool = bed.node();
    page.0.open(&server, "admin", PASSWORD);
    page.looks("/storage/pools", "pools-failed", &[&bed.pool, "failed"]);
    page.go(&pool);
    page.steps(&json!([{ "shows": "failed" }, { "press": "Mount", "opens": true },
        { "choose": "Without missing disks" }, { "press": "Mount" }]));
    until(&api, &pool, "degraded");
    page.looks(&pool, "pool-degraded", &["degraded", "missing"]);
    page.go(&pool);
    page.steps(&json!([{ "press": "Replace", "of": "missing", "opens": true },
        { "choose": new }, { "press": "Replace" }, { "shows": new }]));
    until(&api, &pool, "healthy");
    page.looks(&pool, "pool-replaced", &["healthy", new]);
    assert_eq!(value(&api, &pool, "without_copies"), json!(0));
    assert_eq!(page.0.ask(&json!({ "do": "complaints" })), Ok(json!([])));
}
