//! The log of transfers: user, file, direction, time, size and outcome, over all protocols that
//! transfer files. `docs/formats/transfers.md` has its format.
//!
//! Connections hand over finished transfers and continue; a thread writes them. Transfers that
//! exceed its capacity are dropped and counted. The log is informational, not part of the
//! guarantees to clients: it is not flushed.
//!
//! - [`record`]: one line of the file. [`wanted`]: a query of them.
//! - [`keeper`]: [`Transfers`], the queue and the files. [`node`]: its place in the tree; [`room`]:
//!   its handler.

pub mod keeper;
pub mod node;
pub mod record;
mod room;
pub mod wanted;

pub use keeper::Transfers;
pub use record::Record;
pub use wanted::TransferFilter;

#[cfg(test)]
mod tests;
