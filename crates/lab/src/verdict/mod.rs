//! What a run shows beyond the name of its limiter. Pure functions: figures go in, findings with
//! their sentences come out.
//!
//! - [`usl`]: how throughput scales, its maximum, and where extrapolation ends.
//! - [`cold`]: whether a read was cold.
//! - [`conclude`]: from the evidence of all steps to one conclusion.
//! - [`demand`]: busy seconds per operation of each resource, the limiter and the next one.
//! - [`device`]: a device that something caps, a cache that warms up.
//! - [`evenness`]: whether clients were served alike, and which was not.
//! - [`prove`]: what interventions refute.
//! - [`ranks`]: exact tests of ranks, intervals without an assumption, Holm's correction.
//! - [`stats`]: quantiles, lines, random numbers.

pub mod cold;
pub mod conclude;
pub mod demand;
pub mod device;
pub mod evenness;
pub mod prove;
pub mod ranks;
pub mod stats;
pub mod usl;

#[cfg(test)]
mod tests;
