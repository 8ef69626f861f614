//! Levels and rates that are read once a second rather than recorded: the machine's counters.
//!
//! Room `host` makes these, `analytics` collects them; neither needs to know the other.

/// One statistic of the second just past.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// `cpu.utilization`, as declared in `schema/`.
    pub stat: &'static str,
    /// What the two keys of a row are: `["disk", "op"]`; an unused one is empty.
    pub dimensions: [&'static str; 2],
    /// The statistic as a whole; not always the sum of its rows (a mean of CPUs is not).
    pub total: f64,
    /// The elements, per second for counters and the level for gauges. Not below zero. An element
    /// of a range is a number in the unit of its dimension.
    pub rows: Vec<(String, String, f64)>,
}

impl Sample {
    /// A statistic that has no breakdown.
    pub fn raw(stat: &'static str, total: f64) -> Self {
        Self { stat, dimensions: ["", ""], total, rows: Vec::new() }
    }
}

/// Something that can be asked for samples once a second.
pub trait Sampler: Send {
    /// The samples since the call before, at `now_ns` (ns since the epoch). The first call gives
    /// levels only: a rate needs two readings.
    fn sample(&mut self, now_ns: u64) -> Vec<Sample>;

    /// The reading before the first second: rates are computed from it, and it is not reported.
    /// Samplers that report events omit it: earlier events belong to the first second.
    fn begin(&mut self, now_ns: u64) {
        self.sample(now_ns);
    }
}
