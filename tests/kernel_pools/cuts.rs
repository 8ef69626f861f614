//! Power cuts at seeded moments of create, replace, convert and rollback. After each the pool is
//! the old one or the new one, or is offered for import, and has all that was acknowledged.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use base::random::{Random, SeededRandom};
use e2e::api::wait_for;
use e2e::skip;
use e2e::uml;
use serde_json::Value;

use super::{ANSWER, Machine, REPAIRED, value};

/// Bytes of a block that a client has written.
const BLOCK: usize = 4096;
const POOL: &str = "/storage/pools/tank";
/// The magic number of btrfs, and where it is on a disk.
const MAGIC: (&[u8; 8], u64) = (b"_BHRfS_M", 0x10040);
/// The latest cut after the end of the work: its last step may be on no disk yet.
const AFTER: Duration = Duration::from_millis(300);

/// What is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Create,
    Replace,
    Convert,
    Rollback,
}

const ALL: [Work; 4] = [Work::Create, Work::Replace, Work::Convert, Work::Rollback];

impl Work {
    /// Its script: an event when it begins, and one when it has ended.
    fn script(self, free: &str) -> String {
        let until = "until_gone tank";
        let work = match self {
            Self::Create => {
                let disks = r#"["/dev/ubde","/dev/ubdf"]"#;
                let create =
                    act("", "create_pool", &format!(r#"{{"name":"fresh","disks":{disks}}}"#));
                format!("event begun\n{create}")
            }
            Self::Replace => {
                let replace = format!(r#"{{"member":"2","disk":"{free}"}}"#);
                let replace = act("/tank", "replace", &replace);
                format!("wipefs -aq {free}\nevent begun\n{replace}\n{until}")
            }
            // The repair begins as soon as a chunk has one copy, and may end with the balance.
            // Without copies of metadata on either leg no leg can be read alone.
            Self::Convert => format!(
                "event begun
                 btrfs balance start -f -dconvert=single -mconvert=single \\
                     /run/plimsoll-pools/tank >/dev/null || :
                 until_whole tank\n{until}"
            ),
            Self::Rollback => {
                let confirm = r#"{"confirm":"safe"}"#;
                format!("event begun\n{}", act("/tank/snapshots/safe@base", "rollback", confirm))
            }
        };
        format!(". /mnt/host/pools.sh\n{work}\nevent done\n")
    }
}

/// When the power is cut.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// This long after the work has begun.
    Begun(Duration),
    /// When the disks of a new pool have a file system, which is not recorded yet.
    Made,
    /// This long after the work was acknowledged.
    Done(Duration),
}

impl Moment {
    /// One of them, in equal parts.
    fn of(random: &mut SeededRandom, work: Work, whole: Duration) -> Self {
        let part = random.next_u64() as f64 / u64::MAX as f64;
        match random.next_u64() % 3 {
            0 => Self::Done(AFTER.mul_f64(part)),
            1 if work == Work::Create => Self::Made,
            _ => Self::Begun(whole.mul_f64(part)),
        }
    }
}

/// Whether a disk has a btrfs.
fn has_btrfs(disk: &Path) -> bool {
    let mut magic = [0; 8];
    let read = File::open(disk).and_then(|disk| disk.read_exact_at(&mut magic, MAGIC.1));
    read.is_ok() && magic == *MAGIC.0
}

/// An action of a node below the pools, for a script.
fn act(node: &str, action: &str, parameters: &str) -> String {
    format!("act '/storage/pools{node}' {action} '{parameters}' >/dev/null")
}

impl Machine {
    /// The disk of the three that the pool does not have.
    fn free_disk(&mut self) -> String {
        let node = self.node(&format!("{POOL}/disks?depth=1"));
        let items = node["items"].as_array().cloned().unwrap_or_default();
        let used: Vec<Value> = items.iter().map(|item| value(item, "device")).collect();
        let free =
            ["ubdb", "ubdc", "ubdd"].into_iter().find(|one| !used.iter().any(|at| at == one));
        format!("/dev/{}", free.unwrap_or_else(|| panic!("{node:#}")))
    }

    /// Waits for the moment of a cut. Whether the work was acknowledged before it.
    fn wait_for(&mut self, moment: Moment) -> bool {
        // The moment of the cut is what is tested.
        match moment {
            Moment::Begun(after) => std::thread::sleep(after),
            Moment::Made => {
                let new = [4, 5].map(|at| self.disks[at].clone());
                let made = || new.iter().all(|disk| has_btrfs(disk)).then_some(());
                wait_for("a file system on the new disks", ANSWER, made);
            }
            Moment::Done(after) => {
                self.guest.event("done");
                std::thread::sleep(after);
                return true;
            }
        }
        self.guest.forget("done")
    }

    /// Begins a server, and what clients write.
    fn serve(&mut self) {
        self.run("mkdir -p /mnt/state && mount /dev/ubda /mnt/state\nbegin_server");
    }

    /// Has the work done without a cut; how long it took.
    fn undisturbed(&mut self, work: Work) -> Duration {
        let free = self.free_disk();
        let task = self.guest.begin(&work.script(&free));
        self.guest.event("begun");
        let start = Instant::now();
        self.guest.event("done");
        let took = start.elapsed();
        let (status, log) = self.guest.end(&task);
        assert_eq!(status, 0, "{work:?}: {log}");
        took
    }

    /// All blocks that were acknowledged are in the file of the pool, in each of its copies.
    fn has_all(&mut self, what: &str) -> usize {
        self.run(
            "cp /run/plimsoll-pools/tank/log/blocks /mnt/host/blocks || touch /mnt/host/blocks",
        );
        let share = self.guest.share();
        let count = fs::read_to_string(share.join("acknowledged")).unwrap_or_default();
        let count: usize = count.trim().parse().unwrap_or(0);
        let bytes = fs::read(share.join("blocks")).expect("copied");
        assert!(bytes.len() >= count * BLOCK, "{what}: {} bytes, {count} blocks", bytes.len());
        for (at, block) in bytes.chunks(BLOCK).take(count).enumerate() {
            let right = format!("{at:08}\n").repeat(BLOCK / 9 + 1);
            assert!(block == &right.as_bytes()[..BLOCK], "{what}: block {at} of {count} is wrong");
        }
        count
    }

    /// Checks the state after a cut, and makes it that of before the work. What was found.
    fn judge(&mut self, work: Work, uuid: &Value, what: &str) -> &'static str {
        self.until("tank", "healthy", REPAIRED);
        assert_eq!(self.value(POOL, "uuid"), *uuid, "{what}");
        self.has_all(what);
        let usage = self.run("btrfs filesystem df /run/plimsoll-pools/tank");
        let mut single = usage.lines().filter(|line| line.contains("single"));
        assert!(single.all(|line| line.starts_with("GlobalReserve")), "{what}: {usage}");
        match work {
            Work::Create => self.judge_created(what),
            Work::Rollback => self.judge_rolled_back(what),
            Work::Replace | Work::Convert => "the pool",
        }
    }

    fn judge_created(&mut self, what: &str) -> &'static str {
        let node = self.node("/storage/pools?depth=1");
        let items = node["items"].as_array().cloned().unwrap_or_default();
        let is_offered = value(&node, "importable").to_string().contains("fresh");
        let found = if items.iter().any(|item| item["name"] == "fresh") {
            "new"
        } else if is_offered {
            self.run(&act("", "import_pool", r#"{"name":"fresh"}"#));
            "offered"
        } else {
            self.run(Work::Create.script("").as_str());
            "none"
        };
        assert_eq!(self.value("/storage/pools/fresh", "profile"), "mirror", "{what}");
        self.until("fresh", "healthy", REPAIRED);
        self.run(&act("/fresh", "destroy_data", r#"{"confirm":"fresh"}"#));
        found
    }

    fn judge_rolled_back(&mut self, what: &str) -> &'static str {
        let top = "/run/plimsoll-pools/tank";
        let marker = self.run(&format!("cat {top}/safe/marker"));
        let before = self.run(&format!(
            "ls -A {top}/.snapshots | grep '^.rollback' || :
             for one in {top}/.snapshots/safe/before-rollback-*; do
                 [ -d \"$one\" ] || continue
                 cat \"$one/marker\"
                 act \"/storage/pools/tank/snapshots/safe@$(basename \"$one\")\" destroy_snapshot '{{}}' >/dev/null
             done",
        ));
        let found = match (marker.trim(), before.trim()) {
            ("base", "new") => "new",
            ("new", "") => "old",
            other => panic!("{what}: {other:?}"),
        };
        self.run(&format!("echo new >{top}/safe/marker\nsync {top}/safe/marker"));
        found
    }
}

#[test]
fn a_power_cut_leaves_the_old_pool_or_the_new_one() {
    let _turn = uml::turn();
    let mut machine = match Machine::new("kernel-pool-cuts", &[64, 384, 384, 384, 256, 256]) {
        Ok(machine) => machine,
        Err(why) => skip!("kernel-pool-cuts", "{why}"),
    };
    let cuts = e2e::env_number("PLIMSOLL_POOL_CUTS", 5);
    let seed = e2e::env_number("PLIMSOLL_POOL_SEED", 1);
    let mut random = SeededRandom::new(seed);
    machine.run("mkfs.ext4 -qF /dev/ubda");
    machine.serve();
    machine.run(
        "cli 'storage pools create_pool name=tank disks=/dev/ubdb,/dev/ubdc' \
             'shares default create log pool=tank root_mode=777' commit \
             'shares default create safe pool=tank root_mode=777' commit
         at=/run/plimsoll-pools/tank
         echo base >$at/safe/marker
         dd if=/dev/urandom of=$at/safe/data bs=1M count=16 conv=fsync 2>/dev/null
         cli 'storage pools tank create_snapshot share=safe name=base'
         echo new >$at/safe/marker\nsync $at/safe/marker",
    );
    let uuid = machine.value(POOL, "uuid");
    let took: Vec<(Work, Duration)> =
        ALL.into_iter().map(|work| (work, machine.undisturbed(work))).collect();
    machine.judge(Work::Create, &uuid, "undisturbed");
    machine.judge(Work::Rollback, &uuid, "undisturbed");
    println!("seed {seed}; undisturbed: {took:.1?}");
    let mut found = Vec::new();
    for cut in 0..cuts {
        let (work, whole) = took[(cut % 4) as usize];
        let free = machine.free_disk();
        let writer = machine.guest.begin(". /mnt/host/pools.sh\nwriter");
        machine.guest.event("writing");
        let task = machine.guest.begin(&work.script(&free));
        machine.guest.event("begun");
        let moment = Moment::of(&mut random, work, whole);
        let is_done = machine.wait_for(moment);
        machine.guest.cut();
        drop((writer, task));
        let start = Instant::now();
        machine.boot();
        machine.serve();
        let served = start.elapsed();
        let what = format!("cut {cut} (seed {seed}), {work:?} {moment:.2?} of {whole:.2?}");
        let state = machine.judge(work, &uuid, &what);
        let judged = start.elapsed();
        let is_new = matches!(work, Work::Replace | Work::Convert) || state == "new";
        assert!(!is_done || is_new, "{what}: {state}, and it was acknowledged");
        println!("{what}: {state}; it served after {served:.1?}, judged after {judged:.1?}");
        found.push((work, state));
    }
    let count = machine.has_all("at the end");
    println!("{cuts} cuts, {count} acknowledged blocks, none lost; after them: {found:?}");
    assert!(count > 0, "no client has written");
}
