//! Programs on nothing: the same calls for the same seed, whatever runs them.

use super::*;
use crate::client::{ClientError, Fault};
use crate::operations::{Mark, Operations};
use crate::programs::null::NullWorker;
use lab_program::cursor::Done;
use lab_program::wml::read;

const MAIL: &str = include_str!("../../../tests/programs/mail.f");
/// More than any of these runs takes.
const LONG: f64 = 600.0;

fn plan(text: &str, seed: u64, agent: (u64, u64)) -> Arc<Plan> {
    let program = read("p.f", text, &[]).unwrap_or_else(|error| panic!("{error}"));
    Arc::new(Plan::new(program, seed, agent.0, agent.1).expect("plan"))
}

fn nulls(plan: &Plan) -> Vec<Box<dyn Worker>> {
    plan.instances().map(|_| Box::new(NullWorker) as Box<dyn Worker>).collect()
}

fn limit(calls: u64) -> Limit<'static> {
    Limit::of(LONG, calls)
}

/// 10⁵ calls of a program by `agents`: hash, and calls of each act.
fn on_agents(seed: u64, agents: u64) -> (Option<Mark>, u64, Vec<u64>) {
    let mut sequences = BTreeMap::new();
    let mut calls = Vec::new();
    for agent in 0..agents {
        let plan = plan(MAIL, seed, (agent, agents));
        assert!(plan.program.is_repeatable());
        let totals = run(&plan, nulls(&plan), limit(100_000 / 16)).expect("a run");
        assert_eq!(totals.reason, None);
        sequences.extend(totals.sequences);
        calls.resize(totals.acts.len(), 0);
        calls.iter_mut().zip(&totals.acts).for_each(|(sum, act)| *sum += act.calls);
    }
    let all = Operations::of(sequences);
    (all.hash, all.first, calls)
}

#[test]
fn a_program_is_the_same_on_any_number_of_agents() {
    let one = on_agents(1, 1);
    assert_eq!(one.1, 4096, "of each thread");
    for agents in [2, 3, 7, 16] {
        assert_eq!(on_agents(1, agents), one, "{agents} agents");
    }
    assert_ne!(on_agents(2, 1).0, one.0, "another seed");
}

#[test]
fn acts_in_sequence_are_done_equally_often() {
    let (_, _, calls) = on_agents(1, 1);
    let (least, most) = (calls.iter().min().expect("acts"), calls.iter().max().expect("acts"));
    assert!(most - least <= 16, "{calls:?}");
}

/// Fails each call in turn.
struct Failing {
    calls: u64,
    one_in: u64,
    gone: bool,
    closed: u64,
}

impl Worker for Failing {
    fn call(&mut self, _: &Call) -> Result<Done, CallError> {
        self.calls += 1;
        match self.calls.is_multiple_of(self.one_in) {
            true if self.gone => Err(CallError::Client(ClientError::Closed)),
            true => Err(CallError::Fault(Fault::Short)),
            false => Ok(Done::default()),
        }
    }

    fn close(&mut self, _: u32) {
        self.closed += 1;
    }

    fn counts(&self) -> CallCounts {
        vec![("call", self.calls), ("close", self.closed)]
    }

    fn leave(&mut self) {
        self.calls += 1;
    }
}

fn failing(plan: &Plan, one_in: u64, gone: bool) -> Vec<Box<dyn Worker>> {
    let worker = |_| Box::new(Failing { calls: 0, one_in, gone, closed: 0 }) as Box<dyn Worker>;
    plan.instances().map(worker).collect()
}

#[test]
fn failures_are_counted_and_the_thread_starts_again() {
    let plan = plan(MAIL, 1, (0, 1));
    let totals = run(&plan, failing(&plan, 10, false), limit(1000)).expect("a run");
    let errors: u64 = totals.acts.iter().map(|act| act.errors).sum();
    assert_eq!((errors, totals.reason.clone(), totals.lost), (1600, None, false));
    assert!(totals.faults.values().all(|why| why == "short read"), "{:?}", totals.faults);
    assert_eq!((totals.during["call"], totals.around["call"]), (16_000, 16), "leaving");
    assert!(totals.during["close"] > 100, "what was open is closed");
}

#[test]
fn a_target_that_is_gone_ends_the_run() {
    let plan = plan(MAIL, 1, (0, 1));
    let totals = run(&plan, failing(&plan, 50, true), limit(1000)).expect("a run");
    assert!(totals.lost);
    let why = totals.reason.expect("a reason");
    assert!(why.ends_with("the server closed the connection"), "{why}");
}

#[test]
fn a_target_that_only_fails_ends_the_run() {
    let plan = plan(MAIL, 1, (0, 1));
    let totals = run(&plan, failing(&plan, 1, false), limit(1_000_000)).expect("a run");
    let why = totals.reason.expect("a reason");
    assert!(why.contains("fails repeatedly: short read"), "{why}");
}

#[test]
fn a_set_that_is_used_up_ends_the_run_in_words() {
    let text = "define fileset name=few,size=1k,entries=3,dirwidth=5,prealloc\n\
                define process name=p { thread name=t {\n\
                flowop deletefile name=delete1,filesetname=few\n} }\n";
    let plan = plan(text, 1, (0, 1));
    let totals = run(&plan, nulls(&plan), limit(1000)).expect("a run");
    assert_eq!(totals.acts[0].calls, 3);
    assert_eq!(totals.reason.as_deref(), Some("delete1 of few: no existing file is left"));
}

#[test]
fn the_time_of_a_run_ends_it() {
    let plan = plan(MAIL, 1, (0, 1));
    let limit = Limit::seconds(0.2);
    let totals = run(&plan, nulls(&plan), limit).expect("a run");
    assert!(totals.reason.is_none() && totals.seconds >= 0.2, "{}", totals.seconds);
}

/// Takes its time to leave, and has recorded when it began to.
struct Lingering {
    left_ns: Arc<AtomicU64>,
}

/// How long leaving takes: more than the start of a run.
const LEAVE_NS: u64 = 100_000_000;

impl Worker for Lingering {
    fn call(&mut self, _: &Call) -> Result<Done, CallError> {
        Ok(Done::default())
    }

    fn leave(&mut self) {
        let begun = monotonic_ns();
        self.left_ns.fetch_max(begun, Ordering::SeqCst);
        while monotonic_ns() - begun < LEAVE_NS {
            std::hint::spin_loop();
        }
    }
}

#[test]
fn leaving_the_target_is_not_of_the_run() {
    let text = "define file name=f,size=1m,prealloc\ndefine process name=p { thread name=t {\n\
                flowop read name=r,filename=f,iosize=4k\n} }\n";
    let plan = plan(text, 1, (0, 1));
    let left_ns = Arc::new(AtomicU64::new(0));
    let worker: Box<dyn Worker> = Box::new(Lingering { left_ns: Arc::clone(&left_ns) });
    let begun_ns = monotonic_ns();
    let totals = run(&plan, vec![worker], limit(10)).expect("a run");
    let most = (left_ns.load(Ordering::SeqCst) - begun_ns) as f64 / 1e9;
    assert!(totals.acts[0].calls > 0 && totals.seconds > 0.0, "{totals:?}");
    assert!(totals.seconds <= most, "{} s, but it left after {most} s", totals.seconds);
}
