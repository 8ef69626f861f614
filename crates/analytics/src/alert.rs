//! Alerts: their conditions, and when they fire and clear.
//!
//! Pure: [`rule`] is an alert as it is configured, [`machine`] decides second by second, with the
//! time passed in. Reading the statistics and sending the messages is the task of the caller.

pub mod machine;
pub mod node;
pub mod rule;

pub use machine::{Happening, Machine, Reading, Timing};
pub use rule::{Days, Event, Hours, Local, Rule, Subject, Syslog, Wrong};

#[cfg(test)]
mod tests;
