//! Clients with several connections: on which core these are, and which fit a session. Pure.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::smb::negotiate::{Cipher, Dialect, Signing};
use wire::smb::status::NtStatus;

use super::leases::ClientGuid;

/// What connections of one session have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelFacts {
    /// The version.
    pub dialect: Dialect,
    /// What signs.
    pub signing: Signing,
    /// What encrypts.
    pub cipher: Option<Cipher>,
    /// ClientGuid.
    pub client: ClientGuid,
}

impl ChannelFacts {
    /// Whether a connection with `other` facts may be one of the session with these.
    ///
    /// # Errors
    /// The status of the response: a key of GMAC signs nothing else.
    pub(crate) const fn permits(&self, other: &Self) -> Result<(), NtStatus> {
        let is_other = self.signing as u16 != other.signing as u16;
        if is_other && matches!(self.signing, Signing::AesGmac) {
            return Err(NtStatus::REQUEST_OUT_OF_SEQUENCE);
        }
        if is_other && matches!(other.signing, Signing::AesGmac) {
            return Err(NtStatus::NOT_SUPPORTED);
        }
        Ok(())
    }
}

/// On which core the connections of each client are that may bind to its sessions.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    cores: Mutex<HashMap<ClientGuid, (usize, usize)>>,
}

/// A connection is one of its client's as long as this lives.
pub(crate) struct ClientConnection {
    clients: Arc<Clients>,
    guid: ClientGuid,
}

impl Clients {
    fn cores(&self) -> MutexGuard<'_, HashMap<ClientGuid, (usize, usize)>> {
        self.cores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another connection of a client, on this core.
    ///
    /// # Errors
    /// The core on which the others are.
    pub fn enter(
        self: &Arc<Self>,
        guid: ClientGuid,
        core: usize,
    ) -> Result<ClientConnection, usize> {
        match self.cores().entry(guid) {
            Entry::Occupied(there) if there.get().0 != core => return Err(there.get().0),
            Entry::Occupied(mut there) => there.get_mut().1 += 1,
            Entry::Vacant(place) => drop(place.insert((core, 1))),
        }
        Ok(ClientConnection { clients: Arc::clone(self), guid })
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        if let Entry::Occupied(mut there) = self.clients.cores().entry(self.guid) {
            there.get_mut().1 -= 1;
            if there.get().1 == 0 {
                there.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests;
