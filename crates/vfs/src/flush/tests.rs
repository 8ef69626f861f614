//! One flush serves many callers, errors reach each caller that they concern, order is kept.

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::*;

/// Longer than any test may take.
const DEADLINE: Duration = Duration::from_secs(80);

/// A target with flushes that start on command, and log themselves.
struct Target {
    key: u64,
    flushes: AtomicUsize,
    started: Mutex<Sender<u64>>,
    go: Mutex<Receiver<Result<()>>>,
    /// What a follower has lost earlier.
    lost: Result<()>,
}

impl Durable for Target {
    fn key(&self) -> u64 {
        self.key
    }
    fn flush(&self) -> Result<()> {
        self.flushes.fetch_add(1, Ordering::SeqCst);
        self.started.lock().expect("sound").send(self.key).expect("the test listens");
        self.go.lock().expect("sound").recv_timeout(DEADLINE).expect("told to go on")
    }
    fn covered(&self, outcome: Result<()>) -> Result<()> {
        outcome.and(self.lost)
    }
}

/// The caller that was released, and its result.
type Released = (u32, Result<()>);

struct Bench {
    group: FlushGroup,
    started: (Sender<u64>, Receiver<u64>),
    done: (Sender<Released>, Receiver<Released>),
}

impl Bench {
    fn new() -> Self {
        let group = FlushGroup::with_threads(2).expect("threads");
        Self { group, started: channel(), done: channel() }
    }
    fn target(&self, key: u64, lost: Result<()>) -> (Arc<Target>, Sender<Result<()>>) {
        let (tell, go) = channel();
        let started = Mutex::new(self.started.0.clone());
        let flushes = AtomicUsize::new(0);
        (Arc::new(Target { key, flushes, started, go: Mutex::new(go), lost }), tell)
    }
    fn submit(&self, id: u32, targets: &[&Arc<Target>]) {
        let targets = targets.iter().map(|t| Arc::clone(t) as Arc<dyn Durable>).collect();
        let done = self.done.0.clone();
        let tell = Box::new(move |result| done.send((id, result)).expect("the test listens"));
        self.group.submit(Flush { targets }, tell);
    }
    fn started(&self) -> u64 {
        self.started.1.recv_timeout(DEADLINE).expect("a flush starts")
    }
    fn done(&self) -> (u32, Result<()>) {
        self.done.1.recv_timeout(DEADLINE).expect("a caller is released")
    }
    fn done_sorted(&self, count: usize) -> Vec<(u32, Result<()>)> {
        let mut all: Vec<_> = (0..count).map(|_| self.done()).collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }
}

#[test]
fn nothing_to_flush_is_done_at_once() {
    let bench = Bench::new();
    bench.submit(1, &[]);
    assert_eq!(bench.done.1.try_recv(), Ok((1, Ok(()))));
}

#[test]
fn one_flush_releases_all_that_came_before_it() {
    let bench = Bench::new();
    let (target, go) = bench.target(7, Ok(()));
    bench.submit(0, &[&target]);
    assert_eq!(bench.started(), 7);
    // These come while the first flush runs, so it does not cover them.
    (1..=100).for_each(|id| bench.submit(id, &[&target]));
    go.send(Ok(())).expect("listening");
    assert_eq!(bench.done(), (0, Ok(())));
    assert!(bench.done.1.try_recv().is_err(), "the others wait for the next flush");
    bench.started();
    go.send(Ok(())).expect("listening");
    assert_eq!(bench.done_sorted(100), (1..=100).map(|id| (id, Ok(()))).collect::<Vec<_>>());
    assert_eq!(target.flushes.load(Ordering::SeqCst), 2);
    assert_eq!(bench.group.counts().released, 101);
}

#[test]
fn a_failed_flush_is_reported_to_all_waiters_and_ends_the_round() {
    let bench = Bench::new();
    let (file, go_file) = bench.target(1, Ok(()));
    let (dir, _go_dir) = bench.target(2, Ok(()));
    bench.submit(0, &[&file]);
    bench.started();
    bench.submit(1, &[&file, &dir]);
    bench.submit(2, &[&file]);
    go_file.send(Ok(())).expect("listening");
    bench.started();
    go_file.send(Err(Status::Io)).expect("listening");
    let expected = [(0, Ok(())), (1, Err(Status::Io)), (2, Err(Status::Io))];
    assert_eq!(bench.done_sorted(3), expected);
    assert_eq!(dir.flushes.load(Ordering::SeqCst), 0, "nothing is flushed after a failure");
    assert_eq!(bench.group.counts().failed, 1);
}

#[test]
fn targets_are_flushed_in_their_order() {
    let bench = Bench::new();
    let (file, go_file) = bench.target(1, Ok(()));
    let (dir, go_dir) = bench.target(2, Ok(()));
    bench.submit(1, &[&file, &dir]);
    assert_eq!(bench.started(), 1);
    assert!(bench.started.1.try_recv().is_err());
    go_file.send(Ok(())).expect("listening");
    assert_eq!(bench.started(), 2);
    go_dir.send(Ok(())).expect("listening");
    assert_eq!(bench.done(), (1, Ok(())));
}

#[test]
fn another_key_does_not_wait() {
    let bench = Bench::new();
    let (slow, go_slow) = bench.target(1, Ok(()));
    let (quick, go_quick) = bench.target(2, Ok(()));
    bench.submit(1, &[&slow]);
    bench.started();
    go_quick.send(Ok(())).expect("listening");
    bench.submit(2, &[&quick]);
    assert_eq!(bench.done(), (2, Ok(())));
    go_slow.send(Ok(())).expect("listening");
    assert_eq!(bench.done(), (1, Ok(())));
}

#[test]
fn a_good_flush_does_not_hide_what_a_follower_lost() {
    let bench = Bench::new();
    let (leader, go) = bench.target(1, Ok(()));
    let (follower, _go) = bench.target(1, Err(Status::Io));
    bench.submit(0, &[&leader]);
    bench.started();
    bench.submit(1, &[&leader]);
    bench.submit(2, &[&follower]);
    go.send(Ok(())).expect("listening");
    bench.started();
    go.send(Ok(())).expect("listening");
    assert_eq!(bench.done_sorted(3), [(0, Ok(())), (1, Ok(())), (2, Err(Status::Io))]);
}

#[test]
fn dropping_the_group_finishes_what_is_queued() {
    let bench = Bench::new();
    let (target, go) = bench.target(1, Ok(()));
    (0..2).for_each(|_| go.send(Ok(())).expect("listening"));
    bench.submit(1, &[&target]);
    bench.submit(2, &[&target]);
    let Bench { group, started: _started, done } = bench;
    drop(group);
    let mut released: Vec<_> = done.1.try_iter().map(|(id, _)| id).collect();
    released.sort_unstable();
    assert_eq!(released, [1, 2]);
}

/// A target that panics once, in the given function.
#[derive(Default)]
struct Faulty {
    in_key: AtomicUsize,
    in_flush: AtomicUsize,
    in_covered: AtomicUsize,
}

/// Panics when `at` comes down to 0.
fn falter(at: &AtomicUsize) {
    let left = at.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    assert_ne!(left, Ok(1), "a planted panic");
}

impl Durable for Faulty {
    fn key(&self) -> u64 {
        falter(&self.in_key);
        9
    }
    fn flush(&self) -> Result<()> {
        falter(&self.in_flush);
        Ok(())
    }
    fn covered(&self, outcome: Result<()>) -> Result<()> {
        falter(&self.in_covered);
        outcome
    }
}

/// Submits once, and then a second time with a target of the same key, after which the only thread
/// and the key must be as good as new.
fn survives(faulty: Faulty) -> (Released, Released, FlushCounts) {
    let bench = Bench { group: FlushGroup::with_threads(1).expect("a thread"), ..Bench::new() };
    let faulty = Arc::new(faulty);
    let mut released = [1, 2].into_iter().map(|id| {
        let done = bench.done.0.clone();
        let tell = Box::new(move |result| done.send((id, result)).expect("the test listens"));
        let (first, target) = (Arc::clone(&faulty), Arc::clone(&faulty));
        bench.group.submit(Flush { targets: vec![first, target] }, tell);
        bench.done()
    });
    let (first, second) = (released.next().expect("one"), released.next().expect("two"));
    (first, second, bench.group.counts())
}

#[test]
fn a_panic_in_a_target_is_an_error_of_its_waiter_only() {
    let once = || AtomicUsize::new(1);
    let none = Faulty::default;
    let cases = [
        ("flush", Faulty { in_flush: once(), ..none() }),
        ("covered", Faulty { in_covered: once(), ..none() }),
        ("the first key", Faulty { in_key: once(), ..none() }),
        ("the second key", Faulty { in_key: AtomicUsize::new(2), ..none() }),
    ];
    for (place, faulty) in cases {
        let (first, second, counts) = survives(faulty);
        assert_eq!((first, second), ((1, Err(Status::Fault)), (2, Ok(()))), "{place}");
        assert_eq!(counts.panics, 1, "{place}");
    }
}

#[test]
fn a_panic_in_a_completion_delays_no_other() {
    let bench = Bench { group: FlushGroup::with_threads(1).expect("a thread"), ..Bench::new() };
    let (target, go) = bench.target(7, Ok(()));
    bench.submit(0, &[&target]);
    bench.started();
    let targets = vec![Arc::clone(&target) as Arc<dyn Durable>];
    bench.group.submit(Flush { targets }, Box::new(|_| panic!("a planted panic")));
    bench.submit(1, &[&target]);
    (0..3).for_each(|_| go.send(Ok(())).expect("listening"));
    assert_eq!(bench.done_sorted(2), [(0, Ok(())), (1, Ok(()))]);
    bench.submit(2, &[&target]);
    assert_eq!(bench.done(), (2, Ok(())));

    assert_eq!(bench.group.counts().panics, 1);
    // Ends only when no caller waits any more.
    drop(bench.group);
}

#[test]
fn sites_have_names_and_can_be_left_out() {
    let names: std::collections::HashSet<_> = FlushSite::ALL.iter().map(|s| s.name()).collect();
    assert_eq!(names.len(), FlushSite::ALL.len());
    assert!(FlushSite::ALL.iter().all(|s| FlushSite::from_name(s.name()) == Some(*s)));
    let bench = Bench::new();
    let (target, _go) = bench.target(1, Ok(()));
    let site = FlushSite::MknodDirectory;
    disable_for_test(site);
    assert!(Flush::of(site, Arc::clone(&target) as Arc<dyn Durable>).is_empty());
    enable_for_test(site);
    assert_eq!(Flush::of(site, target).targets.len(), 1);
}

#[test]
fn every_site_is_left_out_by_a_crash_test() {
    let tests = [
        include_str!("../../../../tests/crash.rs"),
        include_str!("../../../../tests/crash_v4.rs"),
        include_str!("../../../../tests/crash_configuration.rs"),
        include_str!("../../../../tests/crash_files/locks.rs"),
        include_str!("../../../../tests/crash_lun/cases.rs"),
    ];
    let untried = |site: &FlushSite| {
        let quoted = format!("\"{}\"", site.name());
        !tests.iter().any(|test| test.contains(&quoted))
    };
    let untried: Vec<_> = FlushSite::ALL.into_iter().filter(untried).collect();
    // Programs request it only through the unit, where its test is.
    let within = include_str!("../../../serve/iscsi/src/unit/tests.rs");
    assert!(within.contains("disable_for_test(FlushSite::LunResize)"));
    assert_eq!(untried, [FlushSite::LunResize]);
}
