//! Planted evidence: each limiter is named rightly, and not for the wrong reason.

use super::*;

/// A quiet machine with a levelled curve.
fn quiet() -> Evidence {
    let point = |in_flight, ops_s: f64| Point {
        in_flight,
        ops_s,
        bytes_s: ops_s * 4096.0,
        latency_ns: in_flight / ops_s * 1e9,
    };
    let curve = vec![point(8.0, 40e3), point(16.0, 60e3), point(32.0, 61e3), point(64.0, 61e3)];
    Evidence {
        cores: 8.0,
        server_cores: Some(1.0),
        host_busy: Some(0.2),
        hottest_core: Some(0.4),
        generator_cores: 1.0,
        generator_busiest: 0.3,
        levelled: true,
        point: curve[2],
        curve,
        ..Default::default()
    }
}

fn named(e: &Evidence) -> Limiter {
    let verdict = judge(e);
    assert!(!verdict.why.is_empty() && verdict.confidence > 0.0, "{verdict:?}");
    verdict.limiter
}

#[test]
fn server_cpu() {
    let e = Evidence { server_cores: Some(7.6), host_busy: Some(0.98), ..quiet() };
    assert_eq!(named(&e), Limiter::ServerCpu);
}

#[test]
fn cpu_shared_with_the_generator() {
    let e = Evidence {
        cores: 2.0,
        same_host: true,
        server_cores: Some(1.1),
        generator_cores: 0.8,
        host_busy: Some(0.98),
        ..quiet()
    };
    assert_eq!(named(&e), Limiter::CpuShared);
}

#[test]
fn generator_alone_on_a_shared_machine() {
    let e = Evidence {
        cores: 2.0,
        same_host: true,
        server_cores: Some(0.2),
        generator_cores: 1.7,
        generator_busiest: 0.95,
        host_busy: Some(0.97),
        ..quiet()
    };
    assert_eq!(named(&e), Limiter::Generator);
}

#[test]
fn quota_of_the_server_even_when_the_machine_is_busy_otherwise() {
    let e = Evidence {
        server_throttled: Some(0.5),
        server_quota_cores: Some(0.3),
        server_cores: Some(0.3),
        ..quiet()
    };
    assert_eq!(named(&e), Limiter::CpuQuota);
    assert_eq!(named(&Evidence { host_busy: Some(0.95), ..e }), Limiter::CpuQuota);
}

#[test]
fn throttled_generator() {
    let e = Evidence { generator_throttled: 0.6, ..quiet() };
    assert_eq!(named(&e), Limiter::Generator);
    let both = Evidence { server_throttled: Some(0.9), ..e };
    assert_eq!(named(&both), Limiter::CpuQuota);
}

#[test]
fn a_busy_disk_is_described_by_what_the_workload_does_there() {
    let device = Device { read_latency_ns: Some(3e6), ..Default::default() };
    let busy = Evidence { disk: Some(("vda".into(), 0.97, 1.5)), ..quiet() };
    let why = |e: &Evidence| judge(e).why.join("; ");
    let read = Evidence { payload: Some(Direction::Read), ..busy.clone() };
    let found = why(&read);
    assert!(!found.contains("write") && found.contains("; an operation took 0.52 ms"), "{found}");
    let found = why(&Evidence { device: Some(device), ..read });
    assert!(found.contains("a read took 3.00 ms there, an operation 0.52 ms"), "{found}");
    let found = why(&Evidence { payload: Some(Direction::Write), ..busy });
    assert!(found.contains("a write or flush took 1.50 ms there"), "{found}");
}

#[test]
fn hot_thread() {
    let hot = Some(("plimsoll-core-0".to_owned(), 0.97));
    let e = Evidence { server_hot_thread: hot, hottest_core: Some(0.99), ..quiet() };
    assert_eq!(named(&e), Limiter::HotCore);
}

#[test]
fn full_link() {
    let e = Evidence { link: Some(("eth0".into(), 120e6, Some(125e6))), ..quiet() };
    assert_eq!(named(&e), Limiter::Network);
    let e = Evidence { link: Some(("eth0".into(), 12e6, Some(125e6))), ..quiet() };
    assert_ne!(named(&e), Limiter::Network);
}

#[test]
fn rate_limited_link_without_a_known_rate() {
    let e = Evidence {
        queued_to_send: Some((400_000.0, 0.0)),
        queued_to_read: Some((0.0, 900.0)),
        ..quiet()
    };
    assert_eq!(named(&e), Limiter::Network);
    // This much in such a short time is merely in flight.
    let point = Point { bytes_s: 6e9, ..e.point };
    let fast =
        Evidence { connections: 2.0, queued_to_send: Some((135e3, 0.0)), point, ..e.clone() };
    assert_ne!(named(&fast), Limiter::Network);
    let point = Point { bytes_s: 23e6, ..e.point };
    let slow = Evidence { connections: 2.0, point, ..e.clone() };
    assert_eq!(named(&slow), Limiter::Network);
    // The clients do not read what has come: that is not the network.
    let e = Evidence { queued_to_read: Some((0.0, 900_000.0)), ..e };
    assert_ne!(named(&e), Limiter::Network);
}

#[test]
fn busy_disk() {
    let e = Evidence { disk: Some(("vda".into(), 0.97, 1.2)), synchronous: true, ..quiet() };
    assert_eq!(named(&e), Limiter::Disk);
}

#[test]
fn slow_back_end_with_constant_latency() {
    let point = |n: f64| Point { in_flight: n, ops_s: n / 0.02, bytes_s: 0.0, latency_ns: 20e6 };
    let curve = vec![point(1.0), point(2.0), point(8.0), point(32.0)];
    let e = Evidence { levelled: false, point: curve[3], curve, ..quiet() };
    assert_eq!(named(&e), Limiter::Latency);
}

#[test]
fn slow_back_end_with_a_full_pool() {
    let e = Evidence { server_latency_ns: Some(0.95 * quiet().point.latency_ns), ..quiet() };
    assert_eq!(named(&e), Limiter::Latency);
    let within = |e: &Evidence| judge(e).why.iter().any(|why| why.contains("within the server"));
    assert!(within(&e));
    // Its replies wait for the network, on a machine of which nothing else is known.
    let sending = Evidence { queued_to_send: Some((200_000.0, 0.0)), ..e };
    assert!(!within(&sending));
}

#[test]
fn busy_agent() {
    let e = Evidence { generator_busiest: 0.98, ..quiet() };
    assert_eq!(named(&e), Limiter::Generator);
}

#[test]
fn near_the_generators_own_limit() {
    let e = Evidence { null_ops_s: Some(65e3), server_cores: None, host_busy: None, ..quiet() };
    assert_eq!(named(&e), Limiter::Generator);
}

#[test]
fn still_rising_is_no_limit() {
    let mut e = Evidence { levelled: false, ..quiet() };
    e.curve.truncate(2);
    e.curve[0].latency_ns = 50e3;
    e.point = e.curve[1];
    assert_eq!(named(&e), Limiter::NotReached);
}

#[test]
fn unseen_server_is_not_guessed_at() {
    let e = Evidence { server_cores: None, host_busy: None, ..quiet() };
    assert_eq!(named(&e), Limiter::Unknown);
}

#[test]
fn lost_paused_and_skewed_clients_are_marks_on_the_verdict() {
    let sure = judge(&Evidence { server_cores: Some(7.6), host_busy: Some(0.98), ..quiet() });
    let e = Evidence {
        server_cores: Some(7.6),
        host_busy: Some(0.98),
        lost: vec!["client 3: killed".into()],
        paused: vec!["client 4".into()],
        skewed: vec!["client 5: 250 ms".into()],
        ..quiet()
    };
    let verdict = judge(&e);
    assert_eq!(verdict.limiter, Limiter::ServerCpu);
    assert_eq!(verdict.marks.len(), 3);
    assert!(verdict.confidence < sure.confidence);
}

/// As measured: 2 cores that others keep full, a server and agents that hardly ask for them.
fn full_of_other_things() -> Evidence {
    Evidence {
        cores: 2.0,
        same_host: true,
        host_busy: Some(1.0),
        hottest_core: Some(1.0),
        server_cores: Some(0.06),
        server_wanted: Some((0.21, 0.09)),
        generator_cores: 0.06,
        generator_busiest: 0.04,
        generator_waiting: 0.12,
        ..quiet()
    }
}

#[test]
fn a_machine_full_of_other_things_hides_neither_network_nor_latency() {
    let link = Evidence {
        queued_to_send: Some((2_076_341.0, 0.0)),
        queued_to_read: Some((66.0, 8_688.0)),
        ..full_of_other_things()
    };
    assert_eq!(named(&link), Limiter::Network);
    let slow = Evidence {
        queued_to_send: Some((1_510.0, 0.0)),
        queued_to_read: Some((8.0, 0.0)),
        ..full_of_other_things()
    };
    assert_eq!(named(&slow), Limiter::Latency);
    // A server that waits for a core lacks one.
    let starved = Evidence { server_wanted: Some((0.9, 0.8)), ..link };
    assert_eq!(named(&starved), Limiter::Unknown);
    // And where the line cannot be seen, nothing is claimed.
    assert_eq!(named(&Evidence { server_wanted: None, ..slow }), Limiter::Unknown);
}

#[test]
fn a_hot_core_of_another_process_is_not_the_servers() {
    let e = Evidence { cores: 8.0, host_busy: Some(0.3), ..full_of_other_things() };
    assert_eq!(named(&e), Limiter::Latency);
    assert_eq!(named(&Evidence { server_wanted: None, ..e }), Limiter::HotCore);
}

#[test]
fn a_short_schedule_that_ends_on_the_level_did_not_end_rising() {
    let mut e = Evidence { levelled: false, ..quiet() };
    e.curve.truncate(3);
    assert_ne!(named(&e), Limiter::NotReached);
}

mod thresholds;
