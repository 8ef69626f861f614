//! What a share grants to the source of a call: the only place that evaluates its rules.

use core::net::IpAddr;

use super::rules::{Flavor, Grant, Transport};
use super::{Service, Share};

/// The service with export rules for hosts.
const EXPORT: Service = Service::EXPORTING[0];

/// Address, port and transport of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The caller's address, unmapped from v6.
    pub address: IpAddr,
    /// Its source port.
    pub port: u16,
    /// The transport of its calls.
    pub transport: Transport,
}

/// What a share grants to one origin, valid until its rules change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OriginGrant {
    /// The share, and the generation of its rules.
    by: (u16, u64),
    granted: Grant,
}

impl OriginGrant {
    /// Evaluates the rules of `share`.
    pub fn new(share: &Share, origin: &Origin) -> Self {
        // Before the rules: if they change meanwhile they are asked again.
        let rules = share.rules_for(EXPORT);
        let by = (share.id, rules.generation());
        let Origin { address, port, transport } = *origin;
        Self { by, granted: rules.get().grant_over(address, port, transport) }
    }

    /// Whether that is what `share` grants now.
    #[inline]
    pub fn holds(&self, share: &Share) -> bool {
        self.by == (share.id, share.rules_for(EXPORT).generation())
    }

    /// What is granted to a call with a credential of this flavour.
    #[inline]
    pub fn grant(&self, flavor: Flavor) -> Grant {
        self.granted.with(flavor)
    }

    /// What is granted if the flavour is right.
    pub fn at_best(&self) -> Grant {
        self.granted
    }
}
