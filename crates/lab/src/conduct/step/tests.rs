//! Which samples of the server belong to the windows that count.

use super::*;
use crate::conduct::agents::Source;

fn times(of: &[u64], begin: u64, end: u64) -> Vec<u64> {
    let sample = |at_ns: &u64| ServerSample { at_ns: *at_ns, ..Default::default() };
    let kept = nearest(of.iter().map(sample).collect(), begin, end);
    kept.iter().map(|s| s.at_ns).collect()
}

#[test]
fn samples_nearest_the_edges() {
    assert_eq!(times(&[0, 10, 20, 30, 40], 9, 31), [10, 20, 30]);
    assert_eq!(times(&[0, 14, 26, 40], 10, 30), [14, 26]);
    // Few of them: still two.
    assert_eq!(times(&[0, 100], 40, 49), [0, 100]);
    assert_eq!(times(&[0, 45, 100], 40, 49), [0, 45, 100]);
    assert_eq!(times(&[7], 0, 10), [7]);
    assert_eq!(times(&[], 0, 10), [0u64; 0]);
}

#[test]
fn a_slow_server_is_not_a_step_that_hangs() {
    let (second, silence) = (1_000_000_000, LAB_SILENCE_MAX.as_nanos() as u64);
    // Twenty COMMITs may each take as long as a client waits for one.
    assert_eq!(abandon_ns(10 * second, 20), 10 * second + 21 * silence + REPORT_NS);
    // Each window in which something was completed extends the time.
    assert_eq!(abandon_ns(90 * second, 0) - abandon_ns(60 * second, 0), 30 * second);
}

/// A client with this number of wrong reads in its one window, and in all that it has counted.
fn wrong(in_window: u64, in_all: Option<u64>) -> Part {
    let errors = |n: u64| (n, n, (n > 0).then(|| "READ".to_owned()));
    let (errors_in_window, corrupt, first_error) = errors(in_window);
    let window = Window { errors: errors_in_window, corrupt, first_error, ..Window::default() };
    let end = in_all.map(|n| {
        let (errors, corrupt, first_error) = errors(n);
        StepEnd { errors, corrupt, first_error, ..StepEnd::default() }
    });
    Part { windows: vec![window], end }
}

/// What failed in a step of these clients, of which the last is lost.
fn faults_of(parts: Vec<Part>) -> (u64, u64, Option<String>) {
    let job = Job::load("iops-4k", &[]).expect("a job");
    let wanted = StepSetup { job: &job, number: 1, load: (2, 1), last_threads: None, fixed: false };
    let last = parts.len() as u32 - 1;
    let mut running = Running {
        wanted: &wanted,
        parts: (0..).zip(parts).collect(),
        at_ns: 0,
        window_ns: 1_000_000,
        warmup: 0,
        samples: Vec::new(),
        lost: Vec::new(),
        lost_faults: Faults::default(),
        notes: Vec::new(),
        stopped_with: None,
        progress_ns: 0,
    };
    let none = Source::Local { clients: 0, command: Vec::new() };
    let mut agents = Agents::gather(&none, false).expect("agents");
    running.lose(last, &mut agents).expect("another client");
    let step = running.record(&agents, (0, 0), Steadiness::default());
    (step.errors, step.corrupt, step.first_error)
}

#[test]
fn wrong_content_is_counted_in_each_kind_of_report() {
    let (none, read) = (|| wrong(0, Some(0)), Some("READ".to_owned()));
    assert_eq!(faults_of(vec![none(), none()]), (0, 0, None));
    // In the window that is open at the end.
    assert_eq!(faults_of(vec![wrong(0, Some(3)), none()]), (3, 3, read.clone()));
    // Of a client that is lost later, and of an agent that counts it in windows only.
    assert_eq!(faults_of(vec![none(), wrong(2, None)]), (2, 2, read.clone()));
    assert_eq!(faults_of(vec![wrong(2, None), none()]), (2, 2, read));
}
