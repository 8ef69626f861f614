//! What is judged is what was counted: by the observer first, else by the server's own report.

use super::*;
use crate::job::Job;
use crate::record::WindowRecord;
use crate::record::cold::CacheDropped;
use host::observe::Sample;
use host::observe::cache::{Dropped, Pages};
use host::observe::device::DeviceIo;
use serde_json::json;

const MIB: u64 = 1 << 20;

/// A sample `ms` after the begin of a step, when the device had read so much.
fn sample(begin_ns: u64, ms: u64, name: &str, read: u64) -> ServerSample {
    let device = DeviceIo { name: name.into(), bytes: [read, 0], ..DeviceIo::default() };
    let observed = Sample { devices: vec![device], ..Sample::default() };
    let at_ns = begin_ns + ms * 1_000_000;
    ServerSample { at_ns, observed: Some(observed), ..ServerSample::default() }
}

struct View {
    report: DropReport,
    samples: Vec<ServerSample>,
}

impl ServerView for View {
    fn describe(&mut self) -> crate::record::ServerInfo {
        Default::default()
    }
    fn sample(&mut self) -> Option<ServerSample> {
        (!self.samples.is_empty()).then(|| self.samples.remove(0))
    }
    fn drop_cache(&mut self) -> DropReport {
        self.report.clone()
    }
}

fn counted(resident: u64, device: &str) -> DropReport {
    let all = 64 * MIB / page_size();
    let after = Pages { all, resident, dirty: 0 };
    let pages = Dropped { files: 1, after, ..Dropped::default() };
    let observer = Some(CacheDropped { pages, device: Some(device.into()) });
    DropReport { observer, ..DropReport::default() }
}

/// A step of one second in which a client read 64 MiB evenly, and the device `read[0]` bytes in the
/// first half and `read[1]` in the second.
fn judged(report: DropReport, name: &str, read: [u64; 2]) -> ColdStep {
    let mut job = Job::load("disk-read-stream", &[]).unwrap();
    (job.cold, job.files, job.file_size) = (true, 1, 64 * MIB);
    job.workload = Kind::RandRead;
    let begin_ns = crate::agent::clock::mono_ns().saturating_sub(1_000_000_000);
    let samples = [
        sample(begin_ns, 0, name, 1_000),
        sample(begin_ns, 500, name, 1_000 + read[0]),
        sample(begin_ns, 1_000, name, 1_000 + read[0] + read[1]),
    ];
    let [first, _, last] = samples.clone();
    let mut view = View { report, samples: vec![first, last] };
    let begun = Begun::of(&job, &mut view).expect("a cold job");
    let window = WindowRecord { bytes: 16 * MIB, ..WindowRecord::default() };
    let step = Step {
        clients: 1,
        window_s: 0.25,
        windows: vec![window; 4],
        started: base::clock::wall_ns() as f64 / 1e9 - 1.0,
        ..Step::default()
    };
    let totals = ClientTotals { bytes: 64 * MIB, ..ClientTotals::default() };
    begun.end(&mut view).judge(&job, &step, totals, &samples)
}

#[test]
fn a_step_from_the_disk_is_uncached() {
    let step = judged(counted(3, "loop0"), "loop0", [33 * MIB, 32 * MIB]);
    assert!(step.uncached, "{step:?}");
    assert_eq!(
        step.sentence(),
        "uncached: 0.0 % of the pages were resident before, loop0 read 101.6 % of what clients did"
    );
}

#[test]
fn each_fault_is_in_the_sentence() {
    let all = 64 * MIB / page_size();
    let cases = [
        (judged(counted(all, "loop0"), "loop0", [0, 0]), "100.0 % of the pages"),
        (judged(counted(0, "loop0"), "loop0", [0, 0]), "loop0 read 0.0 %"),
        (judged(counted(0, "loop0"), "vda", [32 * MIB, 32 * MIB]), "those of vda"),
        (judged(counted(0, "loop0"), "loop0", [200 * MIB, MIB]), "later half"),
    ];
    for (step, part) in cases {
        assert!(!step.uncached);
        assert!(step.sentence().contains(part), "{part}: {}", step.sentence());
    }
}

#[test]
fn the_report_of_a_server_counts_if_nothing_else_does() {
    let report = |complete: bool, after: u64| DropReport {
        server: Some(json!({
            "complete": complete, "uncounted": 0, "bytes": 64 * MIB, "resident_after": after,
        })),
        failed: vec!["the server's host is not observed".into()],
        ..DropReport::default()
    };
    let resident = |report: DropReport| judged(report, "vda", [0, 0]).evidence.resident;
    assert_eq!(resident(report(true, 8 * page_size())), Some((8, 64 * MIB / page_size())));
    assert_eq!(resident(report(false, 0)), None);
    let step = judged(report(false, 0), "vda", [0, 0]);
    assert!(step.sentence().contains("host is not observed"), "{}", step.sentence());
    assert!(step.sentence().contains(OBSERVE), "{}", step.sentence());
}

#[test]
fn a_sample_after_the_windows_is_not_the_middle() {
    let window = WindowRecord { bytes: 8 * MIB, ..WindowRecord::default() };
    let step = Step {
        window_s: 0.25,
        windows: vec![window; 2],
        started: base::clock::wall_ns() as f64 / 1e9 - 1.0,
        ..Step::default()
    };
    // 16 of 32 MiB are in windows; the rest came after the last one that all clients ended.
    let totals = ClientTotals { bytes: 32 * MIB, ..ClientTotals::default() };
    let begin_ns = crate::agent::clock::mono_ns().saturating_sub(1_000_000_000);
    let at = |ms, read| sample(begin_ns, ms, "loop0", read);
    let last = at(1_000, 32 * MIB);
    assert_eq!(later(&step, totals, &[at(0, 0), at(700, 32 * MIB)], &last), None);
    let middle = at(400, 20 * MIB);
    let (device, payload) = later(&step, totals, &[at(0, 0), middle], &last).expect("a middle");
    assert_eq!(device, 12 * MIB);
    assert!(payload.abs_diff(32 * MIB - 12_800 * MIB / 1_000) < MIB, "{payload}");
}

#[test]
fn a_job_that_is_not_cold_drops_nothing() {
    let mut job = Job::load("disk-read-stream", &[]).unwrap();
    job.cold = false;
    let mut view = View { report: DropReport::default(), samples: Vec::new() };
    assert!(Begun::of(&job, &mut view).is_none());
}
