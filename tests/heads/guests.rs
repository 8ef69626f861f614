//! Linux clients in guests, over the address of a resource: one writes, by NFSv3 with locks of NLM
//! and by NFSv4.1, each file locked all the time; the other one tries to get these locks all the
//! time. Takeovers are planned, by `kill -9` of head and server, and by cutting the link of the
//! head.

use std::time::{Duration, Instant};

use e2e::loops::LoopDisk;
use e2e::uml::{self, Guest, Task};
use e2e::{has, patience, process, skip};

use super::cluster::{ACCOUNTS, Cluster, LEFT, RIGHT, Setup};
use super::long::rounds;

/// The lease, and with it the grace period: a Linux client that finds no server tries again after
/// some seconds.
const NFS_LEASE: &str = "15";
/// What a guest needs to lock over NFSv3, and the way to the heads.
const NEEDS: &str = "
ip route add 10.77.0.0/24 via 10.0.2.2
mkdir -p /run/rpcbind /mnt/host/statd/sm /mnt/host/statd/sm.bak
mount --bind /mnt/host/statd /var/lib/nfs
rpcbind
rpc.statd --no-notify
";
/// Mounts, with their options: a client that gives up would hide an error.
const MOUNTS: [(&str, &str); 2] = [("three", "vers=3,lock,hard"), ("four", "vers=4.1,hard")];
/// Bytes of a block of `writer.c`.
const BLOCK: usize = 4096;
/// Events of a writer after a takeover until it counts as running: 16 blocks each.
const EVENTS: usize = 3;

/// How long a writer may take to write again, and how often it is looked at.
const SOON: Duration = patience(90);
const EVERY: Duration = Duration::from_millis(5);

/// How a resource is taken over from a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Planned,
    Killed,
    LinkCut,
}

impl Kind {
    fn take_over(self, cluster: &mut Cluster, owner: usize, other: usize) {
        match self {
            Self::Planned => {
                cluster.command(other, &["takeover", ACCOUNTS.name, "--wait", "0"]);
            }
            Self::Killed => {
                let server = cluster.process(ACCOUNTS, owner);
                cluster.kill(owner);
                process::signal(server, libc::SIGKILL);
            }
            Self::LinkCut => cluster.set_link(owner, "down"),
        }
        cluster.wait_for_owner(ACCOUNTS, other);
    }

    /// Makes both heads members again.
    fn repair(self, cluster: &mut Cluster, gone: usize, owner: usize) {
        match self {
            Self::Planned => {}
            Self::Killed => cluster.start_head(gone),
            Self::LinkCut => cluster.set_link(gone, "up"),
        }
        cluster.wait_for_member(owner, gone);
        cluster.wait("its clients reach it again", || cluster.reasons(ACCOUNTS, gone).1.is_empty());
    }
}

/// The cluster with both guests.
struct Trial {
    cluster: Cluster,
    one: Guest,
    two: Guest,
    writers: Vec<Task>,
    rivals: Vec<Task>,
    _scratch: e2e::scratch::Scratch,
}

fn boot(cluster: &Cluster, number: u8, scratch: &e2e::scratch::Scratch) -> Guest {
    let mut guest = Guest::boot(&cluster.switch, number, scratch.path());
    for program in ["locks", "writer"] {
        guest.install(program);
    }
    guest.run(NEEDS);
    let (ip, export) = (ACCOUNTS.address().ip(), ACCOUNTS.export());
    for (name, options) in MOUNTS {
        guest.run(&format!(
            "mkdir -p /mnt/{name}\n\
             mount -t nfs -o {options},proto=tcp,noresvport {ip}:{export} /mnt/{name}"
        ));
    }
    guest
}

impl Trial {
    fn start() -> Result<Self, String> {
        if let Some(why) = uml::unavailable() {
            return Err(why);
        }
        if let Some(tool) = ["rpcbind", "rpc.statd"].iter().find(|tool| !has(tool)) {
            return Err(format!("not installed: {tool}"));
        }
        let scratch = e2e::scratch::Scratch::new("heads-guests");
        let setup = Setup { guests: 2, nfs_lease: NFS_LEASE, ..Setup::default() };
        let cluster = Cluster::set_up(Box::new(LoopDisk::with("xfs")?), &[ACCOUNTS], &setup)?;
        let [mut one, mut two] = [0, 1].map(|number| boot(&cluster, number, &scratch));
        let writers: Vec<Task> = MOUNTS
            .iter()
            .map(|(name, _)| one.begin(&format!("writer {name} /mnt/{name}/{name} /tmp/stop")))
            .collect();
        MOUNTS.iter().for_each(|(name, _)| drop(one.event(&format!("{name} at"))));
        let rival = |(name, _): &(&str, &str)| {
            two.begin(&format!("locks rival-{name} fcntl write until /mnt/{name}/{name} 0 0"))
        };
        let rivals = MOUNTS.iter().map(rival).collect();
        Ok(Self { cluster, one, two, writers, rivals, _scratch: scratch })
    }

    /// Waits until each writer has written for a while; how long after the beginning each wrote
    /// again, at most.
    fn progress(&mut self, began: Instant) -> Vec<Duration> {
        // Those of before the takeover.
        for (name, _) in MOUNTS {
            self.one.forget(&format!("{name} at"));
        }
        let (until, mut waits) = (Instant::now() + SOON, [None; MOUNTS.len()]);
        while waits.iter().any(Option::is_none) {
            assert!(Instant::now() < until, "{waits:?}: {}", self.one.said());
            for ((name, _), wait) in MOUNTS.iter().zip(&mut waits) {
                if wait.is_none() && self.one.forget(&format!("{name} at")) {
                    *wait = Some(began.elapsed());
                }
            }
            std::thread::sleep(EVERY);
        }
        for (name, _) in MOUNTS {
            (1..EVENTS).for_each(|_| drop(self.one.event(&format!("{name} at"))));
        }
        self.check_rivals();
        waits.into_iter().flatten().collect()
    }

    /// No lock was granted.
    fn check_rivals(&mut self) {
        for (name, _) in MOUNTS {
            let granted = self.two.forget(&format!("rival-{name} granted"));
            assert!(!granted, "{name}: the lock was lost\n{}", self.two.said());
            let failed = self.two.forget(&format!("rival-{name} failed"));
            assert!(!failed, "{name}: {}", self.two.said());
        }
    }

    /// A takeover; how long after its beginning each wrote again.
    fn round(&mut self, kind: Kind, owner: usize, other: usize) -> Vec<Duration> {
        let began = Instant::now();
        kind.take_over(&mut self.cluster, owner, other);
        let waits = self.progress(began);
        let phases = self.cluster.last_phases(ACCOUNTS, other);
        println!("{kind:?}: NFSv3 wrote again after {:?}, NFSv4.1 after {:?}", waits[0], waits[1]);
        println!("{kind:?}: phases of the takeover in ms: {phases}");
        kind.repair(&mut self.cluster, owner, other);
        waits
    }

    /// Ends the writers: no error, all blocks there, and the locks are free then.
    fn end(mut self) {
        self.check_rivals();
        self.one.run("touch /tmp/stop");
        for ((name, _), task) in MOUNTS.iter().zip(&self.writers) {
            let (status, log) = self.one.end(task);
            assert_eq!(status, 0, "{name}: {log}\n{}", self.one.said());
            let count = log.trim().strip_prefix("wrote ").and_then(|n| n.parse::<usize>().ok());
            let count = count.unwrap_or_else(|| panic!("{name}: {log}"));
            let content = self.cluster.content(ACCOUNTS, name);
            assert_eq!(content.len(), count * BLOCK, "{name}");
            for (n, block) in content.chunks(BLOCK).enumerate() {
                let word = (n as u64).to_ne_bytes();
                assert!(
                    block.as_chunks::<8>().0.iter().all(|one| *one == word),
                    "{name}: block {n}"
                );
            }
            println!("{name}: {count} blocks, all there");
        }
        for task in &self.rivals {
            assert_eq!(self.two.end(task).0, 0, "the lock is free: {}", self.two.said());
        }
        drop((self.one, self.two));
        self.cluster.end();
    }
}

/// Prints the outages of one kind.
fn report(kind: Kind, outages: &[(Kind, Vec<Duration>)]) {
    for (n, (name, _)) in MOUNTS.iter().enumerate() {
        let of_kind = outages.iter().filter(|(one, _)| *one == kind);
        let mut waits: Vec<u128> = of_kind.map(|(_, waits)| waits[n].as_millis()).collect();
        waits.sort_unstable();
        let (count, median) = (waits.len(), waits[waits.len() / 2]);
        let longest = waits.last().copied().unwrap_or_default();
        let times = format!("median {median} ms, longest {longest} ms");
        println!("{kind:?}: {count} takeovers, outage of {name}: {times}");
    }
}

fn run(kinds: &[Kind], rounds: usize) {
    let _turn = uml::turn();
    let mut trial = match Trial::start() {
        Ok(trial) => trial,
        Err(why) => skip!("heads-guests", "{why}"),
    };
    let (mut owner, mut other) = (LEFT, RIGHT);
    let mut outages = Vec::new();
    for _ in 0..rounds {
        for kind in kinds {
            outages.push((*kind, trial.round(*kind, owner, other)));
            (owner, other) = (other, owner);
        }
    }
    trial.end();
    kinds.iter().for_each(|kind| report(*kind, &outages));
}

/// One of each, or as many as `PLIMSOLL_HEADS_OF_EACH` has: for the outage of an optimised program
/// on a quiet machine.
#[test]
fn one_of_each() {
    let of_each = std::env::var("PLIMSOLL_HEADS_OF_EACH");
    let of_each = of_each.map_or(1, |text| text.parse().expect("a number"));
    run(&[Kind::Planned, Kind::Killed, Kind::LinkCut], of_each);
}

#[test]
fn long_planned() {
    run(&[Kind::Planned], rounds());
}

#[test]
fn long_killed() {
    run(&[Kind::Killed], rounds());
}

#[test]
fn long_link_cut() {
    run(&[Kind::LinkCut], rounds());
}
