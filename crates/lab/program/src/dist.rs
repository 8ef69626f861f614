//! Distributions of sizes, counts and indexes, sampled from a seeded generator.

use base::random::{Random, SeededRandom};

/// One row of a table: values between `low` and `high`, all alike, with a share of the whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Share, relative to the sum of all.
    pub weight: f64,
    /// Least value.
    pub low: f64,
    /// Largest value.
    pub high: f64,
}

/// The form of a distribution.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// Always the same.
    Fixed(f64),
    /// Between two values, all alike.
    Uniform {
        /// Least value.
        lower: f64,
        /// Largest value.
        upper: f64,
    },
    /// Gamma with shape and mean.
    Gamma {
        /// Shape; Filebench names it gamma.
        shape: f64,
        /// Mean.
        mean: f64,
    },
    /// A table of segments.
    Tabular(Vec<Segment>),
    /// Sum of `order` exponential values.
    Erlang {
        /// How many.
        order: u32,
        /// Mean of the sum.
        mean: f64,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// The logarithm is normal.
    Lognormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Normal.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        sigma: f64,
    },
    /// A triangle.
    Triangular {
        /// Least value.
        lower: f64,
        /// Largest value.
        upper: f64,
        /// Most frequent value.
        mode: f64,
    },
    /// Weibull.
    Weibull {
        /// Shape.
        shape: f64,
        /// Scale.
        scale: f64,
    },
}

/// A distribution, with what is done to each value: `offset` is added, the sum is rounded to a
/// multiple of `round`, then limited to `min` and `max`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dist {
    /// The form.
    pub form: Form,
    /// Added to each value.
    pub offset: f64,
    /// Multiple to which values are rounded; 0 or 1 for whole numbers.
    pub round: u64,
    /// Least value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
}

impl From<Form> for Dist {
    fn from(form: Form) -> Self {
        Self { form, offset: 0.0, round: 0, min: 0, max: u64::MAX }
    }
}

impl Dist {
    /// Always `value`.
    pub fn fixed(value: u64) -> Self {
        Form::Fixed(value as f64).into()
    }

    /// The value, if there is only one.
    pub fn constant(&self) -> Option<u64> {
        match self.form {
            Form::Fixed(value) => Some(self.finish(value)),
            _ => None,
        }
    }

    /// The next value.
    #[inline]
    pub fn sample(&self, random: &mut SeededRandom) -> u64 {
        self.finish(self.draw(random))
    }

    /// The next value before it is rounded and limited.
    #[inline]
    pub fn draw(&self, random: &mut SeededRandom) -> f64 {
        if let Form::Fixed(value) = self.form {
            return value + self.offset;
        }
        draw(&self.form, random) + self.offset
    }

    /// The mean before values are rounded and limited.
    pub fn mean(&self) -> f64 {
        self.offset + mean(&self.form)
    }

    #[inline]
    fn finish(&self, value: f64) -> u64 {
        let value = if self.round > 1 {
            let unit = self.round as f64;
            (value / unit).round() * unit
        } else {
            value
        };
        // Saturates; what is not a number becomes 0.
        (value as u64).clamp(self.min, self.max.max(self.min))
    }

    /// Why the parameters are invalid, if they are.
    pub fn fault(&self) -> Option<&'static str> {
        let positive = |values: &[f64]| values.iter().all(|v| v.is_finite() && *v > 0.0);
        let finite = |values: &[f64]| values.iter().all(|v| v.is_finite());
        let valid = match &self.form {
            Form::Fixed(value) => value.is_finite(),
            Form::Uniform { lower, upper } => finite(&[*lower, *upper]) && lower <= upper,
            Form::Gamma { shape, mean } => positive(&[*shape]) && finite(&[*mean]) && *mean >= 0.0,
            Form::Erlang { order, mean } => (1..=1000).contains(order) && positive(&[*mean]),
            Form::Exponential { mean } => positive(&[*mean]),
            Form::Lognormal { mu, sigma } | Form::Normal { mean: mu, sigma } => {
                finite(&[*mu, *sigma]) && *sigma >= 0.0
            }
            Form::Triangular { lower, upper, mode } => {
                finite(&[*lower, *upper, *mode])
                    && lower < upper
                    && (*lower..=*upper).contains(mode)
            }
            Form::Weibull { shape, scale } => positive(&[*shape, *scale]),
            Form::Tabular(rows) => {
                let sum: f64 = rows.iter().map(|row| row.weight).sum();
                let row = |r: &Segment| r.weight >= 0.0 && r.low <= r.high && r.low >= 0.0;
                rows.iter().all(row) && sum > 0.0
            }
        };
        match valid {
            _ if self.min > self.max => Some("the minimum is above the maximum"),
            true => None,
            false => Some("the parameters are outside the range of the distribution"),
        }
    }
}

/// A number from 0 up to but not 1.
#[inline]
pub fn unit(random: &mut SeededRandom) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A number above 0, up to 1: of which there is a logarithm.
#[inline]
fn unit_above_zero(random: &mut SeededRandom) -> f64 {
    1.0 - unit(random)
}

fn draw(form: &Form, random: &mut SeededRandom) -> f64 {
    match form {
        Form::Fixed(value) => *value,
        Form::Uniform { lower, upper } => lower + unit(random) * (upper - lower),
        Form::Gamma { shape, mean } => gamma(*shape, random) * (mean / shape),
        Form::Tabular(rows) => tabular(rows, random),
        Form::Erlang { order, mean } => {
            let sum: f64 = (0..*order).map(|_| -unit_above_zero(random).ln()).sum();
            sum * mean / f64::from(*order)
        }
        Form::Exponential { mean } => -unit_above_zero(random).ln() * mean,
        Form::Lognormal { mu, sigma } => (mu + sigma * normal(random)).exp(),
        Form::Normal { mean, sigma } => mean + sigma * normal(random),
        Form::Triangular { lower, upper, mode } => {
            let (u, span) = (unit(random), upper - lower);
            let at_mode = (mode - lower) / span;
            if u < at_mode {
                lower + (u * span * (mode - lower)).sqrt()
            } else {
                upper - ((1.0 - u) * span * (upper - mode)).sqrt()
            }
        }
        Form::Weibull { shape, scale } => scale * (-unit_above_zero(random).ln()).powf(1.0 / shape),
    }
}

fn mean(form: &Form) -> f64 {
    match form {
        Form::Fixed(value) => *value,
        Form::Uniform { lower, upper } => f64::midpoint(*lower, *upper),
        Form::Gamma { mean, .. } | Form::Erlang { mean, .. } | Form::Exponential { mean } => *mean,
        Form::Normal { mean, .. } => *mean,
        Form::Lognormal { mu, sigma } => (mu + sigma * sigma / 2.0).exp(),
        Form::Triangular { lower, upper, mode } => (lower + upper + mode) / 3.0,
        Form::Weibull { shape, scale } => scale * gamma_function(1.0 + 1.0 / shape),
        Form::Tabular(rows) => {
            let sum: f64 = rows.iter().map(|row| row.weight).sum();
            let weighted = |row: &Segment| row.weight * f64::midpoint(row.low, row.high);
            rows.iter().map(weighted).sum::<f64>() / sum
        }
    }
}

/// A standard normal value: Box and Muller, of which one of two values is used, so that each call
/// draws the same number of times.
fn normal(random: &mut SeededRandom) -> f64 {
    let radius = (-2.0 * unit_above_zero(random).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit(random)).cos()
}

/// A gamma value of scale 1: Marsaglia and Tsang (2000); below shape 1 by their section 6.
fn gamma(shape: f64, random: &mut SeededRandom) -> f64 {
    if shape < 1.0 {
        let boost = unit_above_zero(random).powf(1.0 / shape);
        return gamma(shape + 1.0, random) * boost;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(random);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && unit_above_zero(random).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

fn tabular(rows: &[Segment], random: &mut SeededRandom) -> f64 {
    let sum: f64 = rows.iter().map(|row| row.weight).sum();
    let mut left = unit(random) * sum;
    let mut last = 0.0;
    for row in rows.iter().filter(|row| row.weight > 0.0) {
        if left < row.weight {
            return row.low + left / row.weight * (row.high - row.low);
        }
        left -= row.weight;
        last = row.high;
    }
    // Only when the sum was rounded.
    last
}

/// The gamma function for arguments of at least 1: Lanczos with g = 7, to 15 digits.
fn gamma_function(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + 7.5;
    let sum = TERMS
        .iter()
        .zip(1..)
        .fold(0.999_999_999_999_809_9, |sum, (term, i)| sum + term / (x + f64::from(i)));
    std::f64::consts::TAU.sqrt() * t.powf(x + 0.5) * (-t).exp() * sum
}

#[cfg(test)]
mod tests;
