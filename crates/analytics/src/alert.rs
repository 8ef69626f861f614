//! Alerts: what is watched, and when people are told.
//!
//! Pure: [`rule`] is an alert as it is configured, [`machine`] decides second by second, with the
//! time handed in. Who reads the statistics and sends the messages is not known here.

pub mod machine;
pub mod node;
pub mod rule;

pub use machine::{Happening, Machine, Reading, Timing};
pub use rule::{Days, Event, Hours, Local, Rule, Subject, Syslog, Wrong};

#[cfg(test)]
mod tests;
