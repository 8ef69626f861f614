//! Many takeovers of each kind with etcd itself, for `make test-long`: three members, clients that
//! write, and clients that hold locks. `ETCD` is the program; without it the stand-in is used.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use e2e::{is_root, process, skip};

use super::cluster::{ACCOUNTS, Cluster, LEFT, RIGHT};
use super::locks::Locks;
use super::power::{Cut, cuts};
use super::writer::{Version, Writer};

/// Takeovers of each kind, unless `PLIMSOLL_HEADS_ROUNDS` has another number.
const ROUNDS: usize = 20;

/// How many of each kind.
pub fn rounds() -> usize {
    std::env::var("PLIMSOLL_HEADS_ROUNDS").map_or(ROUNDS, |text| text.parse().expect("a number"))
}

/// A cluster with its clients.
struct Trial {
    cluster: Cluster,
    writers: [Writer; 2],
    locks: Locks,
    /// The longest wait of each writer in each round.
    outages: [Vec<Duration>; 2],
}

impl Trial {
    fn start() -> Result<Self, String> {
        if !is_root() {
            return Err("network namespaces and loop devices need root".to_owned());
        }
        let program = std::env::var_os("ETCD").map(PathBuf::from);
        let cluster = Cluster::with(&[ACCOUNTS], program.as_deref())?;
        let versions = [Version::V3, Version::V4];
        let writers = versions.map(|version| Writer::start(&cluster, ACCOUNTS, version));
        let locks = Locks::start(&cluster, ACCOUNTS);
        let mut trial = Self { cluster, writers, locks, outages: [Vec::new(), Vec::new()] };
        trial.settle("at first");
        trial.outages = [Vec::new(), Vec::new()];
        Ok(trial)
    }

    /// Waits until writers write and locks are held again.
    fn settle(&mut self, what: &str) {
        for (writer, outages) in self.writers.iter_mut().zip(&mut self.outages) {
            outages.push(writer.progress());
        }
        self.locks.progress(what);
        // Of the time after the grace period nothing is measured.
        for writer in &mut self.writers {
            writer.progress();
        }
    }

    fn end(mut self, what: &str) {
        for (writer, outages) in self.writers.iter().zip(&mut self.outages) {
            outages.sort();
            let median = outages.get(outages.len() / 2).map_or(0, Duration::as_millis);
            let longest = outages.last().map_or(0, Duration::as_millis);
            println!(
                "{what}: {} takeovers, outage of {}: median {median} ms, longest {longest} ms",
                outages.len(),
                writer.name()
            );
        }
        for writer in self.writers {
            writer.check(&self.cluster);
        }
        self.locks.end();
        self.cluster.end();
    }
}

/// Has `takeover` done to the owner in each round; the other head is the owner after it.
fn repeat(what: &str, mut takeover: impl FnMut(&mut Cluster, usize, usize)) {
    let mut trial = match Trial::start() {
        Ok(trial) => trial,
        Err(why) => skip!("heads-long", "{why}"),
    };
    for round in 0..rounds() {
        let (owner, other) = if round % 2 == 0 { (LEFT, RIGHT) } else { (RIGHT, LEFT) };
        takeover(&mut trial.cluster, owner, other);
        trial.cluster.wait_for_owner(ACCOUNTS, other);
        trial.settle(&format!("{what} {}", round + 1));
    }
    trial.end(what);
}

#[test]
fn planned() {
    repeat("planned", |cluster, _, other| cluster.command(other, &["takeover", ACCOUNTS.name]));
}

#[test]
fn killed() {
    repeat("kill -9", |cluster, owner, other| {
        // The head of the last round.
        if !cluster.is_running(other) {
            cluster.start_head(other);
        }
        cluster.wait_for_member(owner, other);
        let server = cluster.process(ACCOUNTS, owner);
        cluster.kill(owner);
        process::signal(server, libc::SIGKILL);
    });
}

#[test]
fn link_cut() {
    repeat("link cut", |cluster, owner, other| {
        cluster.set_link(other, "up");
        cluster.wait_for_member(owner, other);
        cluster.set_link(owner, "down");
    });
}

#[test]
fn stopped() {
    let mut last = None;
    repeat("SIGSTOP of head and server", |cluster, owner, other| {
        if let Some(server) = last.take() {
            cluster.wake(other, server);
            cluster.wait_until_gone(server);
        }
        cluster.wait_for_member(owner, other);
        let server = cluster.process(ACCOUNTS, owner);
        cluster.stop(owner, server);
        last = Some(server);
    });
}

/// One member of three can renew nothing: the owner ends before its lease is over. Without a
/// majority no head serves.
#[test]
fn etcd_without_majority() {
    let Some(program) = std::env::var_os("ETCD").map(PathBuf::from) else {
        skip!("heads-long", "ETCD names no program");
    };
    if !is_root() {
        skip!("heads-long", "network namespaces and loop devices need root");
    }
    let mut cluster = match Cluster::with(&[ACCOUNTS], Some(&program)) {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads-long", "{why}"),
    };
    let mut writer = Writer::start(&cluster, ACCOUNTS, Version::V4);
    writer.progress();
    for round in 0..rounds() {
        let server = cluster.wait_for_some_owner(ACCOUNTS);
        // Each is once the one that is left.
        let gone = [(round + 1) % 3, (round + 2) % 3];
        let began = Instant::now();
        for n in gone {
            cluster.members.as_mut().expect("members").kill(n);
        }
        cluster.wait_until_gone(server);
        println!("the server was gone {:?} after the majority", began.elapsed());
        for n in gone {
            let switch = &cluster.switch;
            cluster.members.as_mut().expect("members").begin(n, switch);
        }
        cluster.wait_for_some_owner(ACCOUNTS);
        let outage = writer.progress();
        println!("round {}: outage {} ms", round + 1, outage.as_millis());
    }
    writer.check(&cluster);
    cluster.end();
}

#[test]
fn power_cuts_in_each_phase() {
    for _ in 0..rounds().div_ceil(10) {
        if let Err(why) = cuts(&Cut::ALL) {
            skip!("heads-long", "{why}");
        }
    }
}
