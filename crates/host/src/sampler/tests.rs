//! Samples follow the schema, and rates are differences of captured readings.

use probe::schema::schema;
use probe::stat::StatId;

use super::*;

const S: u64 = 1_000_000_000;

#[test]
fn every_sample_is_declared_in_the_schema() {
    let mut sampler = HostSampler::new(Root::default());
    sampler.sample(0);
    let samples = sampler.sample(S);
    assert!(samples.len() > 15, "{} samples", samples.len());
    for sample in samples {
        let stat: StatId = sample.stat.parse().expect("an id");
        let statistic = schema().check(&stat).unwrap_or_else(|e| panic!("{}: {e}", sample.stat));
        for dimension in sample.dimensions.iter().filter(|d| !d.is_empty()) {
            assert!(statistic.breakdowns.iter().any(|b| b == dimension), "{sample:?}");
        }
    }
}

fn value(samples: &[Sample], stat: &str, a: &str, b: &str) -> f64 {
    let rows = samples.iter().filter(|s| s.stat == stat).flat_map(|s| &s.rows);
    rows.filter(|r| r.0 == a && r.1 == b).map(|r| r.2).sum()
}

#[test]
fn rates_are_differences_over_time() {
    let device = |bytes| Device { name: "eth0".into(), bytes, ..Device::default() };
    let disk = |ops, busy_ms| Disk { name: "vda".into(), ops, busy_ms, ..Disk::default() };
    let time = |user, idle| CpuTime { user, idle, ..CpuTime::default() };
    let reading = |n: u64| Reading {
        time_ns: n * 2 * S,
        stat: Stat {
            all: time(50 * n, 350 * n),
            cpus: vec![(0, time(50 * n, 150 * n)), (1, time(0, 200 * n))],
            switches: 0,
        },
        devices: vec![device([2048 * n, 4096 * n])],
        disks: vec![disk([10 * n, 40 * n], 500 * n)],
        ..Reading::default()
    };
    let samples = rates(&reading(1), &reading(2));
    assert_eq!(value(&samples, "nic.kilobytes", "eth0", "in"), 1.0);
    assert_eq!(value(&samples, "nic.kilobytes", "eth0", "out"), 2.0);
    assert_eq!(value(&samples, "io.ops", "vda", "write"), 20.0);
    assert_eq!(value(&samples, "io.utilization", "vda", ""), 25.0);
    assert_eq!(value(&samples, "cpu.utilization", "user", ""), 12.5);
    assert_eq!(value(&samples, "cpu.utilization", "0", ""), 25.0);
    assert_eq!(value(&samples, "cpu.utilization", "1", ""), 0.0);
}

#[test]
fn a_device_that_appears_or_is_reset_has_no_values() {
    let device = |name: &str, n| Device { name: name.into(), bytes: [n, n], ..Device::default() };
    let before = [device("a", 5000)];
    let after = [device("a", 10), device("b", 7000)];
    let samples = network(&before, &after, 1.0);
    assert!(samples.iter().all(|s| s.rows.is_empty()), "{samples:?}");
}
