//! Each threshold is where it is declared: evidence just below it names something else, just above
//! it names the limiter, in a sentence with the number that triggered the rule. The numbers are
//! written out here, so that a threshold that moves turns a test red.

use super::*;

/// A rule at its threshold.
struct Edge {
    /// What it is about.
    name: &'static str,
    /// Evidence with the figure that triggers the rule.
    with: fn(f64) -> Evidence,
    /// A figure that does not trigger it, one that does.
    figures: (f64, f64),
    /// What is named then.
    limiter: Limiter,
    /// What the sentences hold then.
    sentence: &'static str,
}

/// Steps with throughputs and latencies, two, four, eight … in flight; the last is judged.
fn curve(steps: &[(f64, f64)]) -> Evidence {
    let point = |(n, (ops_s, latency_ns)): (usize, &(f64, f64))| Point {
        in_flight: f64::from(2u32 << n),
        ops_s: *ops_s,
        bytes_s: ops_s * 4096.0,
        latency_ns: *latency_ns,
    };
    let curve: Vec<Point> = steps.iter().enumerate().map(point).collect();
    Evidence { point: curve[curve.len() - 1], curve, levelled: false, ..quiet() }
}

fn shared(server: f64, generator: f64) -> Evidence {
    Evidence {
        cores: 10.0,
        same_host: true,
        host_busy: Some(1.0),
        server_cores: Some(server * 10.0),
        generator_cores: generator * 10.0,
        ..quiet()
    }
}

fn queue(bytes: f64) -> Evidence {
    Evidence {
        connections: 4.0,
        queued_to_send: Some((bytes, 0.0)),
        queued_to_read: Some((0.0, 0.0)),
        point: Point { bytes_s: 50e6, ..quiet().point },
        ..quiet()
    }
}

const EDGES: &[Edge] = &[
    Edge {
        name: "THROTTLED, of an agent",
        with: |x| Evidence { generator_throttled: x, ..quiet() },
        figures: (0.049, 0.051),
        limiter: Limiter::Generator,
        sentence: "throttled for 5 %",
    },
    Edge {
        name: "THROTTLED, of the server",
        with: |x| Evidence { server_throttled: Some(x), ..quiet() },
        figures: (0.049, 0.051),
        limiter: Limiter::CpuQuota,
        sentence: "for 5 % of the time",
    },
    Edge {
        name: "BUSY, all cores",
        with: |x| Evidence { host_busy: Some(x), server_cores: Some(7.0), ..quiet() },
        figures: (0.899, 0.901),
        limiter: Limiter::ServerCpu,
        sentence: "were 90 % busy",
    },
    Edge {
        name: "BUSY, an agent",
        with: |x| Evidence { generator_busiest: x, ..quiet() },
        figures: (0.899, 0.901),
        limiter: Limiter::Generator,
        sentence: "used 90 % of one core",
    },
    Edge {
        name: "BUSY, a thread of the server",
        with: |x| Evidence { server_hot_thread: Some(("core-0".into(), x)), ..quiet() },
        figures: (0.899, 0.901),
        limiter: Limiter::HotCore,
        sentence: "core-0 used 90 % of a core",
    },
    Edge {
        name: "ALONE, the server",
        with: |x| shared(x, 0.24),
        figures: (0.749, 0.751),
        limiter: Limiter::ServerCpu,
        sentence: "the server used 75 %",
    },
    Edge {
        name: "ALONE, the generator",
        with: |x| shared(0.24, x),
        figures: (0.749, 0.751),
        limiter: Limiter::Generator,
        sentence: "the agents 75 %",
    },
    Edge {
        name: "LARGE, the generator",
        with: |x| shared(0.7, x),
        figures: (0.149, 0.151),
        limiter: Limiter::CpuShared,
        sentence: "the agents 15 %",
    },
    Edge {
        name: "LARGE, the server",
        with: |x| shared(x, 0.7),
        figures: (0.149, 0.151),
        limiter: Limiter::CpuShared,
        sentence: "the server used 15 %",
    },
    Edge {
        name: "MOST, other processes",
        with: |x| shared(0.3, 0.7 - x),
        figures: (0.499, 0.501),
        limiter: Limiter::Unknown,
        sentence: "other processes on that machine used 50 %",
    },
    Edge {
        name: "LINK_FULL",
        with: |x| Evidence { link: Some(("eth0".into(), x * 1e8, Some(1e8))), ..quiet() },
        figures: (0.849, 0.851),
        limiter: Limiter::Network,
        sentence: "eth0 was used to 85 %",
    },
    Edge {
        name: "QUEUED",
        with: queue,
        figures: (32_700.0, 32_800.0),
        limiter: Limiter::Network,
        sentence: "32 KiB per connection",
    },
    Edge {
        name: "QUEUE_LASTS",
        with: |x| {
            // Four queues of 40 KB take 160 KB ÷ rate.
            let point = Point { bytes_s: 160e3 / x, ..quiet().point };
            Evidence { point, ..queue(40e3) }
        },
        figures: (0.00049, 0.00051),
        limiter: Limiter::Network,
        sentence: "510 µs of the throughput",
    },
    Edge {
        name: "DISK_BUSY",
        with: |x| Evidence { disk: Some(("vda".into(), x, 1.0)), ..quiet() },
        figures: (0.849, 0.851),
        limiter: Limiter::Disk,
        sentence: "vda was busy 85 %",
    },
    Edge {
        name: "CORE_HOT",
        with: |x| Evidence { hottest_core: Some(x), ..quiet() },
        figures: (0.949, 0.951),
        limiter: Limiter::HotCore,
        sentence: "one core was 95 % busy",
    },
    Edge {
        name: "LOST_MUCH",
        with: |x| Evidence { little_deviation: x, ..quiet() },
        figures: (0.249, 0.251),
        limiter: Limiter::Generator,
        sentence: "25 % of the operations' time",
    },
    Edge {
        name: "LOST",
        with: |x| Evidence { little_deviation: x, server_cores: None, ..quiet() },
        figures: (0.099, 0.101),
        limiter: Limiter::Generator,
        sentence: "10 % of the operations' time",
    },
    Edge {
        name: "WAITING",
        with: |x| Evidence { generator_waiting: x, server_cores: None, ..quiet() },
        figures: (0.499, 0.501),
        limiter: Limiter::Generator,
        sentence: "waited for a core for 50 %",
    },
    Edge {
        name: "GAIN",
        with: |x| curve(&[(1e4, 1e5), (2e4, 2e5), (2e4 * (1.0 + x), 4e5)]),
        figures: (0.029, 0.031),
        limiter: Limiter::NotReached,
        sentence: "the last step gained 3.1 %",
    },
    Edge {
        name: "NEAR_NULL",
        with: |x| Evidence { null_ops_s: Some(quiet().point.ops_s / x), ..quiet() },
        figures: (0.699, 0.701),
        limiter: Limiter::Generator,
        sentence: "70 % of the load generator's own limit",
    },
];

#[test]
fn rules_trigger_at_their_thresholds() {
    for edge in EDGES {
        let below = judge(&(edge.with)(edge.figures.0));
        assert_ne!(below.limiter, edge.limiter, "{} below: {below:?}", edge.name);
        let above = judge(&(edge.with)(edge.figures.1));
        assert_eq!(above.limiter, edge.limiter, "{} above: {above:?}", edge.name);
        let why = above.why.join("\n");
        assert!(why.contains(edge.sentence), "{}: {why}", edge.name);
    }
}

/// Edges of the rules that keep a rule from claiming something.
const ENDS: &[Edge] = &[
    Edge {
        name: "CONSTANT",
        with: |x| curve(&[(1e4, 1e6), (2e4, 1e6), (4e4, 1e6 * (1.0 + x))]),
        figures: (0.31, 0.29),
        limiter: Limiter::Latency,
        sentence: "at any concurrency, ± 29 %",
    },
    Edge {
        name: "CONSTANT, after the judged step",
        with: |x| {
            let mut e = curve(&[(1e4, 1e6), (2e4, 1e6), (2e4, 1e6 * (1.0 + x))]);
            e.point = e.curve[1];
            Evidence { server_cores: None, ..e }
        },
        figures: (0.31, 0.29),
        limiter: Limiter::Latency,
        sentence: "at any concurrency, ± 29 %",
    },
    Edge {
        name: "IDLE, all cores",
        with: |x| Evidence { host_busy: Some(x), ..quiet() },
        figures: (0.801, 0.799),
        limiter: Limiter::Latency,
        sentence: "the CPU was 80 % busy",
    },
    Edge {
        name: "IDLE, all cores around a hot thread",
        with: |x| Evidence {
            host_busy: Some(x),
            server_hot_thread: Some(("core-0".into(), 0.99)),
            ..quiet()
        },
        figures: (0.801, 0.799),
        limiter: Limiter::HotCore,
        sentence: "all cores together were 80 % busy",
    },
    Edge {
        name: "IDLE, an agent",
        with: |x| Evidence { generator_busiest: x, ..quiet() },
        figures: (0.801, 0.799),
        limiter: Limiter::Latency,
        sentence: "the busiest agent used 80 % of a core",
    },
    Edge {
        name: "AGENT_HALF, around a hot core",
        with: |x| Evidence {
            same_host: true,
            hottest_core: Some(0.99),
            generator_busiest: x,
            ..quiet()
        },
        figures: (0.501, 0.499),
        limiter: Limiter::HotCore,
        sentence: "one core was 99 % busy",
    },
    Edge {
        name: "LITTLE_TO_READ, of a queue",
        with: |x| Evidence { queued_to_read: Some((0.0, x * 1e6)), ..queue(1e6) },
        figures: (0.251, 0.249),
        limiter: Limiter::Network,
        sentence: "the clients have 243 KiB to read",
    },
    Edge {
        name: "QUEUE_TELLS",
        with: |x| Evidence { host_busy: Some(x), ..queue(1e6) },
        figures: (0.751, 0.749),
        limiter: Limiter::Network,
        sentence: "per connection",
    },
    Edge {
        name: "UNWANTED",
        with: |x| Evidence {
            host_busy: Some(1.0),
            server_cores: Some(0.1),
            server_wanted: Some((0.5, x)),
            ..quiet()
        },
        figures: (0.501, 0.499),
        limiter: Limiter::Latency,
        sentence: "of 8 cores the server needed 0.50",
    },
];

/// These keep a rule from claiming something: above, the limiter is another one.
#[test]
fn rules_end_at_their_thresholds() {
    for edge in ENDS {
        let outside = judge(&(edge.with)(edge.figures.0));
        assert_ne!(outside.limiter, edge.limiter, "{} outside: {outside:?}", edge.name);
        let inside = judge(&(edge.with)(edge.figures.1));
        assert_eq!(inside.limiter, edge.limiter, "{} inside: {inside:?}", edge.name);
        let why = inside.why.join("\n");
        assert!(why.contains(edge.sentence), "{}: {why}", edge.name);
    }
}

/// The share of an operation that the server accounts for is named from 60 % on.
#[test]
fn time_within_the_server_is_named_from_its_threshold_on() {
    let with = |x: f64| {
        let latency = quiet().point.latency_ns;
        let e = Evidence { server_latency_ns: Some(x * latency), ..quiet() };
        judge(&e).why.join("\n").contains("was spent within the server")
    };
    assert!(!with(0.59) && with(0.61));
}

/// Segments sent again are named from one in a thousand on.
#[test]
fn retransmissions_are_named_from_their_threshold_on() {
    let with = |x: f64| judge(&Evidence { retransmitted: x, ..queue(1e6) }).why.join("\n");
    assert!(!with(0.0009).contains("retransmitted"));
    assert!(with(0.0012).contains("0.12 % of the TCP segments"), "{}", with(0.0012));
}

/// What was not seen is never the limiter, and the sentence has the command that observes it.
#[test]
fn an_unseen_server_is_unknown_even_with_constant_latency() {
    let constant = curve(&[(1e4, 1e6), (2e4, 1e6), (4e4, 1e6)]);
    assert_eq!(named(&constant), Limiter::Latency);
    let unseen = Evidence { server_cores: None, host_busy: None, ..constant };
    let verdict = judge(&unseen);
    assert_eq!(verdict.limiter, Limiter::Unknown, "{verdict:?}");
    assert!(verdict.why[0].contains(OBSERVE), "{verdict:?}");
}

/// Waiting for a core is not Little's law: each sentence holds its own number.
#[test]
fn time_lost_and_time_waited_have_their_own_sentences() {
    let waits = Evidence { generator_waiting: 0.6, server_cores: None, ..quiet() };
    let why = judge(&Evidence { little_deviation: 0.03, ..waits.clone() }).why;
    assert_eq!(why.len(), 1, "{why:?}");
    assert!(why[0].contains("waited for a core for 60 %"), "{why:?}");
    let why = judge(&Evidence { little_deviation: 0.15, ..waits }).why;
    assert!(why.len() == 2 && why[0].contains("15 %"), "{why:?}");
}
