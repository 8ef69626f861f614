//! Seeded faults for tests; nothing here is ever linked into the server.
//!
//! - [`forget`]: a file system that forgets what was not flushed, and can be slow on purpose.

pub mod forget;
