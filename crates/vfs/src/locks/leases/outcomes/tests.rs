//! What breaks come to, and what clients of an address cache.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::super::*;
use super::super::tests::{KEY, Log, SLOT, open_of};
use super::*;

const R: Caching = Caching::READ;
const RH: Caching = Caching::of_bits(3);
const RWH: Caching = Caching::ALL;

fn at(host: u8, key: u8) -> Owner {
    let client = ClientKey { protocol: Protocol::Smb, id: host.into() };
    let owner = Owner::new(client, &[key; 32]).expect("short");
    owner.at(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)))
}

fn take(table: &LockTable, lease: &Owner, open: &Owner, (is_oplock, wanted): (bool, Caching)) {
    let notice = Arc::<Log>::default();
    let request =
        LeaseRequest { slot: SLOT, key: KEY, lease, open, is_oplock, wanted, epoch: 0, notice };
    assert_eq!(table.lease(&request).expect("nothing changes").caching, wanted);
}

/// Kind and outcome of each, with how many there were of any latency.
fn counted(table: &LockTable) -> Vec<(&'static str, &'static str, u64)> {
    let mut sums = BTreeMap::new();
    for one in table.breaks() {
        *sums.entry((one.kind, one.outcome.name())).or_default() += one.count;
    }
    sums.into_iter().map(|((kind, outcome), count)| (kind, outcome, count)).collect()
}

#[test]
fn a_break_is_counted_when_it_has_come_to_something() {
    let table = LockTable::default();
    let lease = at(1, 1);
    take(&table, &lease, &open_of(1), (false, RWH));
    assert!(!table.may(KEY, Trigger::Read));
    assert_eq!(counted(&table), [], "not before its end");
    assert_eq!(table.acknowledge(KEY, &lease, RH), Ok(RH));
    assert_eq!(counted(&table), [("lease", "acknowledged", 1)]);
    assert!(!table.may(KEY, Trigger::Name));
    table.release(KEY, &open_of(1));
    assert_eq!(counted(&table), [("lease", "acknowledged", 1), ("lease", "closed", 1)]);
    assert_eq!(table.counts().recalls, 0, "these are of NFSv4");
}

#[test]
fn a_break_of_level_ii_needs_no_answer() {
    let table = LockTable::default();
    let open = open_of(1);
    take(&table, &open, &open, (true, R));
    assert!(table.may(KEY, Trigger::Write));
    assert_eq!(counted(&table), [("oplock", "not required", 1)]);
}

#[test]
fn a_break_in_steps_is_counted_for_each() {
    let table = LockTable::default();
    let lease = at(1, 1);
    take(&table, &lease, &open_of(1), (false, RWH));
    assert!(!table.may(KEY, Trigger::Write));
    assert!(!table.may(KEY, Trigger::Write));
    assert_eq!(table.acknowledge(KEY, &lease, Caching::NONE), Ok(Caching::NONE));
    assert_eq!(counted(&table), [("lease", "acknowledged", 1)]);
    let lease = at(1, 2);
    table.release(KEY, &open_of(1));
    take(&table, &lease, &open_of(2), (false, RWH));
    assert!(!table.may(KEY, Trigger::Read));
    assert!(!table.may(KEY, Trigger::Write));
    assert_eq!(table.acknowledge(KEY, &lease, RH), Ok(RH));
    assert_eq!(table.acknowledge(KEY, &lease, R), Ok(R));
    assert_eq!(counted(&table), [("lease", "acknowledged", 3), ("lease", "not required", 1)]);
}

#[test]
fn a_latency_is_from_the_notification_on() {
    let mut lease = Lease::new(at(1, 1), Style::Lease, SLOT, Arc::<Log>::default());
    lease.caching = RWH;
    assert_eq!(lease.breaking_ns(7), None);
    let (begun_ns, most_ns) = (5_000_000, LEASE_BREAK_TIME.as_nanos() as u64);
    assert!(lease.take(Caching::WRITE, begun_ns + most_ns).is_some());
    assert_eq!(lease.breaking_ns(begun_ns + 1_000), Some(1_000));
    let table = LockTable::default();
    table.expire(&mut lease, begun_ns + most_ns);
    let [one] = table.breaks()[..] else { panic!("one break") };
    assert_eq!((one.kind, one.outcome, one.count), ("lease", BreakOutcome::TimedOut, 1));
    let bucket = buckets::low(buckets::index(most_ns));
    assert_eq!(one.latency_ns, bucket, "the time that the holder had");
}

#[test]
fn leases_and_breaks_are_counted_by_address() {
    let table = LockTable::default();
    take(&table, &at(1, 1), &open_of(1), (false, RH));
    take(&table, &at(2, 2), &open_of(2), (false, RH));
    take(&table, &at(2, 3), &open_of(3), (false, R));
    assert!(!table.may(KEY, Trigger::Name));
    let tally = table.caching_by_address();
    let of = |host| tally.get(&IpAddr::V4(Ipv4Addr::new(10, 0, 0, host))).copied();
    assert_eq!(of(1), Some(CachingTally { leases: 1, breaking: 1 }));
    assert_eq!(of(2), Some(CachingTally { leases: 2, breaking: 1 }));
    assert_eq!(of(3), None);
}
