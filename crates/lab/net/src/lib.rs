//! Network load: profiles of uperf, and both ends of the connections that they describe.
//!
//! - [`profile`]: what a profile has: groups, transactions, flowops.
//! - [`read`]: from XML to a profile, or a fault with file, line and flowop; [`xml`]: the part of
//!   XML that profiles need.
//! - [`limits`]: bounds of all of it.

pub mod limits;
pub mod profile;
pub mod read;
pub mod xml;
