//! What runs use of the server that starts them.

use std::io;
use std::os::fd::OwnedFd;

use crate::appliance::ShareStatus;

/// What runs use of the server.
pub struct Served {
    /// What is served now.
    pub shares: Box<dyn Fn() -> Vec<ShareStatus> + Send + Sync>,
    /// The end of a connection by which one run enters its files in the table of opens
    /// (`sync::guard`).
    pub guard: Box<dyn Fn() -> io::Result<OwnedFd> + Send + Sync>,
}
