//! Verdicts on planted loads; what is not seen.

use super::*;
use crate::limit::Limiter;
use crate::proc::MachineCounters;
use crate::record::cold::DropReport;

/// A server of which the processes and machine are planted.
struct Planted(Vec<ServerSample>);

impl ServerView for Planted {
    fn describe(&mut self) -> ServerInfo {
        let machine = Some(serde_json::json!({ "name": "elsewhere" }));
        ServerInfo { seen: "observer".into(), machine, ..ServerInfo::default() }
    }

    fn sample(&mut self) -> Option<ServerSample> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    fn drop_cache(&mut self) -> DropReport {
        DropReport::default()
    }
}

fn sample(seconds: u64, busy: u64) -> ServerSample {
    let cores = vec![(busy, seconds * 100); 2];
    let disks = vec![("sda".to_owned(), seconds * 990, seconds * 10, seconds * 900)];
    let machine = MachineCounters { cores, disks, ..MachineCounters::default() };
    ServerSample { at_ns: seconds * 1_000_000_000, machine, ..ServerSample::default() }
}

fn load() -> Load {
    Load {
        threads: 4.0,
        seconds: 10.0,
        operations: 1000,
        bytes_written: 4_096_000,
        call_ns: 39_000_000_000,
        busy_ns: 39_500_000_000,
        cpu_s: 0.4,
        ..Load::default()
    }
}

fn judged(samples: Vec<ServerSample>, load: &Load) -> Watched {
    let mut watch = Watch::with(Box::new(Planted(samples)));
    watch.begin();
    watch.end();
    watch.judge(load)
}

#[test]
fn a_busy_disk_is_the_limiter() {
    let watched = judged(vec![sample(10, 100), sample(20, 200)], &load());
    let limit = watched.limit.as_ref().expect("a verdict");
    assert_eq!(limit.limiter, Limiter::Disk, "{limit:?}");
    let text = watched.sentences(&ServerInfo::default()).join("\n");
    assert!(text.contains("limit: disk") && text.contains("sda was busy 99 %"), "{text}");
}

#[test]
fn a_generator_without_rest_is_the_limiter() {
    let busy = Load { cpu_s: 39.6, ..load() };
    let limit = judged(Vec::new(), &busy).limit.expect("a verdict");
    assert_eq!(limit.limiter, Limiter::Generator, "{limit:?}");
}

#[test]
fn waits_that_a_program_states_are_not_lost_by_the_generator() {
    let lost = Load { busy_ns: 20_000_000_000, call_ns: 19_000_000_000, ..load() };
    let idle = vec![sample(10, 100), sample(10, 100)];
    let limit = judged(idle, &lost).limit.expect("a verdict");
    assert!(limit.why.join(" ").contains("lost in the generator"), "{limit:?}");
    let waits = Load { call_ns: 19_000_000_000, ..load() };
    let limit = judged(Vec::new(), &waits).limit.expect("a verdict");
    assert_eq!(limit.limiter, Limiter::Unknown, "{limit:?}");
}

#[test]
fn a_load_without_calls_has_no_limiter() {
    let none = Load { operations: 0, ..load() };
    assert_eq!(judged(Vec::new(), &none), Watched::default());
}
