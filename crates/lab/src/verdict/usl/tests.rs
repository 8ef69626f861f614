//! The law against published data, its intervals against simulated systems, its refusals.

use super::*;
use crate::verdict::stats::uniform;

/// SPEC SDM91 as in the R package `usl`: load, throughput.
const SPECSDM91: [(f64, f64); 7] = [
    (1.0, 64.9),
    (18.0, 995.9),
    (36.0, 1652.4),
    (72.0, 1853.2),
    (108.0, 1828.9),
    (144.0, 1775.0),
    (216.0, 1702.2),
];
/// A published test: two clients at a time add 42,000 operations, the ninth adds 20,000.
const NINE_CLIENTS: [(f64, f64); 5] =
    [(2.0, 42e3), (4.0, 84e3), (6.0, 126e3), (8.0, 168e3), (9.0, 188e3)];
const SEED: u64 = 1815;

fn close(value: f64, expected: f64, percent: f64) {
    assert!((value / expected - 1.0).abs() <= percent / 100.0, "{value} is not {expected}");
}

#[test]
fn specsdm91_has_the_published_parameters() {
    let fit = fit(&SPECSDM91, SEED).unwrap();
    close(fit.law.gamma, 90.0, 1.0);
    close(fit.law.alpha, 0.0277, 1.0);
    close(fit.law.beta, 0.000104, 1.0);
    assert!(fit.r_squared > 0.98, "{}", fit.r_squared);
    let peak = fit.peak().unwrap();
    close(peak.load.value, 96.5, 1.0);
    close(peak.throughput.value, 1884.0, 1.0);
    assert!(peak.load.low < 96.0 && peak.load.high > 97.0, "{peak:?}");
    for e in [fit.gamma, fit.alpha, fit.beta, peak.load, peak.throughput] {
        assert!(e.low <= e.value && e.value <= e.high && e.low < e.high, "{e:?}");
    }
}

#[test]
fn nine_clients_give_290_k_for_14_and_refuse_400_k() {
    let fit = fit(&NINE_CLIENTS, SEED).unwrap();
    let fourteen = fit.at(14.0).unwrap();
    close(fourteen.value, 290e3, 2.0);
    assert!(fourteen.low < 289e3 && fourteen.high > 290e3, "{fourteen:?}");
    let refused = fit.load_for(400e3).unwrap_err();
    assert!(
        matches!(refused, UslError::OutOfReach { load, measured, .. }
            if load == 20.0 && measured == 9.0),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("at least 20"), "{refused}");
}

#[test]
fn nothing_is_extrapolated_beyond_twice_the_measured_load() {
    let fit = fit(&NINE_CLIENTS, SEED).unwrap();
    assert!(fit.at(18.0).is_ok());
    let refused = fit.at(18.5).unwrap_err();
    assert_eq!(refused, UslError::Beyond { load: 18.5, measured: 9.0 });
    // A straight line has no highest point within reach.
    let line: Vec<_> = (1..9).map(|n| (f64::from(n), 1e3 * f64::from(n))).collect();
    let straight = super::fit(&line, SEED).unwrap();
    assert!(matches!(straight.peak(), Err(UslError::Beyond { .. })), "{straight:?}");
    assert_eq!(straight.load_for(12_000.0).unwrap(), 12.0);
}

#[test]
fn three_loads_are_not_enough() {
    let three = [(1.0, 10.0), (2.0, 19.0), (4.0, 35.0), (4.0, 36.0), (0.0, 0.0)];
    assert_eq!(fit(&three, SEED), Err(UslError::Loads(3)));
}

#[test]
fn no_parameter_is_negative() {
    // Faster than in proportion, which the law cannot be.
    let over: Vec<_> = (1..9).map(|n| (f64::from(n), f64::from(n).powf(1.3))).collect();
    let fit = fit(&over, SEED).unwrap();
    assert!(fit.law.alpha >= 0.0 && fit.law.beta >= 0.0 && fit.law.gamma > 0.0, "{fit:?}");
}

#[test]
fn a_throughput_within_reach_has_its_load() {
    let fit = fit(&SPECSDM91, SEED).unwrap();
    let load = fit.load_for(995.9).unwrap();
    assert!(fit.law.at(load) >= 995.9 && fit.law.at(load - 1.0) < 995.9, "{load}");
    let refused = fit.load_for(2500.0).unwrap_err();
    assert!(matches!(refused, UslError::AbovePeak { .. }), "{refused}");
}

#[test]
fn a_seed_repeats_its_intervals() {
    assert_eq!(fit(&SPECSDM91, 7).unwrap(), fit(&SPECSDM91, 7).unwrap());
    assert_ne!(fit(&SPECSDM91, 7).unwrap().alpha, fit(&SPECSDM91, 8).unwrap().alpha);
}

/// With five loads the spread of the residuals is itself uncertain.
#[test]
fn intervals_of_few_loads_hold_the_truth() {
    let holds = (0..60u64).filter(|seed| {
        let mut random = SeededRandom::new(*seed);
        let law = Law { gamma: 1e3, alpha: 0.05, beta: 0.002 };
        let loads = [1.0, 4.0, 8.0, 16.0, 32.0];
        let points = loads.map(|n| (n, law.at(n) * (1.0 + 0.06 * (uniform(&mut random) - 0.5))));
        let at = fit(&points, *seed).unwrap().at(40.0).unwrap();
        (at.low..=at.high).contains(&law.at(40.0))
    });
    let holds = holds.count();
    assert!(holds >= 57, "{holds} of 60");
}

/// Of 50 simulated systems with errors of 3 %, the intervals hold the true value in 45 at least.
#[test]
fn intervals_hold_the_truth() {
    let (mut held_at, mut held_peak) = (0, 0);
    for seed in 0..50 {
        let mut random = SeededRandom::new(seed);
        let law = Law {
            gamma: 1e3 * (1.0 + uniform(&mut random)),
            alpha: 0.02 + 0.1 * uniform(&mut random),
            beta: 0.0005 + 0.002 * uniform(&mut random),
        };
        let loads = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0];
        let points = loads.map(|n| (n, law.at(n) * (1.0 + 0.06 * (uniform(&mut random) - 0.5))));
        let fit = fit(&points, seed).unwrap();
        let at = fit.at(40.0).unwrap();
        held_at += i32::from((at.low..=at.high).contains(&law.at(40.0)));
        if let Ok(peak) = fit.peak() {
            let truth = law.peak().unwrap();
            held_peak += i32::from((peak.load.low..=peak.load.high).contains(&truth));
        }
    }
    assert!(held_at >= 45 && held_peak >= 45, "{held_at} and {held_peak} of 50");
}
