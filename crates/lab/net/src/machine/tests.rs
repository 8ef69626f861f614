//! Which act is next, by a clock that the test has.

use super::{Machine, Next};
use crate::script::{Act, Kind, TransactionScript};

fn act(flowop: u32, count: u64) -> Act {
    let (canfail, timeout_ns, kind) = (false, None, Kind::Nop);
    Act { flowop, line: 1, name: "nop", conn: 0, count, canfail, timeout_ns, kind }
}

fn script(counts: &[u64]) -> TransactionScript {
    let acts = counts.iter().enumerate().map(|(n, count)| act(n as u32, *count)).collect();
    TransactionScript { iterations: 2, duration_ns: None, rate: None, acts, pause_ns: 0 }
}

#[test]
fn acts_follow_each_other_by_count_and_iteration() {
    let script = script(&[2, 1]);
    let mut machine = Machine::new(&script, 0);
    let mut seen = Vec::new();
    while let Next::Act { act, n } = machine.next_act(0, false) {
        seen.push((act, n));
        machine.done();
    }
    assert_eq!(seen, [(0, 0), (0, 1), (1, 0), (0, 2), (0, 3), (1, 1)]);
    assert_eq!(machine.next_act(0, false), Next::End);
}

#[test]
fn a_duration_or_a_stop_ends_it_between_acts() {
    let script = TransactionScript { duration_ns: Some(100), ..script(&[1, 1]) };
    let mut machine = Machine::new(&script, 1_000);
    for _ in 0..99 {
        assert!(matches!(machine.next_act(1_099, false), Next::Act { .. }));
        machine.done();
    }
    assert_eq!(machine.next_act(1_099, true), Next::End);
    assert_eq!(machine.next_act(1_100, false), Next::End);
}

#[test]
fn a_rate_is_a_schedule_from_the_begin_on() {
    let script = TransactionScript { rate: Some(1_000), iterations: 3, ..script(&[1]) };
    let mut machine = Machine::new(&script, 500);
    assert_eq!(machine.next_act(500, false), Next::Act { act: 0, n: 0 });
    machine.done();
    assert_eq!(machine.next_act(600, false), Next::Wait(1_000_500));
    // A thread that is late begins at once, and the one after it is due by the schedule.
    assert_eq!(machine.next_act(1_900_000, false), Next::Act { act: 0, n: 1 });
    machine.done();
    assert_eq!(machine.next_act(1_900_000, false), Next::Wait(2_000_500));
}

#[test]
fn nothing_to_do_ends_at_once() {
    let script = TransactionScript { duration_ns: Some(100), ..script(&[]) };
    assert_eq!(Machine::new(&script, 0).next_act(0, false), Next::End);
}
