//! Sessions over several connections (MS-SMB2 §3.3.5.5, step 4; §3.3.5.5.2): a client binds a
//! further connection to a session of it. A session stays on one core, and so do all connections of
//! a client that may do that: at NEGOTIATE a connection is handed to the core of the others with
//! its ClientGuid, before anything of it is carried out.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::smb::header::Header;
use wire::smb::negotiate::{Cipher, Dialect, Request as Negotiate, Signing, capabilities};
use wire::smb::status::NtStatus;

use super::state::connection::{Connection, Negotiated};
use super::state::leases::ClientGuid;
use super::state::session::{self, Session};

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
    /// Those of a connection.
    pub(super) const fn of(agreed: &Negotiated) -> Self {
        let Negotiated { dialect, signing, cipher, client, .. } = agreed;
        Self { dialect: *dialect, signing: *signing, cipher: *cipher, client: client.0 }
    }

    /// Whether a connection with `other` facts may be one of the session with these.
    const fn permits(&self, other: &Self) -> Result<(), NtStatus> {
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
pub(super) struct Clients {
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
    fn enter(self: &Arc<Self>, guid: ClientGuid, core: usize) -> Result<ClientConnection, usize> {
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

impl Connection {
    /// The core on which the other connections of the client are that sends this NEGOTIATE, if it
    /// is another one.
    pub fn other_core(&self, message: &[u8]) -> Option<usize> {
        let request = Negotiate::decode(message).ok()?;
        let binds = request.capabilities & capabilities::MULTI_CHANNEL != 0
            && request.dialects.iter().any(|dialect| *dialect >= Dialect::SMB300);
        if !binds || request.client_guid == [0; 16] {
            return None;
        }
        match self.server.clients.enter(request.client_guid, self.core.id.into()) {
            Ok(client) => {
                *self.client.borrow_mut() = Some(client);
                None
            }
            Err(other) => Some(other),
        }
    }

    /// The session that this connection asks to be bound to.
    ///
    /// # Errors
    /// The status of the response (MS-SMB2 §3.3.5.5): what is known of a session is so on all
    /// cores; the session itself on one.
    pub fn bound_session(&self, header: &Header, is_signed: bool) -> Result<Rc<Session>, NtStatus> {
        let ours = ChannelFacts::of(&*self.agreed()?);
        if header.session_id == 0 {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        let facts = self.server.sessions.facts(header.session_id);
        let facts = facts.ok_or(NtStatus::USER_SESSION_DELETED)?;
        facts.permits(&ours)?;
        if ours.dialect < Dialect::SMB300 {
            return Err(NtStatus::REQUEST_NOT_ACCEPTED);
        }
        if facts.dialect != ours.dialect || facts.cipher != ours.cipher {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        let session = session::find(header.session_id).filter(|_| facts.client == ours.client);
        let session = session.ok_or(NtStatus::USER_SESSION_DELETED)?;
        if session.listed.has_ended() {
            return Err(NtStatus::USER_SESSION_DELETED);
        }
        if self.session(session.id).is_ok() {
            return Err(NtStatus::REQUEST_NOT_ACCEPTED);
        }
        // By the key of the session, which the client of it alone has.
        if is_signed { Ok(session) } else { Err(NtStatus::ACCESS_DENIED) }
    }
}

#[cfg(test)]
mod tests;
