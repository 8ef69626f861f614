//! The number of streams over simulated links: each stream has a window that doubles at each round
//! trip and ends where Linux stops it, and may lose packets.

use base::limits::DSYNC_STREAMS_MAX;
use base::random::{Random, SeededRandom};

use super::*;

const LINK: u64 = 125_000_000;
const PACKET: f64 = 1_448.0;
/// Where the automatic growth of a window ends in Linux.
const WINDOW_MAX: f64 = 3e6;
/// Of a stream that begins.
const WINDOW_FIRST: f64 = 10.0 * PACKET;
const STEP_NS: u64 = 10_000_000;

/// A link with streams through it.
struct Simulated {
    rtt_ns: u64,
    loss: f64,
    /// Whether what does not fit waits before the link, and does not get lost unseen.
    deep: bool,
    random: SeededRandom,
    /// Window, and whether it still doubles.
    streams: Vec<(f64, bool)>,
    moved: f64,
}

impl Simulated {
    fn new(rtt_ns: u64, loss: f64) -> Self {
        let random = SeededRandom::new(7);
        Self { rtt_ns, loss, deep: false, random, streams: Vec::new(), moved: 0.0 }
    }

    /// A round trip, in seconds. Without delay there is still what the machines take.
    fn rtt(&self) -> f64 {
        self.rtt_ns.max(50_000) as f64 / 1e9
    }

    /// What the streams would carry over a link without a limit.
    fn offered(&self) -> f64 {
        self.streams.iter().map(|(window, _)| window / self.rtt()).sum()
    }

    /// Some time passes; the rate in it.
    fn step(&mut self) -> f64 {
        let rtt = self.rtt();
        let step = STEP_NS as f64 / 1e9;
        let offered = self.offered();
        let share = (LINK as f64 / offered).min(1.0);
        for (window, doubles) in &mut self.streams {
            let packets = *window * share * step / rtt / PACKET;
            let lost = 1.0 - (1.0 - self.loss).powf(packets);
            if (self.random.below(1 << 30) as f64) < lost * f64::from(1 << 30) {
                (*window, *doubles) = ((*window * 0.7).max(2.0 * PACKET), false);
            } else if *doubles {
                *window *= 2f64.powf(step / rtt);
            } else {
                *window += PACKET * step / rtt;
            }
            *window = window.min(WINDOW_MAX);
        }
        let rate = offered * share;
        self.moved += rate * step;
        rate
    }

    /// Runs for `seconds`: streams at the end, the mean rate of the last second, and when 90 % of
    /// the link was reached first.
    fn run(&mut self, seconds: u64) -> (usize, f64, Option<f64>) {
        let mut growth = Growth::new(DSYNC_STREAMS_MAX, self.rtt_ns);
        let (mut now, mut last, mut filled, mut queued) = (0, 0.0, None, false);
        let end = seconds * NS_PER_S;
        while now < end {
            let wanted = growth.tick(now, self.moved as u64, queued);
            // A new stream shakes hands for some round trips; one is near enough.
            self.streams.resize(wanted.max(self.streams.len()), (WINDOW_FIRST, true));
            let before = self.moved;
            let rate = self.step();
            queued = self.deep && self.offered() > 1.3 * LINK as f64;
            now += STEP_NS;
            if now > end - NS_PER_S {
                last += self.moved - before;
            }
            if rate > 0.9 * LINK as f64 {
                filled.get_or_insert(now as f64 / 1e9);
            }
        }
        (self.streams.len(), last, filled)
    }
}

#[test]
fn a_link_is_filled_at_any_distance() {
    for (ms, most, within) in
        [(0, 4, 0.5), (2, 4, 0.5), (10, 8, 0.8), (100, 32, 1.0), (200, 32, 2.0)]
    {
        let (streams, rate, filled) = Simulated::new(ms * 1_000_000, 0.0).run(10);
        assert!(rate > 0.99 * LINK as f64, "{ms} ms: {streams} streams, {rate} B/s");
        assert!(streams <= most, "{ms} ms: {streams} streams");
        assert!(filled.is_some_and(|at| at < within), "{ms} ms: filled after {filled:?} s");
    }
}

#[test]
fn a_run_begins_with_a_few_streams_over_a_distance_only() {
    for (ms, most, begins) in
        [(0, 64, 1), (2, 64, 1), (20, 64, 4), (50, 64, 10), (200, 64, 16), (200, 3, 3)]
    {
        let growth = Growth::new(most, ms * 1_000_000);
        assert_eq!(growth.streams(), begins, "{ms} ms, {most} at most");
    }
}

#[test]
fn where_packets_are_lost_more_streams_carry_more() {
    for ms in [10, 100, 200] {
        let mut alone = Simulated::new(ms * 1_000_000, 0.001);
        alone.streams.push((WINDOW_FIRST, true));
        let one = (0..1_000).map(|_| alone.step()).sum::<f64>() / 1_000.0;
        let (streams, rate, _) = Simulated::new(ms * 1_000_000, 0.001).run(20);
        assert!(streams >= 16, "{ms} ms: {streams} streams");
        let all = (one * 10.0).min(0.9 * LINK as f64);
        assert!(rate >= all, "{ms} ms: {rate} B/s with {streams} streams, {one} with one");
    }
}

#[test]
fn what_the_link_does_not_limit_gets_few_streams() {
    // A disk that gives 30 MB/s, give or take a tenth.
    let (mut growth, mut random) = (Growth::new(64, 1_000_000), SeededRandom::new(1));
    let (mut now, mut moved, mut streams) = (0, 0, 1);
    while now < 60 * NS_PER_S {
        streams = growth.tick(now, moved, false);
        now += growth.period_ns();
        moved += 5_400_000 + random.below(1_200_000);
    }
    assert_eq!(streams, 2);
}

#[test]
fn no_more_than_agreed_and_none_for_nothing() {
    let mut growth = Growth::new(3, 0);
    let (mut now, mut moved) = (0, 0);
    for _ in 0..10 {
        assert_eq!(growth.tick(now, moved, false), 1, "nothing is moved yet");
        now += growth.period_ns();
    }
    // Each rate lasts until it is believed.
    for n in 0..40u64 {
        now += growth.period_ns();
        moved += 1_000 << (n / 4);
        growth.tick(now, moved, false);
    }
    assert_eq!(growth.tick(now, moved, false), 3);
    // A clock that stands still, or goes back, is no evidence.
    assert_eq!(growth.tick(now - 5, u64::MAX, false), 3);
}

#[test]
fn a_queue_that_is_gone_for_a_moment_is_no_reason_for_more() {
    let mut growth = Growth::new(64, 200_000_000);
    let (mut now, mut arrived) = (0, 0);
    for n in 0..100u64 {
        // As bbr has it: each tenth period with little, and after it one without a queue.
        let part = if n % 10 == 0 { LINK / 10 } else { LINK };
        arrived += part * growth.period_ns() / NS_PER_S;
        now += growth.period_ns();
        assert_eq!(growth.tick(now, arrived, n % 10 > 1), 16, "period {n}");
    }
    // Another link, that loses packets, is another matter.
    for _ in 0..20 {
        arrived += LINK / 4 * growth.period_ns() / NS_PER_S;
        now += growth.period_ns();
        growth.tick(now, arrived, false);
    }
    assert_eq!(growth.streams(), 32);
}

#[test]
fn a_rate_that_rises_alone_is_waited_for_and_a_full_link_gets_no_more() {
    for ms in [20, 100, 200] {
        let mut link = Simulated::new(ms * 1_000_000, 0.0);
        link.deep = true;
        let (streams, rate, _) = link.run(20);
        let begins = Growth::new(DSYNC_STREAMS_MAX, ms * 1_000_000).streams();
        assert_eq!(streams, begins, "{ms} ms");
        assert!(rate > 0.99 * LINK as f64, "{ms} ms: {rate} B/s");
    }
}
