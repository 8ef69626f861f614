//! Power cuts at seeded moments of create, replace, convert and rollback. After each the pool is
//! the old one or the new one, or is offered for import, and has all that was acknowledged.

use std::fs;
use std::time::{Duration, Instant};

use base::random::{Random, SeededRandom};
use e2e::skip;
use e2e::uml;
use serde_json::Value;

use super::{Machine, REPAIRED, value};

/// Bytes of a block that a client has written.
const BLOCK: usize = 4096;
const POOL: &str = "/storage/pools/tank";

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
                "event begun\ncli 'storage pools create_pool name=fresh disks=/dev/ubde,/dev/ubdf'"
                    .to_owned()
            }
            Self::Replace => format!(
                "wipefs -aq {free}\nevent begun
                 cli 'storage pools tank replace member=2 disk={free}'\n{until}"
            ),
            // The repair begins as soon as a chunk has one copy, and may end with the balance. Data
            // only, as after writes without a leg: without copies of metadata on either leg no leg
            // could be read alone, and the pool would not be mounted.
            Self::Convert => format!(
                "event begun
                 btrfs balance start -f -dconvert=single /run/plimsoll-pools/tank >/dev/null || :
                 until_whole tank\n{until}"
            ),
            Self::Rollback => "event begun
                cli 'storage pools tank snapshots safe@base rollback confirm=safe --yes'"
                .to_owned(),
        };
        format!(". /mnt/host/pools.sh\n{work}\nevent done\n")
    }
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
            self.run("cli 'storage pools import_pool name=fresh'");
            "offered"
        } else {
            self.run(Work::Create.script("").as_str());
            "none"
        };
        assert_eq!(self.value("/storage/pools/fresh", "profile"), "mirror", "{what}");
        self.until("fresh", "healthy", REPAIRED);
        self.run("cli 'storage pools fresh destroy_data confirm=fresh --yes'");
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
                 cli \"storage pools tank snapshots safe@$(basename \"$one\") destroy_snapshot --yes\" >/dev/null
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
    let mut machine = match Machine::new("kernel-pool-cuts", &[64, 512, 512, 512, 512, 512]) {
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
         dd if=/dev/urandom of=$at/safe/data bs=1M count=40 conv=fsync 2>/dev/null
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
        // A tenth of them after the end of the work: its last step may be on no disk yet.
        let moment = whole.mul_f64(random.next_u64() as f64 / u64::MAX as f64 * 1.1);
        // The moment of the cut is what is tested.
        std::thread::sleep(moment);
        machine.guest.cut();
        drop((writer, task));
        machine.boot();
        machine.serve();
        let what = format!("cut {cut} (seed {seed}), {work:?} after {moment:.2?} of {whole:.2?}");
        found.push((work, machine.judge(work, &uuid, &what)));
    }
    let count = machine.has_all("at the end");
    println!("{cuts} cuts, {count} acknowledged blocks, none lost; after them: {found:?}");
    assert!(count > 0, "no client has written");
}
