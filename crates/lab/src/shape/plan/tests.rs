//! Plans of every shape, on a system that is a formula.

use super::*;

fn job(set: &[&str]) -> Job {
    let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    Job::load("iops-4k", &set).expect("a job")
}

/// Runs a plan on a system that gives at most `max` operations per second, 1,000 a thread.
fn run(plan: &mut Plan<'_>, max: f64) -> Vec<StepPlan> {
    let mut steps = Vec::new();
    while let Some(step) = plan.next_step() {
        let threads = crate::conduct::step::in_flight(step.load.0, step.load.1, step.last_threads);
        let ops_s = match &step.open {
            Some(open) => open.rate.min(max),
            None => (1_000.0 * f64::from(threads)).min(max),
        };
        let rate = step.open.map_or(0.0, |open| open.rate);
        let latency_ns = 100f64.ln() / (max - rate).max(1e-9) * 1e9;
        let probe = Probe { rate, latency_ns, skipped: 0, condemned: false };
        plan.note(&step, &StepResult { figure: ops_s, ops_s, probe });
        steps.push(step);
        assert!(steps.len() < 2_000, "it ends");
    }
    steps
}

#[test]
fn steps_end_where_throughput_levels() {
    let job = job(&[]);
    let mut plan = Plan::new(&job, 8);
    let steps = run(&mut plan, 8_000.0);
    assert!(plan.levelled() && steps.len() == 6, "{steps:?}");
    assert!(steps.iter().all(|s| s.fixed_ms.is_none() && !s.probe));
}

#[test]
fn a_row_is_the_last_load_for_its_time() {
    let job = job(&["row.seconds=30", "schedule=[[1,1],[4,2]]"]);
    let steps = run(&mut Plan::new(&job, 8), 8_000.0);
    assert_eq!(steps.len(), 1);
    assert_eq!((steps[0].load, steps[0].fixed_ms), ((4, 2), Some(job.warmup_ms + 30_000)));
}

#[test]
fn a_ramp_adds_a_thread_a_second_and_a_client_a_minute() {
    let job = Job::load("syncwrite-4k-ramp", &[]).expect("a job");
    let steps = run(&mut Plan::new(&job, 8), 1e9);
    assert_eq!(steps.len(), 80);
    let mut at_ms = 0;
    for (n, step) in steps.iter().enumerate() {
        let (client, threads) = (n as u32 / 10, n as u32 % 10 + 1);
        assert_eq!(at_ms, u64::from(client) * 60_000 + u64::from(threads - 1) * 1_000);
        let flying = crate::conduct::step::in_flight(step.load.0, step.load.1, step.last_threads);
        assert_eq!((step.load.0, flying), (client + 1, client * 10 + threads));
        at_ms += step.fixed_ms.expect("a time");
    }
    assert_eq!(at_ms, 8 * 60_000);
}

#[test]
fn a_ramp_continues_where_throughput_levels() {
    let job = Job::load("syncwrite-4k-ramp", &[]).expect("a job");
    let mut plan = Plan::new(&job, 8);
    assert_eq!(run(&mut plan, 20_000.0).len(), 80);
    assert!(plan.levelled());
}

#[test]
fn a_curve_has_its_shares_of_the_maximum() {
    let job = job(&["curve.each_ms=1000"]);
    let steps = run(&mut Plan::new(&job, 8), 40_000.0);
    let rates: Vec<f64> = steps.iter().filter_map(|s| s.open.map(|open| open.rate)).collect();
    let expected: Vec<f64> = (1..=10).map(|n| f64::from(n) * 4_000.0).collect();
    assert_eq!(rates, expected);
    let last = steps.last().expect("a step");
    assert!(last.probe && last.load == (8, 32) && last.fixed_ms == Some(1_400), "{last:?}");
}

#[test]
fn a_bound_is_searched_below_the_maximum() {
    // p99 = ln 100 ÷ (40,000 − rate) = 500 µs at 30,790 a second.
    let job = job(&["bound.limit_us=500"]);
    let mut plan = Plan::new(&job, 8);
    let steps = run(&mut plan, 40_000.0);
    let bound = plan.bound().expect("a bound");
    assert!((29_300.0..=30_790.0).contains(&bound.rate), "{bound:?}");
    assert!(steps.iter().filter(|s| s.probe).count() <= bound::PROBES_MAX);
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    for (set, part) in [
        (&["row.seconds=1", "soak.seconds=60"][..], "exclude each other"),
        (&["curve.each_ms=1000", "open.rate=5"][..], "exclude open"),
        (&["row.seconds=0"][..], "windows"),
        (&["soak.seconds=36000"][..], "window_ms"),
        (&["curve.percent=[0]"][..], "1 to 200 percent"),
        (&["bound.percentile=100"][..], "below 100"),
        (&["bound.limit_us=0"][..], "a limit"),
        (&["ramp.threads=0"][..], "a ramp needs threads"),
        (&["bound.limit_us=500", "workload=create"][..], "depend on each other"),
    ] {
        let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
        let why = Job::load("iops-4k", &set).expect_err("refused").to_string();
        assert!(why.contains(part), "{set:?}: {why}");
    }
}
