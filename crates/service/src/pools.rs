//! `/storage`: pools of disks, found on the disks and never configured. No configuration has them,
//! so that no import and no restored revision writes to a disk. The helper does the work
//! (`crates/host/pools`).
//!
//! - [`node`]: the declarations. [`room`]: requests to the helper. [`shown`]: states of nodes.
//!   [`snapshot_actions`]: what can be done with a snapshot. [`faults`]: what is wrong with pools.

mod faults;
pub mod node;
pub mod room;
mod shown;
mod snapshot_actions;
