//! The InfiniBand fabric in the tree and in the statistics (`crates/host/fabric`).
//!
//! - [`node`]: the declarations. [`watch`]: the thread that reads fabrics, and what it has read.
//! - [`shown`]: states of nodes. [`sampler`]: statistics `ib.*`.

pub mod node;
pub mod sampler;
pub mod shown;
pub mod watch;
