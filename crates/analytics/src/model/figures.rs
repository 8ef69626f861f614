//! The two figures of a row: what they are, and how they are added and compared.
//!
//! Bytes as hundredths leave little room: 2^64 of them are an hour of 51 TB. So samples have a
//! carry in their second figure, which frames of older versions have as 0.

use probe::cell::Cell;
use probe::schema::{Source, schema};

/// A figure of a sample is kept as a whole number of hundredths.
pub const SAMPLE_SCALE: f64 = 100.0;

/// Two figures: operations and bytes; or a sample in hundredths, and how many times 2^64 of them
/// come on top.
pub type Figures = [u64; 2];

/// Adds figures of either sort: operations never reach the end of the range of the first one.
pub(super) fn add(into: &mut Figures, other: Figures) {
    let (sum, carry) = into[0].overflowing_add(other[0]);
    into[0] = sum;
    into[1] = into[1].saturating_add(other[1]).saturating_add(u64::from(carry));
}

/// The figures of a sample.
pub(crate) fn of_sample(value: f64) -> Figures {
    split((value.max(0.0) * SAMPLE_SCALE).round() as u128)
}

/// What the figures of a sample are in hundredths.
pub(crate) fn hundredths(figures: Figures) -> f64 {
    joined(figures) as f64
}

fn joined([low, high]: Figures) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn split(number: u128) -> Figures {
    [number as u64, (number >> 64) as u64]
}

/// How the figures of a statistic are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Two numbers.
    Operations,
    /// One number.
    Samples,
}

impl Sort {
    pub(super) fn of(stat: &str) -> Self {
        let found = stat.split_once('.').and_then(|(group, id)| schema().statistic(group, id));
        match found {
            Some(statistic) if statistic.source != Source::Operations => Self::Samples,
            // A dataset has a whole id, and is one of operations.
            _ => Self::Operations,
        }
    }

    pub(super) fn least(self, one: Figures, other: Figures) -> Figures {
        match self {
            Self::Operations => [one[0].min(other[0]), one[1].min(other[1])],
            Self::Samples => split(joined(one).min(joined(other))),
        }
    }

    pub(super) fn most(self, one: Figures, other: Figures) -> Figures {
        match self {
            Self::Operations => [one[0].max(other[0]), one[1].max(other[1])],
            Self::Samples => split(joined(one).max(joined(other))),
        }
    }

    /// How much figures weigh among `all`, for choosing what gets a row.
    pub(super) fn share(self, figures: Figures, all: Figures) -> u128 {
        let cell = |[count, bytes]: Figures| Cell { count, bytes };
        match self {
            Self::Operations => cell(figures).share_of(cell(all)),
            Self::Samples => joined(figures),
        }
    }
}
