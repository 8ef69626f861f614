//! What every service runs on: one engine that executes operations, and transports.
//!
//! - [`exec`]: operations are tried inline, else on the pool, and completed after their flush.
//! - [`pool`]: a bounded pool of threads for operations that block, fair to clients.
//! - [`transport`]: one runtime for each core, listeners, budgets, buffers.

pub mod exec;
pub mod pool;
pub mod transport;
