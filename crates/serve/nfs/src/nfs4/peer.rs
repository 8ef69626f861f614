//! The caller of a compound, and what a share grants to it.

use std::net::IpAddr;
use std::sync::Arc;

use probe::op::OpRecord;
use vfs::cred::Cred;
use vfs::share::rules::{Flavor, Grant, Transport};
use vfs::share::{self, Origin, Share};

use crate::rpc::Back;
use engine::transport::Budgets;

/// The caller.
#[derive(Debug, Clone, Copy)]
pub struct Peer<'a> {
    /// The identity that it claims; a share may replace it.
    pub cred: &'a Cred,
    /// Its address, unmapped from v6, and its source port: what export rules go by.
    pub address: (IpAddr, u16),
    /// How its calls come, which they go by as well.
    pub transport: Transport,
    /// The authentication flavor of the call; export rules match it too.
    pub flavor: Flavor,
    /// What is known of an operation before it is read: protocol, client, user, core.
    pub facts: OpRecord,
    /// The connection's number: what BIND_CONN_TO_SESSION and trunking go by.
    pub connection: u64,
    /// The way to call the peer back over this connection.
    pub back: Option<&'a Arc<Back>>,
    /// Where an operation that panics is counted.
    pub budgets: &'a Budgets,
}

impl Peer<'_> {
    pub(super) fn origin(&self) -> Origin {
        let (address, port) = self.address;
        Origin { address, port, transport: self.transport }
    }
}

/// What a share grants to the caller, and the identity that it gives to it.
#[derive(Debug, Clone)]
pub struct ShareGrant {
    by: share::OriginGrant,
    /// The access and the squash rule.
    pub grant: Grant,
    /// The identity to act with, where it is not the claimed one.
    pub(super) cred: Option<Cred>,
}

impl ShareGrant {
    /// What `share` grants.
    pub(super) fn new(share: &Share, peer: &Peer<'_>) -> Self {
        let by = share::OriginGrant::new(share, &peer.origin());
        let grant = by.grant(peer.flavor);
        Self { by, grant, cred: grant.acting(peer.cred) }
    }

    pub(super) fn still_holds(&self, share: &Share) -> bool {
        self.by.holds(share)
    }
}
