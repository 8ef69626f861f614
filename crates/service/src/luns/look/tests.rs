//! Storage that does not answer, and a list of many units on it.

use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use super::*;

/// Queries storage that does not respond before something is sent.
fn stuck(look: &Arc<Look>, time: &LookTime) -> ((Option<MediumStatus>, bool), Sender<()>) {
    let (free, held) = channel();
    let asked = look.query(time, move || {
        // No answer if nothing is ever sent, which ends the wait as well.
        let _ = held.recv();
        MediumStatus::default()
    });
    (asked, free)
}

#[test]
fn storage_that_answers_does_so_within_the_shortest_time_that_is_left() {
    let (time, look) = (LookTime::default(), Arc::<Look>::default());
    time.spend(STORAGE_LOOK_TIME_MAX, monotonic_ns());
    assert_eq!(time.left(monotonic_ns()), LUN_LOOK_TIME_MIN);
    let (_, answers) = look.query(&time, MediumStatus::default);
    assert!(answers);
    let later_ns = monotonic_ns() + LUN_LOOK_AGAIN.as_nanos() as u64;
    assert_eq!(time.left(later_ns), STORAGE_LOOK_TIME_MAX);
}

#[test]
fn many_units_that_do_not_answer_are_waited_for_together() {
    const UNITS: u32 = 100;
    let time = LookTime::default();
    let looks: Vec<_> = (0..UNITS).map(|_| Arc::<Look>::default()).collect();
    let begun = Instant::now();
    let asked: Vec<_> = looks.iter().map(|look| stuck(look, &time)).collect();
    let took = begun.elapsed();
    assert!(took < UNITS * STORAGE_LOOK_TIME_MAX / 4, "{took:?}");
    assert_eq!(asked[0].0, (None, false), "the first one was waited for");
    let begun = Instant::now();
    // From then on each is known not to answer.
    let is_late = |look: &Arc<Look>| look.query(&time, MediumStatus::default) == (None, false);
    while !looks.iter().all(is_late) {
        assert!(begun.elapsed() < Duration::from_secs(60), "they are late");
        std::thread::yield_now();
    }
    asked.into_iter().for_each(|(_, free)| free.send(()).expect("it waits"));
    let answers = |look: &Arc<Look>| look.query(&time, MediumStatus::default).0.is_some();
    while !looks.iter().all(answers) {
        assert!(begun.elapsed() < Duration::from_secs(60), "they answer again");
        std::thread::yield_now();
    }
}
