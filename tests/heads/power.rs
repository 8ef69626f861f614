//! Power cuts as each phase of a takeover begins, on a disk that loses what was not flushed: all
//! that was acknowledged to clients is there when the other head serves, and open files are
//! reclaimed.

use std::time::{Duration, Instant};

use e2e::disk::Disk;
use e2e::{is_root, patience, skip};
use serde_json::json;

use super::cluster::{ACCOUNTS, Cluster, LEFT, RIGHT};
use super::progress;
use super::writer::{Version, Writer};

/// How long a phase may take to begin.
const SOON: Duration = patience(30);

/// Beginnings of phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The takeover is requested.
    Requested,
    /// The owner drains.
    HandsOver,
    /// The owner has ended its server.
    Ended,
    /// The other head has claimed it.
    Claimed,
    /// Its server is started.
    Starts,
    /// Its server serves.
    Serves,
}

impl Cut {
    /// In their order.
    pub const ALL: [Self; 6] =
        [Self::Requested, Self::HandsOver, Self::Ended, Self::Claimed, Self::Starts, Self::Serves];

    /// Whether it is there, or a later one is.
    fn has_begun(self, cluster: &Cluster, from: usize, to: usize) -> bool {
        let state = |head| cluster.observe(ACCOUNTS, head).unwrap_or_default();
        match self {
            Self::Requested => true,
            Self::HandsOver => state(from).0 != "owner",
            Self::Ended => !state(from).1,
            Self::Claimed => state(to).0 != "offline",
            Self::Starts => state(to).1,
            Self::Serves => state(to).0 == "owner",
        }
    }

    fn wait(self, cluster: &Cluster, from: usize, to: usize) {
        let until = Instant::now() + SOON;
        while !self.has_begun(cluster, from, to) {
            assert!(Instant::now() < until, "{self:?} does not begin within {SOON:?}");
            std::thread::yield_now();
        }
    }
}

/// Cuts the power in each of these, in turn; the head that was to take the resource over starts
/// first afterwards.
///
/// # Errors
/// What is missing here.
pub fn cuts(all: &[Cut]) -> Result<(), String> {
    if !is_root() {
        return Err("network namespaces and loop devices need root".to_owned());
    }
    let disk = Disk::new("xfs")?;
    let mut cluster = Cluster::on(Box::new(disk), &[ACCOUNTS], None)?;
    let versions = [Version::V3, Version::V4];
    let mut writers = versions.map(|version| Writer::start(&cluster, ACCOUNTS, version));
    progress(&mut writers, "the first writes");
    for (round, cut) in all.iter().enumerate() {
        let (from, to) = if round % 2 == 0 { (LEFT, RIGHT) } else { (RIGHT, LEFT) };
        let request = json!({ "command": "takeover", "resource": ACCOUNTS.name });
        let answer = cluster.ask(to, &request).expect("the head answers");
        assert_eq!(answer.get("error"), None, "{answer}");
        cut.wait(&cluster, from, to);
        cluster.cut_power();
        cluster.start_head(to);
        cluster.wait_for_owner(ACCOUNTS, to);
        progress(&mut writers, &format!("a power cut at {cut:?}"));
        cluster.start_head(from);
        cluster.wait_for_member(to, from);
    }
    for writer in writers {
        writer.check(&cluster);
    }
    cluster.end();
    Ok(())
}

#[test]
fn a_power_cut_in_a_takeover_loses_nothing_that_was_acknowledged() {
    if let Err(why) = cuts(&[Cut::HandsOver, Cut::Starts, Cut::Serves]) {
        skip!("heads-power", "{why}");
    }
}
