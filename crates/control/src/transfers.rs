//! The log of transfers: who took or put which file, when, how much of it, and how it ended, over
//! all protocols that transfer files. `docs/formats/transfers.md` has its form.
//!
//! Connections hand over what has ended and go on; a thread writes it. What that cannot keep up
//! with is dropped and counted. The log is a service to people, no part of what is promised to
//! clients: it is not flushed.
//!
//! - [`record`]: one line of the file. [`wanted`]: which of them are asked for.
//! - [`keeper`]: [`Transfers`], the queue and the files. [`node`]: its place in the tree; [`room`]:
//!   what answers there.

pub mod keeper;
pub mod node;
pub mod record;
mod room;
pub mod wanted;

pub use keeper::Transfers;
pub use record::Record;
pub use wanted::Wanted;

#[cfg(test)]
mod tests;
