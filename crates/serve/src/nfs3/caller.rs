//! Who calls: the connection's peer, and the identity that its last call claimed.

use std::net::IpAddr;

use probe::op::OpRecord;
use vfs::cred::Cred;
use wire::rpc::{Auth, AuthStat};

/// User and group of callers without an identity (nobody, nogroup).
const NOBODY: u32 = 65_534;

/// A connection's peer. Calls of one connection mostly come from one user, so the identity of the
/// last is kept and only compared.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// Its address, unmapped from v6.
    pub(super) address: IpAddr,
    /// Its number in the statistics.
    client: u32,
    core: u8,
    /// The identity of the call at hand.
    pub(super) cred: Cred,
    /// What its first call says that the machine is called, until it is taken.
    machine: Option<Box<[u8]>>,
    named: bool,
}

impl Caller {
    /// The peer at `address`, `client` in the statistics, served by `core`.
    pub(super) fn new(address: IpAddr, client: u32, core: u8) -> Self {
        let cred = Cred { uid: NOBODY, gid: NOBODY, groups: Vec::new() };
        Self { address, client, core, cred, machine: None, named: false }
    }

    /// Its number in the statistics, and the name of its machine once a call has told it; once.
    #[inline]
    pub(super) fn take_name(&mut self) -> Option<(u32, Box<[u8]>)> {
        self.machine.take().map(|machine| (self.client, machine))
    }

    /// What is known of an operation before its call is read.
    pub(super) fn facts(&self) -> OpRecord {
        OpRecord { client: self.client, core: self.core, user: u32::MAX, ..OpRecord::default() }
    }

    /// The queue of the pool that its operations wait in.
    pub(super) fn queue(&self) -> u64 {
        match self.address {
            IpAddr::V4(v4) => u64::from(v4.to_bits()),
            // The network part of a v6 address is whom we are fair to.
            IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64 | 1 << 63,
        }
    }

    /// Takes on the identity that a call claims.
    ///
    /// # Errors
    /// What to answer to a flavour that we do not take (RFC 5531 §9).
    pub(super) fn identify(&mut self, auth: &Auth<'_>) -> Result<(), AuthStat> {
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
        let cred = &mut self.cred;
        (cred.uid, cred.gid) = (uid, gid);
        if cred.groups != gids {
            cred.groups.clear();
            cred.groups.extend_from_slice(gids);
        }
        Ok(())
    }
}
