//! The caller: the connection's peer, the identity that its last call claimed, and what the share
//! in question grants to it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use probe::op::{OpRecord, flag};
use vfs::cred::Cred;
use vfs::share::rules::{Flavor, Grant, NOBODY, Squash, Transport};
use vfs::share::{Origin, OriginGrant, Share};
use wire::rpc::{Auth, AuthStat};

use super::back::Back;

/// The number of the next connection.
static NEXT_CONNECTION: AtomicU64 = AtomicU64::new(1);

/// The number of a new connection.
pub(super) fn next_connection() -> u64 {
    NEXT_CONNECTION.fetch_add(1, Ordering::Relaxed)
}

/// A connection's peer. Calls of one connection mostly come from one user, so the identity of the
/// last is kept and only compared.
#[derive(Clone)]
pub struct Caller {
    /// Its address, unmapped from v6.
    pub(crate) address: IpAddr,
    /// Its number in the statistics.
    client: u32,
    core: u8,
    /// Its source port.
    port: u16,
    /// The address of this server that it called, if the kernel reports it.
    local: Option<IpAddr>,
    /// The connection's number: no other one has it in this life of the server.
    connection: u64,
    /// The way back to it.
    back: Option<Arc<Back>>,
    /// How its calls come.
    transport: Transport,
    /// Whether they come by RDMA.
    rdma: bool,
    /// The identity that the call at hand claims.
    claimed: Cred,
    /// The identity to act with, where the share replaces the claimed one.
    replaced: Option<Cred>,
    /// The authentication flavor of the call at hand.
    flavor: Flavor,
    /// What a share grants to this connection, and of that to the call at hand.
    entered: Option<OriginGrant>,
    grant: Grant,
    /// The machine name in its first call, until it is taken.
    machine: Option<Box<[u8]>>,
    named: bool,
}

impl Caller {
    /// The peer at `address`, `client` in the statistics, served by `core`.
    pub(crate) fn new((address, port): (IpAddr, u16), client: u32, core: u8) -> Self {
        Self {
            address,
            client,
            core,
            port,
            connection: next_connection(),
            back: None,
            local: None,
            transport: Transport::Plain,
            rdma: false,
            claimed: Cred { uid: NOBODY, gid: NOBODY, groups: Vec::new() },
            replaced: None,
            flavor: Flavor::None,
            entered: None,
            grant: Grant::ALL,
            machine: None,
            named: false,
        }
    }

    /// The same peer, with the address `local` of this server that it called.
    pub(crate) fn called_at(self, local: Option<IpAddr>) -> Self {
        Self { local, ..self }
    }

    /// The same peer, with calls by RDMA.
    pub(super) fn by_rdma(self) -> Self {
        Self { rdma: true, ..self }
    }

    /// At which of our addresses it called.
    pub(crate) fn local(&self) -> Option<IpAddr> {
        self.local
    }

    /// The connection's number: no other one has it in this life of the server.
    pub(crate) fn connection(&self) -> u64 {
        self.connection
    }

    /// The peer takes calls this way.
    pub(super) fn set_back(&mut self, back: Arc<Back>) {
        self.back = Some(back);
    }

    /// The way back to the peer.
    pub(crate) fn back(&self) -> Option<&Arc<Back>> {
        self.back.as_ref()
    }

    /// Whether its connection has ended: no reply reaches it over that.
    #[inline]
    pub(crate) fn has_left(&self) -> bool {
        self.back.as_ref().is_some_and(|back| back.has_ended())
    }

    /// Its source port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// How its calls come.
    #[inline]
    pub(crate) fn transport(&self) -> Transport {
        self.transport
    }

    /// From where its calls come, and how: what export rules go by.
    #[inline]
    pub(crate) fn origin(&self) -> Origin {
        Origin { address: self.address, port: self.port, transport: self.transport }
    }

    /// The authentication flavor of the call at hand.
    #[inline]
    pub(crate) fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// From now on its calls come over `transport`, and earlier grants are invalid. If its
    /// certificate names it, statistics show that name, not the one that its calls claim.
    pub(crate) fn moves_to(&mut self, transport: Transport, name: Option<&[u8]>) {
        self.transport = transport;
        self.entered = None;
        if let Some(name) = name {
            self.named = true;
            self.machine = Some(name.into());
        }
    }

    /// The identity to act with.
    #[inline]
    pub(crate) fn cred(&self) -> &Cred {
        self.replaced.as_ref().unwrap_or(&self.claimed)
    }

    /// The identity that the call at hand claims: for a program that checks each share separately.
    #[inline]
    pub(crate) fn claimed(&self) -> &Cred {
        &self.claimed
    }

    /// The uid that the call at hand claims: the user of the statistics.
    #[inline]
    pub(crate) fn uid(&self) -> u32 {
        self.claimed.uid
    }

    /// What `share` grants to this caller; from now on its calls have the identity that the share
    /// gives.
    #[inline]
    pub(crate) fn enter(&mut self, share: &Share) -> Grant {
        let entered = match self.entered {
            Some(entered) if entered.holds(share) => entered,
            _ => OriginGrant::new(share, &self.origin()),
        };
        self.entered = Some(entered);
        self.grant = entered.grant(self.flavor);
        self.replaced = match self.grant.squash {
            Squash::None => None,
            _ => self.grant.acting(&self.claimed),
        };
        self.grant
    }

    /// What the share that was entered last grants.
    #[inline]
    pub(crate) fn grant(&self) -> Grant {
        self.grant
    }

    /// Acts as claimed again: the call is about no share.
    pub(crate) fn leave(&mut self) {
        self.replaced = None;
    }

    /// Its number in the statistics, and the name of its machine once a call has sent it; once.
    #[inline]
    pub(crate) fn take_name(&mut self) -> Option<(u32, Box<[u8]>)> {
        self.machine.take().map(|machine| (self.client, machine))
    }

    /// What is known of an operation before its call is read.
    pub(crate) fn facts(&self) -> OpRecord {
        let flags = if self.rdma { flag::RDMA } else { 0 };
        let (client, core) = (self.client, self.core);
        OpRecord { client, core, flags, user: u32::MAX, ..OpRecord::default() }
    }

    /// The queue of the pool that its operations wait in.
    pub(crate) fn queue(&self) -> u64 {
        engine::pool::client(self.address)
    }

    /// Takes on the identity that a call claims.
    ///
    /// # Errors
    /// The status for a flavor that is not accepted (RFC 5531 §9).
    pub(crate) fn identify(&mut self, auth: &Auth<'_>) -> Result<(), AuthStat> {
        let (uid, gid, gids) = match auth {
            Auth::None => (NOBODY, NOBODY, &[][..]),
            Auth::Sys(sys) => {
                if !self.named {
                    self.named = true;
                    self.machine = Some(sys.machine.into());
                }
                (sys.uid, sys.gid, sys.gids.as_slice())
            }
            Auth::Raw { .. } => return Err(AuthStat::TOOWEAK),
        };
        self.flavor = if matches!(auth, Auth::Sys(_)) { Flavor::Sys } else { Flavor::None };
        let cred = &mut self.claimed;
        (cred.uid, cred.gid) = (uid, gid);
        if !cred.has_groups(gids) {
            cred.groups.clear();
            cred.groups.extend_from_slice(gids);
        }
        Ok(())
    }
}
