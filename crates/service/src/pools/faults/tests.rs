//! Problems of pools.

use host_pools::btrfs::Scrubbed;
use host_pools::profile::Profile;
use host_pools::quota::Accounting;
use host_pools::request::{FileSystem, Identity, Kind, Phase, TaskStatus};
use host_pools::state::{Errors, Member};

use super::*;

/// A pool of two disks.
pub fn pool(profile: Profile, state: State, missing: usize) -> PoolStatus {
    let member = |devid: u64| MemberStatus {
        identity: Identity {
            devid,
            serial: format!("S{devid}"),
            device: format!("sd{devid}"),
            ..Identity::default()
        },
        member: Member {
            devid,
            missing: devid as usize <= missing,
            size: 1 << 30,
            ..Member::default()
        },
        ..MemberStatus::default()
    };
    PoolStatus {
        name: "tank".to_owned(),
        file_system: FileSystem::Btrfs,
        uuid: "0-1".to_owned(),
        profile: Some(profile),
        directory: "/run/plimsoll-pools/tank".to_owned(),
        state,
        reason: Some("the disk serial number S1 is missing".to_owned()),
        members: (1..=3).map(member).collect(),
        capacity: 1 << 30,
        used: 1 << 20,
        available: 1 << 29,
        used_data: 3 << 18,
        used_snapshots: None,
        accounting: Accounting::Simple,
        usage: Vec::new(),
        scrubbed: Scrubbed::default(),
        without_copies: 0,
        mount_degraded: false,
        scrub_every_days: None,
        task: None,
        history: Vec::new(),
        shares: Vec::new(),
        snapshots: vec![("s".to_owned(), "a@b".to_owned(), 5)],
    }
}

#[test]
fn severity_is_by_the_redundancy_that_is_left() {
    let of = |profile, state, missing| {
        faults(&pool(profile, state, missing)).first().map(|fault| fault.severity)
    };
    assert_eq!(of(Profile::Mirror, State::Healthy, 0), None);
    assert_eq!(of(Profile::Mirror, State::Degraded, 1), Some(Severity::Major));
    assert_eq!(of(Profile::Copies3, State::Degraded, 1), Some(Severity::Minor));
    assert_eq!(of(Profile::Copies3, State::Degraded, 2), Some(Severity::Major));
    assert_eq!(of(Profile::Mirror, State::Failed, 2), Some(Severity::Critical));
}

#[test]
fn the_remedy_is_an_action_or_to_wait() {
    let mut degraded = pool(Profile::Mirror, State::Degraded, 1);
    let remedy = |pool: &PoolStatus| faults(pool)[0].remedy.clone();
    assert_eq!(faults(&degraded)[0].id, "pool-tank");
    assert!(remedy(&degraded).contains("pools tank replace"), "{}", remedy(&degraded));
    degraded.task = Some(TaskStatus {
        kind: Kind::Replace,
        phase: Phase::Convert,
        thousandths: 5,
        seconds_left: None,
        started_s: 0,
    });
    assert!(remedy(&degraded).contains("Wait"), "{}", remedy(&degraded));
}

#[test]
fn errors_of_a_disk_name_it_by_its_serial_number() {
    let mut healthy = pool(Profile::Mirror, State::Healthy, 0);
    healthy.members[1].member.errors = Errors { write: 2, read: 1, ..Errors::default() };
    let faults = faults(&healthy);
    assert_eq!(faults.len(), 1);
    let what = "3 commands to the disk serial number S2 (sd2) of the pool tank failed.";
    assert_eq!((faults[0].id.as_str(), faults[0].what.as_str()), ("pool-tank-errors-2", what));
}

#[test]
fn more_snapshots_than_are_listed_are_a_problem() {
    let mut healthy = pool(Profile::Mirror, State::Healthy, 0);
    let snapshot = healthy.snapshots[0].clone();
    healthy.snapshots = vec![snapshot; LISTED_MAX - 1];
    assert!(faults(&healthy).is_empty());
    healthy.snapshots.push(healthy.snapshots[0].clone());
    let [fault] = faults(&healthy).try_into().expect("one");
    assert_eq!(fault.id, "pool-tank-snapshots");
}
