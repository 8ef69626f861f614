//! Replication: runs of `dsync` between a share of this server and a directory elsewhere, as
//! actions that users start and stop, or a schedule starts. `docs/howto/replicate.md` describes its
//! use.
//!
//! A run is this program again (`plimsoll dsync --json`), a child that ends with the server: what
//! goes wrong in it takes nothing else along, and it does what the same command does in a terminal.
//!
//! - [`schedule`]: when an action is due, a pure function. [`place`]: what a source or a
//!   destination can be, and the way into a share. [`plan`]: an action as it is configured.
//! - [`progress`]: the events of a run. `run`: the child. [`record`], [`history`]: its results.
//! - [`served`]: what runs use of the server. [`node`]: its place in the tree; [`room`]:
//!   [`Replication`], which answers there.

pub mod history;
pub mod node;
pub mod place;
pub mod plan;
pub mod progress;
pub mod record;
pub mod room;
mod run;
pub mod schedule;
pub mod served;
mod tell;

pub use record::Record;
pub use room::Replication;
pub use served::Served;

#[cfg(test)]
mod tests;
