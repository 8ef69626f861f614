//! Seeded faults for tests; nothing here is ever linked into the server.
//!
//! - [`forget`]: a file system that forgets what was not flushed, and can be slow on purpose.
//! - [`through`]: one that passes calls on to a directory, and is the same after each mount.

pub mod forget;
pub mod through;
