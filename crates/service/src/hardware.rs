//! `/maintenance/hardware`: what this machine is made of, and its health. Seen, never set.
//!
//! - [`node`]: the declarations. [`shown`]: states of nodes. [`pool`]: pools of disks.
//! - [`room`]: looks at the machine, queries the health of disks, remembers (`hardware.json`).

pub mod node;
pub mod pool;
pub mod room;
mod shown;
