//! Network load: profiles of uperf, and both ends of the connections that they describe.
//!
//! - [`profile`]: what a profile has: groups, transactions, flowops.
//! - [`read`]: from XML to a profile, or a fault with file, line and flowop; [`xml`]: the part of
//!   XML that profiles need.
//! - [`script`]: what each thread of an end does; [`machine`]: which act is next. Pure.
//! - [`engine`]: an end, its threads and listeners; [`socket`]: what std does not know of sockets.
//! - [`count`]: what was counted.
//! - [`limits`]: bounds of all of it.

pub mod count;
pub mod engine;
pub mod limits;
pub mod machine;
pub mod profile;
pub mod read;
pub mod script;
pub mod socket;
pub mod xml;
