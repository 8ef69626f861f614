//! Access rights asked for and granted: bits of RFC 1813 §3.3.4.

/// Read data or list a directory.
pub const READ: u32 = 0x01;
/// Look up a name in a directory.
pub const LOOKUP: u32 = 0x02;
/// Rewrite data.
pub const MODIFY: u32 = 0x04;
/// Write new data or add names.
pub const EXTEND: u32 = 0x08;
/// Delete a name in a directory.
pub const DELETE: u32 = 0x10;
/// Execute a file.
pub const EXECUTE: u32 = 0x20;
