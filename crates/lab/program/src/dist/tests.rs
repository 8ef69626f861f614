//! Samples against quantiles that scipy 1.17.1 computed (`scipy.stats`, method `ppf`).

use super::*;

/// Where quantiles are compared.
const SHARES: [f64; 9] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];
const SAMPLES: usize = 40_000;
/// Kolmogorov–Smirnov at a significance of 0.001, times the root of the samples.
const CRITICAL: f64 = 1.949;

fn tabular_form() -> Form {
    let row = |weight, low, high| Segment { weight, low, high };
    Form::Tabular(vec![
        row(80.0, 1024.0, 4096.0),
        row(15.0, 4096.0, 16384.0),
        row(5.0, 16384.0, 65536.0),
    ])
}

/// Form, offset, quantiles, mean.
fn recorded() -> Vec<(Form, f64, [f64; 9], f64)> {
    let mut rows = with_closed_form();
    rows.push((
        Form::Gamma { shape: 1.5, mean: 16384.0 },
        0.0,
        [
            627.13475, 1921.55, 3191.4632, 6622.0464, 12921.372, 22437.041, 34140.917, 42678.834,
            61958.099,
        ],
        16384.0,
    ));
    rows.push((
        Form::Gamma { shape: 0.5, mean: 4608.0 },
        1024.0,
        [
            1024.7239, 1042.1193, 1096.7639, 1491.8551, 3120.347, 7121.7834, 13491.144, 18725.442,
            31597.604,
        ],
        5632.0,
    ));
    rows.push((
        Form::Erlang { order: 3, mean: 900.0 },
        0.0,
        [
            130.81355, 245.30743, 330.6196, 518.18983, 802.21809, 1176.1206, 1596.6961, 1888.7381,
            2521.7841,
        ],
        900.0,
    ));
    rows.push((
        Form::Lognormal { mu: 6.0, sigma: 0.75 },
        0.0,
        [
            70.473665, 117.49077, 154.29037, 243.26045, 403.42879, 669.0557, 1054.8604, 1385.256,
            2309.4413,
        ],
        534.45632,
    ));
    rows.push((
        Form::Normal { mean: 5000.0, sigma: 800.0 },
        0.0,
        [
            3138.9217, 3684.1171, 3974.7587, 4460.4082, 5000.0, 5539.5918, 6025.2413, 6315.8829,
            6861.0783,
        ],
        5000.0,
    ));
    rows
}

fn with_closed_form() -> Vec<(Form, f64, [f64; 9], f64)> {
    vec![
        (
            Form::Uniform { lower: 4096.0, upper: 8192.0 },
            0.0,
            [4136.96, 4300.8, 4505.6, 5120.0, 6144.0, 7168.0, 7782.4, 7987.2, 8151.04],
            6144.0,
        ),
        (
            Form::Exponential { mean: 1000.0 },
            0.0,
            [
                10.050336, 51.293294, 105.36052, 287.68207, 693.14718, 1386.2944, 2302.5851,
                2995.7323, 4605.1702,
            ],
            1000.0,
        ),
        (
            Form::Triangular { lower: 100.0, upper: 1000.0, mode: 300.0 },
            0.0,
            [
                142.42641, 194.86833, 234.16408, 312.61365, 438.75139, 603.1373, 749.00199,
                822.51761, 920.62746,
            ],
            466.66667,
        ),
        (
            Form::Weibull { shape: 1.7, scale: 2000.0 },
            0.0,
            [
                133.61096, 348.53156, 532.27324, 961.0443, 1612.122, 2423.675, 3266.6157,
                3813.5187, 4911.0518,
            ],
            1784.489,
        ),
        (
            tabular_form(),
            0.0,
            [1062.4, 1216.0, 1408.0, 1984.0, 2944.0, 3904.0, 12288.0, 16384.0, 55705.6],
            5632.0,
        ),
    ]
}

/// The largest distance of the samples' distribution function from the shares at the quantiles.
fn distance(samples: &mut [f64], quantiles: &[f64; 9]) -> f64 {
    samples.sort_by(f64::total_cmp);
    let below = |x: f64| samples.partition_point(|s| *s <= x) as f64 / samples.len() as f64;
    SHARES.iter().zip(quantiles).map(|(p, x)| (below(*x) - p).abs()).fold(0.0, f64::max)
}

#[test]
fn samples_are_distributed_as_scipy_computes() {
    for (form, offset, quantiles, mean) in recorded() {
        let name = format!("{form:?}");
        let dist = Dist { offset, ..form.into() };
        let mut random = SeededRandom::new(0x5eed);
        let mut samples: Vec<f64> = (0..SAMPLES).map(|_| dist.draw(&mut random)).collect();
        let distance = distance(&mut samples, &quantiles);
        let bound = CRITICAL / (SAMPLES as f64).sqrt();
        assert!(distance < bound, "{name}: distance {distance}, at most {bound}");
        assert!((dist.mean() / mean - 1.0).abs() < 1e-7, "{name}: mean {}", dist.mean());
        let sampled = samples.iter().sum::<f64>() / SAMPLES as f64;
        assert!((sampled / mean - 1.0).abs() < 0.03, "{name}: mean of samples {sampled}");
    }
}

#[test]
fn another_shape_is_detected() {
    // The test above can fail: a shape 10 % larger is outside its bound.
    let (.., quantiles, _) = recorded().swap_remove(5);
    let dist = Dist::from(Form::Gamma { shape: 1.65, mean: 16384.0 });
    let mut random = SeededRandom::new(0x5eed);
    let mut samples: Vec<f64> = (0..SAMPLES).map(|_| dist.draw(&mut random)).collect();
    assert!(distance(&mut samples, &quantiles) > CRITICAL / (SAMPLES as f64).sqrt());
}

#[test]
fn values_are_rounded_then_limited() {
    let dist = Dist { round: 1000, min: 2000, max: 2500, ..Dist::fixed(2600) };
    assert_eq!(dist.constant(), Some(2500));
    assert_eq!(Dist { round: 1000, ..Dist::fixed(1499) }.constant(), Some(1000));
    assert_eq!(Dist { min: 7, ..Dist::fixed(0) }.constant(), Some(7));
    assert_eq!(Dist::from(Form::Fixed(-3.0)).constant(), Some(0), "nothing is below zero");
    assert_eq!(Dist::from(Form::Fixed(f64::NAN)).constant(), Some(0));
}

#[test]
fn the_same_seed_gives_the_same_values() {
    for (form, ..) in recorded() {
        let dist = Dist::from(form);
        let draw = || {
            let mut random = SeededRandom::new(9);
            (0..100).map(|_| dist.sample(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(draw(), draw());
    }
}

#[test]
fn invalid_parameters_are_refused() {
    let invalid = [
        Form::Uniform { lower: 2.0, upper: 1.0 },
        Form::Gamma { shape: 0.0, mean: 1.0 },
        Form::Erlang { order: 0, mean: 1.0 },
        Form::Exponential { mean: -1.0 },
        Form::Normal { mean: 0.0, sigma: -1.0 },
        Form::Triangular { lower: 0.0, upper: 1.0, mode: 2.0 },
        Form::Weibull { shape: f64::NAN, scale: 1.0 },
        Form::Tabular(vec![Segment { weight: 0.0, low: 0.0, high: 1.0 }]),
        Form::Tabular(Vec::new()),
    ];
    for form in invalid {
        assert!(Dist::from(form.clone()).fault().is_some(), "{form:?}");
    }
    assert!(Dist { min: 2, max: 1, ..Dist::fixed(1) }.fault().is_some());
    for (form, ..) in recorded() {
        assert_eq!(Dist::from(form).fault(), None);
    }
}
