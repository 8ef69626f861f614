//! The network in the tree: what the machine has, what is configured, and changes that are
//! reverted unless they are confirmed. The helper makes them (`crates/host/helper`).
//!
//! - [`node`]: the declarations. [`wanted`]: the document as a configuration.
//! - [`room`]: changes, confirmations, and the way back in the document. [`shown`]: states of
//!   nodes. [`link`]: the connection to the helper. [`carrier`]: links that are down.
//!   [`partitions`]: P_Keys of InfiniBand.

mod carrier;
pub mod link;
pub mod node;
mod partitions;
pub mod room;
mod shown;
pub mod wanted;
