//! The loop against the client of nothing: windows add up and the step ends on time.

use super::*;
use crate::client::null::NullClient;
use crate::shape::open::Arrival;
use crate::workload::{Kind, Shape};

/// More than any of these tests takes.
const LONG_NS: u64 = 120_000_000_000;

fn driver(kind: Kind) -> Driver {
    let shape = Shape { kind, block: 4096, files: 2, file_size: 1 << 20, own_files: false };
    let prepare = Prepare {
        target: "null:".into(),
        client: 0,
        bind: None,
        shape,
        seed: 1,
        check_one_in: 1,
        slots: 8,
    };
    Driver::prepare(Box::new(NullClient::new()), &prepare).unwrap()
}

#[test]
fn windows_add_up_to_the_step() {
    for kind in [Kind::RandRead, Kind::SeqWrite, Kind::Create] {
        let now = clock::mono_ns();
        let window_ns = 20_000_000;
        let until_ns = now + LONG_NS;
        let start = Start {
            step: 1,
            threads: 8,
            at_ns: now + 1_000_000,
            until_ns,
            window_ns,
            open: None,
            ops_max: None,
        };
        let stop = AtomicU64::new(until_ns);
        let mut windows = Vec::new();
        let mut ops = 0;
        let mut window = |passed: Vec<Window>| {
            ops += passed.iter().map(|w| w.ops).sum::<u64>();
            windows.extend(passed);
            if windows.len() >= 5 && ops > 0 {
                stop.store(clock::mono_ns(), Ordering::Relaxed);
            }
        };
        let end = driver(kind).step(&start, &stop, &mut window).unwrap();
        assert!(windows.len() >= 5, "{} windows", windows.len());
        assert!(windows.iter().enumerate().all(|(n, w)| w.index as usize == n));
        let in_windows: u64 = windows.iter().map(|w| w.ops).sum();
        assert!(in_windows > 0 && in_windows <= end.ops, "{in_windows} of {}", end.ops);
        assert_eq!(end.errors, 0);
        assert!(end.first_op_ns >= start.at_ns);
        for window in &windows {
            assert_eq!(hist::from_text(&window.latency).unwrap().len(), window.ops);
            assert!(window.in_flight <= 8.1, "{}", window.in_flight);
        }
    }
}

#[test]
fn a_stop_ends_the_step_early() {
    let now = clock::mono_ns();
    let start = Start {
        step: 0,
        threads: 2,
        at_ns: now,
        until_ns: now + LONG_NS,
        window_ns: 5_000_000,
        open: None,
        ops_max: None,
    };
    let stop = AtomicU64::new(now + 8_000_000);
    let end = driver(Kind::Null).step(&start, &stop, &mut |_| {}).unwrap();
    // On a busy machine there may have been none.
    assert!(end.last_op_ns < start.until_ns);
    assert!(clock::mono_ns() < start.until_ns, "it has not gone on to its end");
}

/// Arrivals of an open loop are those of its schedule, however long the machine lets it wait.
#[test]
fn an_open_loop_starts_what_its_schedule_has() {
    let now = clock::mono_ns();
    let rule = OpenRule {
        rate: 2_000.0,
        arrival: Arrival::Constant,
        in_flight: 8,
        queue: 1_000_000,
        seed: 1,
    };
    let until_ns = now + 100_000_000;
    let window_ns = 20_000_000;
    let open = Some(rule);
    let start = Start { step: 1, threads: 8, at_ns: now, until_ns, window_ns, open, ops_max: None };
    let stop = AtomicU64::new(until_ns);
    let mut windows = 0;
    let end =
        driver(Kind::RandRead).step(&start, &stop, &mut |passed| windows += passed.len()).unwrap();
    let open = end.open.unwrap();
    // At 0.5 ms, 1 ms, … before 100 ms.
    assert_eq!(open.counts.offered, 199, "{open:?}");
    assert_eq!(open.counts.started + open.counts.skipped, 199);
    assert_eq!(open.counts.completed, open.counts.started);
    assert_eq!(end.ops, open.counts.started);
    assert!(windows >= 4, "{windows} windows");
    assert_eq!(hist::from_text(&open.latency).unwrap().len(), open.counts.completed);
}

/// A short window, ns.
const SHORT_NS: u64 = 2_000_000;

/// Uses the processor for this time.
fn busy(ns: u64) {
    let until_ns = clock::mono_ns() + ns;
    while clock::mono_ns() < until_ns {
        std::hint::spin_loop();
    }
}

/// The client of nothing, of which each reply takes as long as a window.
struct Slow(NullClient);

impl Client for Slow {
    fn prepare(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.0.prepare(set)
    }

    fn clean(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.0.clean(set)
    }

    fn submit(&mut self, slot: u32, op: Op) -> Result<(), ClientError> {
        self.0.submit(slot, op)
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        self.0.flush()
    }

    fn wait(&mut self, timeout: Duration, done: &mut Vec<Completion>) -> Result<(), ClientError> {
        busy(SHORT_NS);
        self.0.wait(timeout, done)
    }
}

/// A machine that is so busy that each report takes longer than a window: the step ends when its
/// operations have, and windows in which nothing ended are reported together.
#[test]
fn reports_that_take_longer_than_a_window_do_not_hold_up_a_step() {
    let now = clock::mono_ns();
    let until_ns = now + LONG_NS;
    let start = Start {
        step: 3,
        threads: 1,
        at_ns: now,
        until_ns,
        window_ns: SHORT_NS,
        open: None,
        ops_max: Some(40),
    };
    let (mut windows, mut reports): (Vec<Window>, u32) = (Vec::new(), 0);
    let mut slow = |passed: Vec<Window>| {
        reports += 1;
        windows.extend(passed);
        assert!(reports < 1_000, "it does nothing but report");
        busy(2 * SHORT_NS);
    };
    let mut driver = driver(Kind::RandRead);
    driver.client = Box::new(Slow(NullClient::new()));
    let end = driver.step(&start, &AtomicU64::new(until_ns), &mut slow).unwrap();
    assert_eq!(end.ops, 40);
    assert!(windows.iter().enumerate().all(|(n, w)| w.index as usize == n && w.step == 3));
    assert!(windows.iter().all(|w| hist::from_text(&w.latency).unwrap().len() == w.ops));
    assert!(windows.iter().any(|w| w.ops == 0 && w.in_flight > 0.0), "none passed meanwhile");
}

/// The client of nothing, of which each operation ends with this fault.
struct Failing(NullClient, Fault);

impl Client for Failing {
    fn prepare(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.0.prepare(set)
    }

    fn clean(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.0.clean(set)
    }

    fn submit(&mut self, slot: u32, op: Op) -> Result<(), ClientError> {
        self.0.submit(slot, op)
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        self.0.flush()
    }

    fn wait(&mut self, timeout: Duration, done: &mut Vec<Completion>) -> Result<(), ClientError> {
        let before = done.len();
        self.0.wait(timeout, done)?;
        done.iter_mut().skip(before).for_each(|done| done.outcome = Err(self.1));
        Ok(())
    }
}

/// The end of a step of three operations in one long window, all of which end with this fault.
fn failing(kind: Kind, fault: Fault) -> StepEnd {
    let now = clock::mono_ns();
    let start = Start {
        step: 1,
        threads: 1,
        at_ns: now,
        until_ns: now + LONG_NS,
        window_ns: LONG_NS,
        open: None,
        ops_max: Some(3),
    };
    let mut driver = driver(kind);
    driver.client = Box::new(Failing(NullClient::new(), fault));
    driver.step(&start, &AtomicU64::new(start.until_ns), &mut |_| {}).unwrap()
}

#[test]
fn what_a_server_has_lost_is_sent_again_and_not_a_failure() {
    let end = failing(Kind::SeqWrite, Fault::VerifierChanged);
    // Three writes, then the COMMIT at the end of the step.
    assert_eq!((end.ops, end.commits, end.resent, end.errors), (3, 1, 4, 0));
    let end = failing(Kind::SeqWrite, Fault::Status(28));
    assert_eq!((end.ops, end.commits, end.resent, end.errors), (3, 1, 0, 4));
}

#[test]
fn wrong_content_in_the_window_that_is_open_at_the_end_is_counted() {
    let end = failing(Kind::RandRead, Fault::Corrupt);
    assert_eq!((end.ops, end.errors, end.corrupt), (3, 3, 3));
    let first = end.first_error.unwrap_or_default();
    assert!(first.ends_with(": what was read is not what was written"), "{first}");
}
