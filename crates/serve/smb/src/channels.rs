//! Sessions over several connections (MS-SMB2 §3.3.5.5, step 4; §3.3.5.5.2): a client binds a
//! further connection to a session of it. A session stays on one core, and so do all connections of
//! a client that may do that: at NEGOTIATE a connection is handed to the core of the others with
//! its ClientGuid, before anything of it is carried out.

use std::rc::Rc;

use wire::smb::header::Header;
use wire::smb::negotiate::{Dialect, Request as Negotiate, capabilities};
use wire::smb::status::NtStatus;

use super::connection::Connection;
use super::state::session::{self, Session};

impl Connection {
    /// The core on which the other connections of the client are that sends this NEGOTIATE, if it
    /// is another one.
    pub fn other_core(&self, message: &[u8]) -> Option<usize> {
        let request = Negotiate::decode(message).ok()?;
        let binds = self.settings.multichannel
            && request.capabilities & capabilities::MULTI_CHANNEL != 0
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

    /// The session to which this connection requests to be bound.
    ///
    /// # Errors
    /// The status of the response (MS-SMB2 §3.3.5.5): what is known of a session is so on all
    /// cores; the session itself on one.
    pub fn bound_session(&self, header: &Header, is_signed: bool) -> Result<Rc<Session>, NtStatus> {
        let ours = self.agreed()?.facts();
        if header.session_id == 0 {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        let facts = self.server.sessions.facts(header.session_id);
        let facts = facts.ok_or(NtStatus::USER_SESSION_DELETED)?;
        facts.permits(&ours)?;
        if !self.settings.multichannel || ours.dialect < Dialect::SMB300 {
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
