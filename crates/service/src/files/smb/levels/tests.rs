//! Breaks by pairs of dimensions, and lines by client.

use std::net::Ipv4Addr;

use vfs::locks::BreakOutcome;

use super::*;

fn count(kind: &'static str, outcome: BreakOutcome, latency_ns: u64, count: u64) -> BreakCount {
    BreakCount { kind, outcome, latency_ns, count }
}

fn row(sample: &Sample, a: &str, b: &str) -> f64 {
    let of = |row: &&(String, String, f64)| row.0 == a && row.1 == b;
    sample.rows.iter().find(of).map_or(0.0, |row| row.2)
}

#[test]
fn breaks_are_reported_once_by_each_pair_of_dimensions() {
    let before = [count("lease", BreakOutcome::Closed, 64, 3)];
    let now = [
        count("lease", BreakOutcome::Acknowledged, 64, 4),
        count("lease", BreakOutcome::Closed, 64, 5),
        count("oplock", BreakOutcome::Acknowledged, 128, 2),
    ];
    let [kinds, of_kind, of_outcome] = added(&before, &now);
    for sample in [&kinds, &of_kind, &of_outcome] {
        assert!((sample.total - 8.0).abs() < 1e-9, "{sample:?}");
    }
    assert!((row(&kinds, "lease", "acknowledged") - 4.0).abs() < 1e-9);
    assert!((row(&kinds, "lease", "closed") - 2.0).abs() < 1e-9);
    assert!((row(&of_kind, "lease", "64") - 6.0).abs() < 1e-9);
    assert!((row(&of_outcome, "acknowledged", "128") - 2.0).abs() < 1e-9);
}

#[test]
fn a_line_has_what_a_client_caches() {
    let level = Level { leases: 3, breaking: 1, parked: 2 };
    let levels = Levels::from([(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), level)]);
    assert_eq!(lines(&levels), ["10.0.0.1: leases 3, breaks waiting 1, durable handles 2"]);
}
