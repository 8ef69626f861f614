//! Planted series: steady, drifting, oscillating, too short; staircases that level or do not.

use super::*;

fn verdict(rates: &[f64]) -> SteadyVerdict {
    test(rates, &Steady::default()).verdict
}

#[test]
fn each_verdict() {
    assert_eq!(verdict(&[100.0, 101.0, 99.0, 100.0, 100.0]), SteadyVerdict::Steady);
    assert_eq!(verdict(&[100.0, 95.0, 90.0, 85.0, 80.0]), SteadyVerdict::Drifting);
    assert_eq!(verdict(&[100.0, 130.0, 70.0, 130.0, 100.0]), SteadyVerdict::Oscillating);
    assert_eq!(verdict(&[100.0, 100.0]), SteadyVerdict::NotReached);
    assert_eq!(verdict(&[0.0; 9]), SteadyVerdict::NotReached);
}

#[test]
fn only_the_last_windows_count() {
    assert_eq!(verdict(&[1.0, 5.0, 100.0, 101.0, 99.0, 100.0, 100.0]), SteadyVerdict::Steady);
}

#[test]
fn figures_of_a_line() {
    let found = test(&[8.0, 9.0, 10.0, 11.0, 12.0], &Steady::default());
    assert!((found.range_percent - 40.0).abs() < 1e-9);
    assert!((found.slope_percent - 40.0).abs() < 1e-9);
}

#[test]
fn a_staircase_levels_after_two_steps_without_gain() {
    let rule = Plateau { min_steps: 4, steps: 2, gain_percent: 3.0 };
    assert!(!levelled(&[10.0, 20.0, 20.1], &rule), "too few steps");
    assert!(levelled(&[10.0, 20.0, 20.1, 20.2], &rule));
    assert!(!levelled(&[10.0, 20.0, 20.1, 25.0], &rule));
    assert!(!levelled(&[10.0, 20.0, 25.0, 25.1], &rule), "one flat step is not enough");
    assert!(levelled(&[10.0, 20.0, 18.0, 15.0], &rule), "falling is no gain");
    assert!(!levelled(&[10.0, 10.2, 10.4, 10.8], &rule), "small gains add up");
}
