//! Quantiles and lines against values worked out elsewhere.

use super::*;

#[test]
fn quantiles_interpolate_between_order_statistics() {
    assert_eq!(median(&[]), 0.0);
    assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
    assert_eq!(quantile(&[4.0, 1.0, 2.0, 3.0], 0.5), 2.5);
    assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.975), 4.9);
}

#[test]
fn students_t_is_wide_with_few_degrees() {
    assert_eq!(student(1), 12.706);
    assert_eq!(student(30), 2.042);
    assert!((student(60) - 2.000).abs() < 0.001, "{}", student(60));
    assert!(student(0).is_infinite());
}

/// Anscombe's first set: slope 0.5001, intercept 3.0001, standard errors 0.1179 and 1.1247.
#[test]
fn a_line_has_the_errors_of_anscombes_first_set() {
    let points = [
        (10.0, 8.04),
        (8.0, 6.95),
        (13.0, 7.58),
        (9.0, 8.81),
        (11.0, 8.33),
        (14.0, 9.96),
        (6.0, 7.24),
        (4.0, 4.26),
        (12.0, 10.84),
        (7.0, 4.82),
        (5.0, 5.68),
    ];
    let line = Line::fit(&points).unwrap();
    assert!((line.slope - 0.5001).abs() < 1e-4 && (line.intercept - 3.0001).abs() < 1e-4);
    assert!((line.slope_error() - 0.1179).abs() < 1e-4, "{}", line.slope_error());
    assert!((line.intercept_error() - 1.1247).abs() < 1e-4, "{}", line.intercept_error());
    let (x, half) = line.reaches(8.0);
    assert!((x - 10.0).abs() < 0.01 && half > 1.0 && half < 3.0, "{x} ± {half}");
}

#[test]
fn no_line_goes_through_one_value_of_x() {
    assert_eq!(Line::fit(&[(1.0, 1.0), (2.0, 2.0)]), None);
    assert_eq!(Line::fit(&[(5.0, 1.0), (5.0, 2.0), (5.0, 3.0)]), None);
}

#[test]
fn a_seed_repeats_its_numbers() {
    let draw = |seed| {
        let mut random = SeededRandom::new(seed);
        (0..1000).map(|_| uniform(&mut random)).collect::<Vec<_>>()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    let mean = draw(7).iter().sum::<f64>() / 1000.0;
    assert!((mean - 0.5).abs() < 0.03 && draw(7).iter().all(|u| (0.0..1.0).contains(u)));
}
