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

/// A machine with two counters; removed at the end.
struct Machine(std::path::PathBuf);

impl Machine {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("plimsoll-sampler-{}", std::process::id()));
        std::fs::create_dir_all(path.join("proc/net")).expect("folders");
        Self(path)
    }

    fn set(&self, kilobytes: u64, busy: u64, idle: u64) {
        let bytes = kilobytes * 1024;
        let device = format!("eth0: {bytes} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
        std::fs::write(self.0.join("proc/net/dev"), device).expect("written");
        let time = format!("cpu {busy} 0 0 {idle}\n");
        std::fs::write(self.0.join("proc/stat"), time).expect("written");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[test]
fn seconds_that_are_made_up_for_have_the_rates_of_the_interval_before() {
    let machine = Machine::new();
    let mut sampler = HostSampler::new(Root::at(&machine.0));
    let mut at = |ms: u64, (kilobytes, busy, idle): (u64, u64, u64)| {
        machine.set(kilobytes, busy, idle);
        let samples = sampler.sample(ms * S / 1000);
        let cpu = value(&samples, "cpu.utilization", "user", "");
        (value(&samples, "nic.kilobytes", "eth0", "in"), cpu)
    };
    assert_eq!(at(10_000, (0, 0, 0)), (0.0, 0.0));
    assert_eq!(at(12_500, (2_500, 50, 200)), (1_000.0, 20.0));
    // Two seconds that the collector had missed; what came meanwhile is in the next interval.
    assert_eq!(at(12_503, (2_510, 50, 200)), (1_000.0, 20.0));
    assert_eq!(at(12_506, (2_520, 51, 200)), (1_000.0, 20.0));
    assert_eq!(at(13_500, (3_000, 100, 250)), (500.0, 50.0));
    // The clock was set back: the next interval begins there.
    assert_eq!(at(5_000, (4_000, 110, 250)), (500.0, 50.0));
    assert_eq!(at(6_000, (4_250, 135, 325)), (250.0, 25.0));
}
