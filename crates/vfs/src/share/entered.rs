//! What a share grants to whom calls: the one place where its rules are asked.

use core::net::IpAddr;

use super::rules::{Flavor, Grant, Transport};
use super::{Service, Share};

/// The service whose clients are granted something by rules for hosts.
const EXPORT: Service = Service::EXPORTING[0];

/// From where a call comes, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The caller's address, unmapped from v6.
    pub address: IpAddr,
    /// Its source port.
    pub port: u16,
    /// How its calls come.
    pub transport: Transport,
}

/// What a share grants to one origin, good until its rules change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entered {
    /// The share, and which rules of it said so.
    by: (u16, u64),
    granted: Grant,
}

impl Entered {
    /// Asks the rules of `share`.
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
