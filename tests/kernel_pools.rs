//! Pools on a Linux kernel of which the disks and the power fail: a guest of User Mode Linux with
//! btrfs on disks in memory below the device mapper, and on files that outlive the guest.
//!
//! Guest side: `uml/pools.sh`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::skip;
use e2e::uml::{self, Guest};
use serde_json::Value;

#[path = "kernel_pools/cuts.rs"]
mod cuts;

/// Memory of a guest that holds the server and disks in memory.
const MEMORY: &str = "mem=1024M";
/// How long a script may take.
const ANSWER: Duration = e2e::patience(120);
/// Within this time a failure is in the state of the pool, on a machine that is not busy.
const NOTICED: Duration = e2e::patience(10);
/// How long a repair may take: one that fails is repeated after a minute.
const REPAIRED: Duration = e2e::patience(240);

/// A guest that can be booted again with the same disks.
struct Machine {
    guest: Guest,
    namespace: Namespace,
    disks: Vec<PathBuf>,
    scratch: Scratch,
}

impl Machine {
    fn new(name: &str, disks_mib: &[u64]) -> Result<Self, String> {
        if let Some(why) = uml::server_unavailable() {
            return Err(why);
        }
        let missing: Vec<_> = ["dmsetup", "mkfs.btrfs", "mkfs.ext4"]
            .into_iter()
            .filter(|one| !e2e::has(one))
            .collect();
        if !missing.is_empty() {
            return Err(format!("not installed: {}", missing.join(", ")));
        }
        let namespace = uml::namespace(1)?;
        let scratch = Scratch::new(name);
        let create = |(at, mib): (usize, &u64)| {
            let path = scratch.path().join(format!("disk{at}"));
            let file = std::fs::File::create(&path).expect("a disk");
            file.set_len(mib << 20).expect("a size");
            path
        };
        let disks: Vec<PathBuf> = disks_mib.iter().enumerate().map(create).collect();
        let guest = boot(&namespace, &scratch, &disks);
        std::fs::copy(e2e::server::binary(), guest.share().join("plimsoll")).expect("the server");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("uml/pools.sh");
        std::fs::copy(script, guest.share().join("pools.sh")).expect("the script");
        Ok(Self { guest, namespace, disks, scratch })
    }

    /// Boots it after its power was cut.
    fn boot(&mut self) {
        self.guest = boot(&self.namespace, &self.scratch, &self.disks);
    }

    fn run(&mut self, script: &str) -> String {
        self.guest.run(&format!(". /mnt/host/pools.sh\n{script}"))
    }

    fn node(&mut self, path: &str) -> Value {
        let text = self.run(&format!("api '/nodes{path}'"));
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}: {text}"))
    }

    fn value(&mut self, path: &str, property: &str) -> Value {
        value(&self.node(path), property)
    }

    /// Waits until the state of the pool shows a failure of this time.
    fn until_not_healthy(&mut self, failed: Instant) {
        let is_bad = |state: Value| ["degraded", "repairing"].iter().any(|one| state == **one);
        while !is_bad(self.value("/storage/pools/tank", "state")) {
            assert!(failed.elapsed() < NOTICED, "healthy after {:?}", failed.elapsed());
        }
    }

    /// Waits until a pool has this state and no task; the time that it took.
    fn until(&mut self, pool: &str, state: &str, deadline: Duration) -> Duration {
        let start = Instant::now();
        loop {
            let node = self.node(&format!("/storage/pools/{pool}"));
            let runs = value(&node, "task") != Value::Null && state == "healthy";
            if value(&node, "state") == state && !runs {
                return start.elapsed();
            }
            assert!(start.elapsed() < deadline, "not {state}: {node:#}");
        }
    }
}

fn boot(namespace: &Namespace, scratch: &Scratch, disks: &[PathBuf]) -> Guest {
    let kernel = uml::DEBIAN.as_ref();
    let mut guest = Guest::boot_with_disks(kernel, MEMORY, namespace, 0, scratch.path(), disks);
    guest.answers_within(ANSWER);
    guest
}

fn value(node: &Value, property: &str) -> Value {
    let all = node["properties"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["name"] == property);
    one.map(|one| one["value"].clone()).unwrap_or_default()
}

/// A share that is not on the pool answers as before.
const OTHER: &str = "dd if=/dev/urandom of=/mnt/other/x bs=64k count=32 conv=fsync 2>/dev/null
    echo 3 >/proc/sys/vm/drop_caches
    cksum /mnt/other/x >/dev/null
    ls /mnt/other >/dev/null";

/// What clients do with the share on the pool.
const WRITES: &str = "dd if=/dev/urandom of=/mnt/safe/new bs=64k count=64 conv=fsync 2>/dev/null";
const READS: &str = "read_all /run/plimsoll-pools/tank/safe/file | cmp - /mnt/host/right";

#[test]
fn a_leg_that_fails_reads_or_writes_or_hangs() {
    let _turn = uml::turn();
    let mut machine = match Machine::new("kernel-pools", &[]) {
        Ok(machine) => machine,
        Err(why) => skip!("kernel-pools-legs", "{why}"),
    };
    machine.run(
        "mkdir -p /mnt/state /mnt/t && mount -t tmpfs none /mnt/state && chmod 777 /mnt/t
         legs\nbegin_server
         cli 'storage pools create_pool name=tank disks=/dev/dm-1,/dev/dm-3' \
             'shares default create safe pool=tank root_mode=777' commit \
             'shares default create other directory=/mnt/t/other make_directory=true root_mode=777' commit
         export_of safe\nexport_of other
         dd if=/dev/urandom of=/mnt/safe/file bs=64k count=256 conv=fsync 2>/dev/null
         cksum </mnt/safe/file >/mnt/host/right",
    );
    machine.until("tank", "healthy", REPAIRED);
    for (fault, traffic) in [("hangs", WRITES), ("writes", WRITES), ("reads", READS)] {
        fails(&mut machine, fault, traffic);
    }
}

fn fails(machine: &mut Machine, fault: &str, traffic: &str) {
    let before = Instant::now();
    machine.run(OTHER);
    let usual = before.elapsed();
    machine.run(&format!("fault {fault}"));
    let failed = Instant::now();
    let work = machine.guest.begin(&format!(". /mnt/host/pools.sh\n{traffic}"));
    machine.until_not_healthy(failed);
    let noticed = failed.elapsed();
    let reason = machine.value("/storage/pools/tank", "reason");
    let reason = reason.as_str().unwrap_or_default().to_owned();
    // A repair may have begun already of what has failed.
    assert!(fault != "hangs" || reason.contains("dm-3) has not answered"), "{reason}");
    let before = Instant::now();
    machine.run(OTHER);
    let meanwhile = before.elapsed();
    machine.run("fault works");
    let (status, log) = machine.guest.end(&work);
    assert_eq!(status, 0, "{fault}: {log}");
    machine.run("echo 3 >/proc/sys/vm/drop_caches\ncksum </mnt/safe/file | cmp - /mnt/host/right");
    let healed = machine.until("tank", "healthy", REPAIRED);
    // What is healthy is so on both legs.
    let scrubbed = machine.run("btrfs scrub start -B /run/plimsoll-pools/tank");
    assert!(scrubbed.contains("no errors found"), "{fault}: {scrubbed}");
    println!(
        "a leg that {fault}: degraded after {:.1} s ({reason}); another share {:.1} s, before \
         {:.1} s; healthy {:.0} s after the leg works",
        noticed.as_secs_f64(),
        meanwhile.as_secs_f64(),
        usual.as_secs_f64(),
        healed.as_secs_f64()
    );
}
