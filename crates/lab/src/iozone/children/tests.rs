//! Records and their order; the stonewall.

use super::*;
use crate::client::ClientError;
use base::clock::Deadline;
use lab_program::cursor::Done;

fn settings() -> Settings {
    Settings {
        threads: 3,
        size: 40 << 10,
        record: 1 << 10,
        tests: Vec::new(),
        no_retest: false,
        flush: false,
        close: false,
        sync: false,
        keep: false,
        no_stonewall: false,
        stride: 17,
    }
}

#[test]
fn each_order_has_each_record() {
    let random = [Test::RandomRead, Test::RandomWrite];
    for test in [Test::Write, Test::Read, Test::Reverse, Test::Stride].into_iter().chain(random) {
        let mut all: Vec<u64> = records(test, &settings(), 1).collect();
        if !random.contains(&test) {
            assert_eq!(all[0], if test == Test::Reverse { 39 } else { 0 });
        }
        if test == Test::Stride {
            assert_eq!(all[1..4], [17, 34, 1]);
        }
        all.sort_unstable();
        assert_eq!(all, (0..40).collect::<Vec<u64>>(), "{test:?}");
    }
    let random = |seed| records(Test::RandomRead, &settings(), seed).collect::<Vec<_>>();
    assert!(random(1) == random(1) && random(1) != random(2));
}

/// Notes what it has read and written, by offset.
#[derive(Default)]
struct Noting {
    moved: std::sync::Arc<std::sync::Mutex<Vec<(Op, u64)>>>,
}

impl Worker for Noting {
    fn call(&mut self, call: &Call) -> Result<Done, CallError> {
        if matches!(call.op, Op::Read | Op::Write) {
            self.moved.lock().expect("its list").push((call.op, call.offset >> 10));
        }
        Ok(Done { bytes: call.len, size: None })
    }
}

#[test]
fn children_of_the_mixed_test_read_or_write_by_their_numbers() {
    let noting = [(); 3].map(|()| Noting::default());
    let moved = noting.each_ref().map(|worker| std::sync::Arc::clone(&worker.moved));
    let workers: Vec<Box<dyn Worker>> =
        noting.into_iter().map(|worker| Box::new(worker) as Box<dyn Worker>).collect();
    let settings = Settings { no_stonewall: true, ..settings() };
    // Those of the second of two agents.
    let mut children = Children { settings, seed: 1, workers, numbers: vec![1, 2, 5] };
    let outcome = children.run(Test::Mixed, 7, Start::default()).expect("a run");
    assert!(outcome.children.iter().all(|child| child.finished && child.bytes == 40 << 10));
    let each = moved.map(|moved| moved.lock().expect("a list").clone());
    for (calls, op) in each.iter().zip([Op::Write, Op::Read, Op::Write]) {
        assert!(calls.iter().all(|call| call.0 == op), "{calls:?}");
        let mut records: Vec<u64> = calls.iter().map(|call| call.1).collect();
        assert!(!records.is_sorted(), "at random");
        records.sort_unstable();
        assert_eq!(records, (0..40).collect::<Vec<u64>>(), "each record once");
    }
    assert!(each[0] != each[2], "each child has an order of its own");
}

/// Does everything; one that is slow waits until another one has ended.
struct Counting {
    waits: Option<std::sync::Arc<AtomicBool>>,
    ends: Option<std::sync::Arc<AtomicBool>>,
    done: u64,
}

impl Worker for Counting {
    fn call(&mut self, call: &Call) -> Result<Done, CallError> {
        if call.op == Op::Write {
            self.done += 1;
            while self.waits.as_ref().is_some_and(|ended| !ended.load(Ordering::SeqCst)) {
                thread::yield_now();
            }
        }
        if call.op == Op::Close
            && let Some(ended) = &self.ends
        {
            ended.store(true, Ordering::SeqCst);
        }
        Ok(Done { bytes: call.len, size: None })
    }
}

/// A connection that is gone, or a server that refuses, after some calls.
struct Broken {
    left: u64,
    refuses: bool,
}

impl Worker for Broken {
    fn call(&mut self, call: &Call) -> Result<Done, CallError> {
        if self.left > 0 {
            self.left -= 1;
            return Ok(Done { bytes: call.len, size: None });
        }
        let (what, status) = ("write".to_owned(), "NOSPC".to_owned());
        Err(CallError::Client(match self.refuses {
            true => ClientError::Refused { what, status },
            false => ClientError::Closed,
        }))
    }
}

#[test]
fn no_child_can_continue_when_the_connections_of_all_are_gone() {
    let ended = |refuse: [bool; 2]| {
        let worker = |refuses| Box::new(Broken { left: 7, refuses }) as Box<dyn Worker>;
        let settings = Settings { threads: 2, no_stonewall: true, ..settings() };
        let (workers, numbers) = (refuse.map(worker).into(), vec![0, 1]);
        let mut children = Children { settings, seed: 1, workers, numbers };
        children.run(Test::Rewrite, 0, Start::default()).expect("a run")
    };
    let lost = ended([false; 2]);
    assert!(lost.children.iter().all(|child| child.lost && child.records == 6), "{lost:?}");
    assert!(lost.all_lost().is_some_and(|why| why.contains("closed the connection")), "{lost:?}");
    for outcome in [ended([true, false]), ended([true; 2]), run(false)] {
        assert_eq!(outcome.all_lost(), None, "{outcome:?}");
    }
}

fn run(no_stonewall: bool) -> Outcome {
    let settings = Settings { threads: 2, no_stonewall, ..settings() };
    let ended = std::sync::Arc::new(AtomicBool::new(false));
    let fast = Counting { waits: None, ends: Some(ended.clone()), done: 0 };
    let slow = Counting { waits: Some(ended), ends: None, done: 0 };
    let workers: Vec<Box<dyn Worker>> = vec![Box::new(fast), Box::new(slow)];
    let mut children = Children { settings, seed: 1, workers, numbers: vec![0, 1] };
    children.run(Test::Write, 0, Start::default()).expect("a run")
}

#[test]
fn the_stonewall_ends_what_is_slower() {
    let outcome = run(false);
    let [fast, slow] = outcome.children.as_slice() else { panic!("two children") };
    assert!(fast.finished && !slow.finished);
    assert_eq!((fast.bytes, slow.bytes), (40 << 10, 1 << 10));
    let outcome = run(true);
    assert!(outcome.children.iter().all(|child| child.finished && child.bytes == 40 << 10));
    assert!(outcome.children.iter().all(|child| child.ns <= outcome.parent_ns));
}

#[test]
fn children_of_another_agent_end_a_test() {
    let stop = AtomicU64::new(1);
    let worker = Counting { waits: None, ends: None, done: 0 };
    let workers: Vec<Box<dyn Worker>> = vec![Box::new(worker)];
    let mut children = Children { settings: settings(), seed: 1, workers, numbers: vec![2] };
    let start = Start { stop: Some(&stop), ..Start::default() };
    let outcome = children.run(Test::Write, 0, start).expect("a run");
    let [child] = outcome.children.as_slice() else { panic!("one child") };
    assert_eq!((child.number, child.records, child.finished), (2, 1, false));
}

/// A child that is stopped at its first record; it completes its file when the end of the first
/// child was reported.
struct Stopped {
    ended: std::sync::Arc<AtomicBool>,
    reported: std::sync::Arc<AtomicBool>,
    writes: u64,
}

impl Worker for Stopped {
    fn call(&mut self, call: &Call) -> Result<Done, CallError> {
        if call.op == Op::Write {
            let event = if self.writes == 0 { &self.ended } else { &self.reported };
            let deadline = Deadline::after(Duration::from_secs(60));
            while !event.load(Ordering::SeqCst) {
                if deadline.passed() {
                    return Err(CallError::Client(ClientError::Closed));
                }
                thread::yield_now();
            }
            self.writes += 1;
        }
        Ok(Done { bytes: call.len, size: None })
    }
}

#[test]
fn the_end_of_the_first_child_is_reported_before_files_are_completed() {
    let flag = || std::sync::Arc::new(AtomicBool::new(false));
    let (ended, reported) = (flag(), flag());
    let fast = Counting { waits: None, ends: Some(ended.clone()), done: 0 };
    let stopped = Stopped { ended, reported: reported.clone(), writes: 0 };
    let workers: Vec<Box<dyn Worker>> = vec![Box::new(fast), Box::new(stopped)];
    let settings = Settings { threads: 2, ..settings() };
    let mut children = Children { settings, seed: 1, workers, numbers: vec![0, 1] };
    let report = || reported.store(true, Ordering::SeqCst);
    let start = Start { ended: Some(&report), ..Start::default() };
    let outcome = children.run(Test::Write, 0, start).expect("a run");
    let [fast, stopped] = outcome.children.as_slice() else { panic!("two children") };
    assert!(fast.finished && !stopped.finished && stopped.records == 1, "{outcome:?}");
    assert_eq!(stopped.fault, None, "it has completed its file");
}

#[test]
fn children_that_continue_to_their_end_report_no_first_one() {
    let worker = Counting { waits: None, ends: None, done: 0 };
    let workers: Vec<Box<dyn Worker>> = vec![Box::new(worker)];
    let settings = Settings { no_stonewall: true, ..settings() };
    let mut children = Children { settings, seed: 1, workers, numbers: vec![0] };
    let start = Start { ended: Some(&|| panic!("a report")), ..Start::default() };
    let outcome = children.run(Test::Write, 0, start).expect("a run");
    assert!(outcome.children[0].finished);
}
