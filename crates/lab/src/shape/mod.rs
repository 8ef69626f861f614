//! Shapes of load other than steps in which each thread waits for its reply.
//!
//! - [`open`]: arrivals by a schedule, whatever the server does.

pub mod open;
