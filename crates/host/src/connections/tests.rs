//! Parts of clients from two looks, and how the interval grows.

use probe::schema::schema;
use probe::stat::StatId;

use super::*;

const S: u64 = 1_000_000_000;

fn connection(last: u8, events: [u32; 2], limited_us: [u64; 3], rtt_us: u32) -> Connection {
    let peer = std::net::Ipv4Addr::new(10, 0, 0, last).to_ipv6_mapped();
    Connection { peer, events, limited_us, rtt_us }
}

fn look(second: u64, all: &[(u64, Connection)], counters: [u64; 2]) -> Look {
    let (connections, ended) = (all.iter().copied().collect(), HashMap::new());
    Look { time_ns: second * S, connections, ended, counters }
}

fn one<'a>(samples: &'a [Sample], stat: &str) -> &'a Sample {
    samples.iter().find(|s| s.stat == stat).unwrap_or_else(|| panic!("{stat}"))
}

/// What a sampler gives in each of the `seconds` after the second look.
fn samples(last: &Look, now: &Look, seconds: u32) -> Vec<Sample> {
    super::samples(&parts(last, now), (last, now), seconds, &[])
}

fn two_looks(seconds: u32) -> Vec<Sample> {
    let before = [(1, connection(1, [5, 0], [0; 3], 100)), (2, connection(2, [9, 9], [0; 3], 0))];
    let after = [
        (1, connection(1, [15, 4], [S / 1000, S / 2000, 0], 100)),
        // Another connection of the same client, and one that has ended.
        (3, connection(1, [10, 0], [0; 3], 300)),
    ];
    samples(&look(10, &before, [100, 50]), &look(11, &after, [124, 54]), seconds)
}

#[test]
fn every_sample_is_declared_in_the_schema() {
    for sample in two_looks(1) {
        let stat: StatId = sample.stat.parse().expect("an id");
        let statistic = schema().check(&stat).unwrap_or_else(|e| panic!("{}: {e}", sample.stat));
        for dimension in sample.dimensions.iter().filter(|d| !d.is_empty()) {
            assert!(statistic.breakdowns.iter().any(|b| b == dimension), "{sample:?}");
        }
    }
}

#[test]
fn clients_have_what_their_connections_did_between_two_looks() {
    let samples = two_looks(1);
    let retransmits = one(&samples, "tcp.retransmits");
    assert_eq!(retransmits.rows, [("10.0.0.1".to_owned(), String::new(), 20.0)]);
    assert_eq!(retransmits.total, 24.0, "four were of connections that have ended");
    assert_eq!(one(&samples, "tcp.out_of_order").total, 4.0);
    assert_eq!(one(&samples, "tcp.rtt").rows[0].2, 200_000.0);
    assert_eq!(one(&samples, "tcp.connections").total, 2.0);
    let limited = one(&samples, "tcp.limited");
    let row = |why: &str, value| (why.to_owned(), "10.0.0.1".to_owned(), value);
    assert_eq!(limited.rows, [row("network", 0.5), row("receiver", 0.5)]);
}

#[test]
fn events_are_spread_over_the_seconds_until_the_next_look() {
    let samples = two_looks(4);
    assert_eq!(one(&samples, "tcp.retransmits").rows[0].2, 5.0);
    assert_eq!(one(&samples, "tcp.rtt").rows[0].2, 200_000.0, "a level is not");
    assert_eq!(one(&samples, "tcp.diagnosis_interval").total, 4e9);
}

#[test]
fn a_connection_that_has_ended_counts_from_the_last_look_on() {
    let before = [(1, connection(1, [5, 1], [0; 3], 100))];
    let mut now = look(11, &[], [12, 0]);
    // Another one began and ended between the looks.
    now.ended.insert(1, connection(1, [9, 4], [S / 1000, 0, 0], 100));
    now.ended.insert(2, connection(2, [8, 0], [0; 3], 100));
    let samples = samples(&look(10, &before, [0, 0]), &now, 1);
    let row = |address: &str, value| (address.to_owned(), String::new(), value);
    let retransmits = one(&samples, "tcp.retransmits");
    assert_eq!(retransmits.rows, [row("10.0.0.2", 8.0), row("10.0.0.1", 4.0)]);
    assert_eq!(one(&samples, "tcp.out_of_order").rows, [row("10.0.0.1", 3.0)]);
    assert_eq!(one(&samples, "tcp.connections").total, 0.0);
    assert_eq!(one(&samples, "tcp.limited").total, 1.0);
}

/// Seconds until the next look, after one that used this.
fn after(used_ns: u64) -> u32 {
    let mut schedule = Schedule::default();
    schedule.spend(used_ns);
    schedule.looked()
}

/// 34 ms, as 10,000 connections took here, are 1 % of 3.4 s.
#[test]
fn the_interval_grows_with_the_cost() {
    assert_eq!(after(0), 1);
    assert_eq!(after(9_900_000), 1);
    assert_eq!(after(34_000_000), 4);
    assert_eq!(after(u64::MAX), INTERVAL_MAX_S);
}

/// An hour in which the number of connections changes: looks and the seconds between them
/// together use at most a hundredth.
#[test]
fn over_an_hour_all_that_is_used_is_at_most_a_hundredth() {
    const SECONDS: u64 = 3600;
    let mut schedule = Schedule::default();
    let (mut used_ns, mut looks, mut longest) = (0, 0, 0);
    for second in 0..SECONDS {
        // From no connection to 10,000 and back.
        let look_ns = 34_000_000 * second.min(SECONDS - second) / (SECONDS / 2);
        let small_ns = 200_000;
        if schedule.is_due() {
            (used_ns, looks) = (used_ns + look_ns, looks + 1);
            schedule.spend(look_ns);
            longest = longest.max(schedule.looked());
        }
        used_ns += small_ns;
        schedule.spend(small_ns);
    }
    assert!(used_ns * 100 <= SECONDS * S, "{used_ns} ns of {SECONDS} s");
    assert!((SECONDS / 4..SECONDS).contains(&looks), "{looks} looks");
    assert_eq!(longest, 4);
}

#[test]
fn more_clients_than_rows_are_in_the_total() {
    let many: Vec<(u64, Connection)> = (0..400u64)
        .map(|n| {
            let peer = std::net::Ipv4Addr::new(10, 1, (n / 200) as u8, (n % 200) as u8);
            let limited_us = [S / 1000, 0, 0];
            let peer = peer.to_ipv6_mapped();
            (n, Connection { peer, events: [2, 0], limited_us, rtt_us: 10 })
        })
        .collect();
    let samples = samples(&look(1, &[], [0; 2]), &look(2, &many, [800, 0]), 1);
    let retransmits = one(&samples, "tcp.retransmits");
    assert_eq!((retransmits.rows.len(), retransmits.total), (CLIENTS_MAX, 800.0));
    let limited = one(&samples, "tcp.limited");
    assert_eq!(limited.total.round(), 400.0);
    let others = limited.rows.iter().find(|row| row.1.is_empty()).expect("the rest");
    assert_eq!(others.2.round(), 144.0);
}

#[test]
fn what_limits_connections_is_no_part_of_an_interval_that_is_too_short() {
    let at = |ms: u64, busy_ms: u64| {
        let busy = connection(1, [busy_ms as u32, 0], [busy_ms * 1000, 0, 0], 0);
        Look { time_ns: ms * S / 1000, ..look(0, &[(1, busy)], [0, 0]) }
    };
    let next = |last: &Look, now: &Look, held: &[Sample]| {
        super::samples(&parts(last, now), (last, now), 1, held)
    };
    let looks = [at(10_000, 0), at(12_000, 500), at(12_002, 520), at(5_000, 900)];
    let first = next(&looks[0], &looks[1], &[]);
    assert_eq!(one(&first, "tcp.limited").total, 0.25);
    // One that the collector makes up for, and one after the clock was set back.
    let second = next(&looks[1], &looks[2], &first);
    let third = next(&looks[2], &looks[3], &second);
    for (samples, events) in [(second, 20.0), (third, 380.0)] {
        assert_eq!(one(&samples, "tcp.limited").total, 0.25);
        assert_eq!(one(&samples, "tcp.retransmits").total, events, "events are counted once");
    }
}
