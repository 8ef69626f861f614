//! What can be set of the service.

use std::net::SocketAddr;

use super::targets::SignIn;

/// The settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Where initiators are told to connect (TargetAddress); none for the address by which they
    /// have come, which is wrong behind a translation of addresses.
    pub portals: Vec<SocketAddr>,
    /// How initiators sign in for discovery.
    pub discovery: SignIn,
}
