//! What can be set of the service.

use std::net::SocketAddr;

use super::targets::SignIn;

/// The settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The portal for initiators to connect to (TargetAddress); none for the address that they
    /// connected to, which is wrong behind network address translation.
    pub portals: Vec<SocketAddr>,
    /// How initiators sign in for discovery.
    pub discovery: SignIn,
}
