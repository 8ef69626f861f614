//! Threads wait for each other, for the generator, and for the end.

use super::*;
use lab_program::wml::read;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;

/// More than any of these runs takes.
const LONG: f64 = 600.0;

fn program(flowops: &str) -> Program {
    let text = format!(
        "eventgen rate=1000\ndefine file name=f,size=1m,prealloc\ndefine process name=p {{\n\
         thread name=t {{\n{flowops}\n}} }}\n"
    );
    read("p.f", &text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn wait(act: u32, op: Op, value: u64) -> Wait {
    Wait { act, op, value }
}

#[test]
fn what_is_posted_can_be_taken_once() {
    let program =
        program("flowop semblock name=take,value=2\nflowop sempost name=post,value=1,target=take");
    let control = Arc::new(Control::new(&program, LONG, 1));
    let own = control.register(0);
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..50 {
                control.wait(&program, wait(0, Op::Take, 2), own, &mut Throttle::default());
                taken.fetch_add(1, Ordering::Relaxed);
            }
        });
        for _ in 0..100 {
            control.wait(&program, wait(1, Op::Post, 1), 0, &mut Throttle::default());
        }
    });
    assert_eq!(taken.load(Ordering::Relaxed), 50);
    assert_eq!(control.reason(), None);
}

#[test]
fn what_is_blocked_is_woken_also_by_an_earlier_call() {
    let program = program("flowop block name=sleep\nflowop wakeup name=wake,target=sleep");
    let control = Control::new(&program, LONG, 1);
    control.wait(&program, wait(1, Op::Wake, 0), 0, &mut Throttle::default());
    control.wait(&program, wait(0, Op::Block, 0), 0, &mut Throttle::default());
    assert!(control.elapsed() < LONG / 2.0);
}

#[test]
fn the_end_of_the_run_ends_what_waits() {
    let program =
        program("flowop semblock name=take,value=1\nflowop sempost name=post,value=1,target=take");
    let control = Control::new(&program, LONG, 1);
    let own = control.register(0);
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            control.wait(&program, wait(0, Op::Take, 1), own, &mut Throttle::default());
        });
        control.stop(|| "first".into());
        control.stop(|| "second".into());
        waits.join().expect("it ends");
    });
    assert_eq!(control.reason().as_deref(), Some("first"));
    assert!(control.has_ended(monotonic_ns()));
}

#[test]
fn events_come_at_their_rate() {
    let program = program("flowop eventlimit name=pace");
    let control = Control::new(&program, LONG, 2);
    for _ in 0..100 {
        control.wait(&program, wait(0, Op::LimitEvents, 0), 0, &mut Throttle::default());
    }
    // 1,000 a second are 500 for each of two agents.
    assert!(control.elapsed() >= 0.2, "{}", control.elapsed());
}

#[test]
fn a_count_of_acts_finishes_the_run() {
    let program = program("flowop finishoncount name=enough,value=3\nflowop delay name=d,value=0");
    let control = Control::new(&program, LONG, 1);
    for n in 1..=4 {
        control.count(1, 0);
        control.wait(&program, wait(0, Op::FinishCount, 3), 0, &mut Throttle::default());
        assert_eq!(control.has_ended(monotonic_ns()), n >= 3, "{n}");
    }
    assert_eq!(control.reason().as_deref(), Some("enough after 3 acts"));
}
