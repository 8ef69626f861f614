//! The search against a queue with a known percentile (M/M/1: p99 = ln 100 ÷ (μ − λ)), and its
//! ends.

use super::*;

const MU: f64 = 100_000.0;

/// The 99th percentile of an M/M/1 queue, ns.
fn p99_ns(rate: f64) -> f64 {
    if rate >= MU { f64::MAX } else { 100f64.ln() / (MU - rate) * 1e9 }
}

fn search(max: f64, limit_ns: f64, late_from: f64) -> Bound {
    let mut search = Search::new(max, limit_ns, 0.05);
    let mut probes = 0;
    while let Some(rate) = search.next() {
        probes += 1;
        assert!(probes <= PROBES_MAX, "it ends");
        let condemned = rate >= late_from;
        search.note(&Probe { rate, latency_ns: p99_ns(rate), skipped: 0, condemned });
    }
    search.bound(99.0)
}

#[test]
fn the_rate_is_within_five_percent_of_the_known_one() {
    for limit_us in [50.0, 60.0, 100.0, 300.0, 1_000.0] {
        let known = MU - 100f64.ln() / (limit_us / 1e6);
        let bound = search(MU, limit_us * 1e3, f64::MAX);
        assert!(bound.rate <= known && known / bound.rate <= 1.051, "{limit_us}: {bound:?}");
        assert!(!bound.at_least && bound.above.is_some_and(|above| above > known), "{bound:?}");
    }
}

#[test]
fn the_limit_decides() {
    let (strict, wide) = (search(MU, 60e3, f64::MAX), search(MU, 120e3, f64::MAX));
    assert!(strict.rate * 1.5 < wide.rate, "{strict:?} {wide:?}");
    assert!(strict.sentence.contains("p99 stays within 60 µs"), "{}", strict.sentence);
}

#[test]
fn a_limit_that_is_never_broken_is_at_least() {
    let bound = search(MU / 2.0, 1e9, f64::MAX);
    assert!(bound.at_least && bound.rate == MU / 2.0 && bound.above.is_none(), "{bound:?}");
    assert!(bound.sentence.contains("at least 50"), "{}", bound.sentence);
}

#[test]
fn a_limit_below_the_service_time_has_no_rate() {
    let bound = search(MU, 10e3, f64::MAX);
    assert!(bound.rate == 0.0 && bound.sentence.contains("at every rate"), "{bound:?}");
}

#[test]
fn a_late_generator_makes_it_at_least() {
    assert!(search(MU, 100e3, 10_000.0).at_least);
    assert!(!search(MU, 100e3, f64::MAX).at_least);
}

#[test]
fn skipped_arrivals_do_not_keep_a_limit() {
    let search = Search::new(MU, 1e9, 0.05);
    let probe = Probe { rate: 1.0, latency_ns: 1.0, skipped: 1, condemned: false };
    assert!(!search.keeps(&probe) && search.keeps(&Probe { skipped: 0, ..probe }));
}
