//! The comparison of protocols: the same files put and got over every target that is given, in
//! rounds, with what it costs at both ends.
//!
//! Every round goes over all targets in an order of its own, so that whatever drifts drifts under
//! all of them alike. Figures are medians over the rounds with an interval that assumes nothing of
//! how they are distributed ([`stats`]); what protection costs is the ratio to the plain protocol
//! of the same family in the same round.
//!
//! - [`plan`] is the job file, [`run`] has the rounds, [`record`] the results, [`findings`] the
//!   result in sentences; [`text`] formats it as text.

pub mod findings;
pub mod plan;
pub mod record;
pub mod run;
pub mod stats;
pub mod text;

pub use plan::Plan;
pub use record::Comparison;

#[cfg(test)]
mod tests;
