//! In virtual time: a queue with known latencies, a stall, arrivals that are skipped, a late
//! generator.

use super::*;
use std::collections::VecDeque;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

fn rule(rate: f64, arrival: Arrival) -> OpenRule {
    OpenRule { rate, arrival, in_flight: 100_000, queue: 0, seed: 1815 }
}

/// Runs a loop against a server. `server` returns when an operation ends that starts at a given
/// time; operations end in order. `woken` returns when the generator runs for an arrival that is
/// due.
fn run(
    mut open: OpenLoop,
    mut server: impl FnMut(u64) -> u64,
    mut woken: impl FnMut(u64) -> u64,
) -> OpenLoop {
    let mut ends: VecDeque<(u64, Arrived)> = VecDeque::new();
    let mut due = open.wake_ns().map(&mut woken);
    loop {
        let end = ends.front().map_or(u64::MAX, |end| end.0);
        let now = due.map_or(end, |due| due.min(end));
        if now == u64::MAX {
            break;
        }
        if let Some((_, arrived)) = ends.pop_front_if(|end| end.0 == now) {
            open.done(arrived, now);
        }
        while let Some(arrived) = open.due(now) {
            ends.push_back((server(now), arrived));
        }
        if due.is_some_and(|due| due <= now) {
            due = open.wake_ns().map(&mut woken);
        }
    }
    assert!(open.is_over());
    open
}

/// One server that takes `each` ns for an operation, in order.
fn one_server(each: u64) -> impl FnMut(u64) -> u64 {
    let mut free = 0;
    move |now: u64| {
        free = free.max(now) + each;
        free
    }
}

/// Distribution of the time in an M/D/1 queue, in units of the service time: after G. J. Franx, "A
/// simple solution for the M/D/c waiting time distribution", Operations Research Letters 29 (2001).
struct Md1 {
    load: f64,
    /// Cumulative probabilities of the number that waits.
    waiting: Vec<f64>,
}

impl Md1 {
    fn new(load: f64) -> Self {
        let states = 400;
        let mut arrivals = vec![(-load).exp()];
        for k in 1..=states {
            arrivals.push(arrivals[k - 1] * load / k as f64);
        }
        let mut at_least = vec![0.0; states + 2];
        for k in (0..=states).rev() {
            at_least[k] = at_least[k + 1] + arrivals[k];
        }
        // Crossings of each level in both directions are equally frequent.
        let mut p = vec![1.0 - load];
        for n in 0..states - 1 {
            let up: f64 = (1..=n).map(|i| p[i] * at_least[n - i + 2]).sum();
            p.push((p[0] * at_least[n + 1] + up) / arrivals[0]);
        }
        let mut sum = p[0];
        let waiting = p[1..].iter().map(|p| {
            sum += p;
            sum
        });
        Self { load, waiting: waiting.collect() }
    }

    /// Probability to wait at most `x`.
    fn waits_at_most(&self, x: f64) -> f64 {
        let k = x.floor() as usize;
        let mean = self.load * ((k + 1) as f64 - x);
        let (mut term, mut sum) = ((-mean).exp(), 0.0);
        for j in 0..=k {
            sum += self.waiting[k - j] * term;
            term *= mean / (j + 1) as f64;
        }
        sum
    }

    /// A percentile of the time in the system.
    fn percentile(&self, share: f64) -> f64 {
        let (mut low, mut high) = (0.0, 300.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if self.waits_at_most(middle) < share { low = middle } else { high = middle }
        }
        1.0 + high
    }
}

#[test]
fn the_theory_agrees_with_its_mean() {
    for load in [0.5, 0.8, 0.95] {
        let queue = Md1::new(load);
        let step = 0.001;
        let mean: f64 =
            (0..300_000).map(|i| 1.0 - queue.waits_at_most(f64::from(i) * step)).sum::<f64>()
                * step;
        // Pollaczek and Khinchine.
        let expected = load / (2.0 * (1.0 - load));
        assert!((mean / expected - 1.0).abs() < 0.01, "{load}: {mean} {expected}");
        assert!((queue.waits_at_most(0.0) - (1.0 - load)).abs() < 1e-9);
    }
}

#[test]
fn m_d_1_has_its_percentiles() {
    // Close to full load, busy periods are long and few: several seeds together.
    for (load, seeds, arrivals) in [(0.5, 1, 2e5), (0.8, 1, 4e5), (0.95, 4, 1.5e6)] {
        let each = 100 * US;
        let rate = load * 1e9 / each as f64;
        let end = (arrivals / rate * 1e9) as u64;
        let mut latency = hist::new();
        for seed in 0..seeds {
            let rule = OpenRule { seed, ..rule(rate, Arrival::Poisson) };
            let open = run(OpenLoop::new(rule, 0, end), one_server(each), |due| due);
            let counts = open.counts();
            assert_eq!((counts.skipped, counts.queued), (0, 0));
            assert_eq!(counts.offered, counts.completed);
            assert_eq!(condemned(open.latency(), open.lateness()), None);
            latency.add(open.latency()).unwrap();
        }
        let theory = Md1::new(load);
        for share in [0.5, 0.99] {
            let measured = latency.value_at_quantile(share) as f64 / each as f64;
            let expected = theory.percentile(share);
            assert!(
                (measured / expected - 1.0).abs() <= 0.05,
                "load {load}, percentile {share}: {measured} instead of {expected}"
            );
        }
    }
}

/// A server that does nothing between 10 s and 10.2 s.
fn stalls(each: u64) -> impl FnMut(u64) -> u64 {
    let mut free = 0;
    move |now: u64| {
        free = free.max(now);
        if (10 * S..10 * S + 200 * MS).contains(&free) {
            free = 10 * S + 200 * MS;
        }
        free += each;
        free
    }
}

#[test]
fn a_stall_of_200_ms_shows_in_p999() {
    let open = OpenLoop::new(rule(10_000.0, Arrival::Constant), 0, 20 * S);
    let open = run(open, stalls(20 * US), |due| due);
    let p = |share| open.latency().value_at_quantile(share);
    assert!(p(0.5) <= 21 * US, "{}", p(0.5));
    // 2,000 of 200,000 arrived meanwhile; the worst 200 of them waited 180 ms and more.
    assert!((178 * MS..=201 * MS).contains(&p(0.999)), "{}", p(0.999));
    // With four threads that wait for their replies, four operations notice it.
    let mut from_start = hist::new();
    let (mut server, mut free) = (stalls(20 * US), 0);
    while free < 20 * S {
        let end = server(free);
        from_start.record(end - free).unwrap();
        free = end.max(free + 100 * US);
    }
    assert!(from_start.value_at_quantile(0.999) <= 21 * US);
}

#[test]
fn skipped_arrivals_are_counted_exactly() {
    // Arrivals at 0.1 ms, 0.2 ms, …; the stall begins with that of 10 s and ends with 10.2 s.
    let rule = OpenRule { in_flight: 4, queue: 100, ..rule(10_000.0, Arrival::Constant) };
    let open = run(OpenLoop::new(rule, 0, 20 * S), stalls(20 * US), |due| due);
    let counts = open.counts();
    // Of the 2,001 up to the end of the stall, 4 are out and 100 wait. None has ended when the
    // last arrives; the next comes 80 µs after the first end.
    assert_eq!(counts.skipped, 2001 - 104, "{counts:?}");
    assert_eq!(counts.offered, 199_999);
    assert_eq!(counts.offered, counts.started + counts.skipped);
    assert_eq!(counts.started, counts.completed);
    // Those that waited, and those that arrived before the queue was empty: it loses 5 in 0.1 ms
    // and gains 1.
    assert_eq!(counts.queued, 100 + 25, "{counts:?}");
    let sentence = reservation(&counts).unwrap();
    assert!(sentence.contains("1897 of 199999"), "{sentence}");
    assert_eq!(reservation(&ArrivalCounts { skipped: 0, ..counts }), None);
}

#[test]
fn at_the_end_nothing_arrives_and_what_waits_is_skipped() {
    let rule = OpenRule { in_flight: 1, queue: 10, ..rule(1_000.0, Arrival::Constant) };
    let mut open = OpenLoop::new(rule, 0, S);
    let first = open.due(5 * MS).unwrap();
    assert_eq!((first.number, first.intended_ns, open.due(5 * MS)), (0, MS, None));
    open.close(7 * MS);
    assert!(open.due(9 * MS).is_none() && !open.is_over());
    // At 1 to 6 ms; one is out, five wait.
    open.abandon();
    open.done(first, 10 * MS);
    let counts = open.counts();
    assert_eq!((counts.offered, counts.started, counts.skipped), (6, 1, 5));
    assert!(open.is_over() && open.wake_ns().is_none());
    let shape = OpenShape { rate: 100.0, arrival: Arrival::Poisson, queue: 5 };
    let (one, two) = (shape.for_client(0, 4, 8, 1), shape.for_client(1, 4, 8, 1));
    assert_eq!((one.rate, one.in_flight, one.queue), (25.0, 8, 5));
    assert_ne!(one.seed, two.seed);
}

#[test]
fn a_late_generator_condemns_its_run() {
    let late = |by: u64| {
        let open = OpenLoop::new(rule(1_000.0, Arrival::Poisson), 0, 20 * S);
        let mut count = 0;
        // Two of a hundred arrivals are late.
        let woken = move |due: u64| {
            count += 1;
            if count % 50 == 0 { due + by } else { due }
        };
        run(open, |now| now + MS, woken)
    };
    let tenth = late(90 * US);
    assert_eq!(condemned(tenth.latency(), tenth.lateness()), None);
    let more = late(150 * US);
    let sentence = condemned(more.latency(), more.lateness()).unwrap();
    let figures = ["150 µs late", "13 % of the latency", "1.15 ms", "at most 10 %"];
    for part in figures {
        assert!(sentence.contains(part), "{part} in {sentence}");
    }
    assert_eq!(more.lateness().len(), more.counts().offered);
}

#[test]
fn arrivals_are_a_function_of_seed_and_number() {
    let poisson = rule(1_000.0, Arrival::Poisson);
    let gaps: Vec<f64> = (0..100_000).map(|n| poisson.gap_ns(n)).collect();
    assert_eq!(gaps[77], poisson.gap_ns(77));
    assert_ne!(gaps[77], OpenRule { seed: 7, ..poisson.clone() }.gap_ns(77));
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let spread = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((mean / 1e6 - 1.0).abs() < 0.01, "{mean}");
    // Exponential: the deviation equals the mean, and 1 − 1/e are shorter.
    assert!((spread.sqrt() / mean - 1.0).abs() < 0.02, "{}", spread.sqrt());
    let shorter = gaps.iter().filter(|g| **g < mean).count() as f64 / gaps.len() as f64;
    assert!((shorter - 0.632).abs() < 0.01, "{shorter}");
    assert_eq!(rule(2_000.0, Arrival::Constant).gap_ns(9), 500_000.0);
}
