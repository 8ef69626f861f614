//! The file contract that every protocol serves from, and the back ends behind it.
//!
//! - [`fs`]: the contract: [`fs::FileSystem`], what goes in and what comes out.
//! - [`status`]: the one list of ways an operation fails; each protocol has one table from it.
//! - [`attr`]: attributes of a file, and the changes that a caller may ask for.
//! - [`cred`]: who is asking.
//! - [`handle`]: names for files that survive restart and rename.

pub mod attr;
pub mod cred;
pub mod fs;
pub mod handle;
pub mod status;
