//! NEGOTIATE (MS-SMB2 §3.3.5.3, §3.3.5.4): which version, and what signs and encrypts.

use std::rc::Rc;

use base::clock::wall_ns;
use base::limits::{SMB_IO_MAX, SMB_TRANSACT_MAX};
use base::random::{Random, SystemRandom};
use vfs::attr::Time;
use wire::smb::negotiate::{
    Cipher, Contexts, Dialect, Request, Response, Signing, capabilities, security_mode,
};
use wire::smb::status::NtStatus;
use wire::smb::{spnego, time};

use super::connection::{Connection, Negotiated};
use super::settings::Encryption;
use super::status;

/// Bytes of our salt.
const SALT: usize = 32;

/// Bytes that one credit pays for.
const CREDIT: u32 = 64 << 10;

/// FILETIME now.
pub(super) fn now() -> u64 {
    let Time { sec, nsec } = Time::from_ns(wall_ns());
    time::from_unix(sec, nsec)
}

impl Connection {
    /// SecurityMode of the NEGOTIATE response.
    pub fn security_mode(&self) -> u16 {
        match self.settings.signing_required {
            true => security_mode::ENABLED | security_mode::REQUIRED,
            false => security_mode::ENABLED,
        }
    }

    /// The response in any dialect.
    fn response(&self, dialect: Dialect, capabilities: u32, contexts: Contexts) -> Response {
        // Without a CreditCharge, which 2.0.2 does not have, nothing is larger (§3.3.5.4).
        let one_credit = dialect == Dialect::SMB202;
        let most = |size: usize| if one_credit { CREDIT } else { size as u32 };
        Response {
            security_mode: self.security_mode(),
            dialect,
            server_guid: self.server.guid,
            capabilities,
            max_transact: most(SMB_TRANSACT_MAX),
            max_read: most(SMB_IO_MAX),
            max_write: most(SMB_IO_MAX),
            system_time: now(),
            blob: spnego::offer(),
            contexts,
        }
    }

    /// The response to a request of SMB 1: negotiate again.
    pub fn again(&self, dialect: Dialect) -> Response {
        self.response(dialect, capabilities::LARGE_MTU, Contexts::default())
    }

    /// Answers NEGOTIATE.
    ///
    /// # Errors
    /// The status of the response.
    pub fn negotiate(&self, message: &[u8]) -> Result<Response, NtStatus> {
        let request = Request::decode(message).map_err(status::of_wire)?;
        let mut served = Dialect::SERVED.into_iter().rev();
        let dialect = served.find(|dialect| request.dialects.contains(dialect));
        let dialect = dialect.ok_or(NtStatus::NOT_SUPPORTED)?;
        let (signing, cipher, contexts) = match dialect {
            Dialect::SMB311 => self.agree(&request.contexts)?,
            Dialect::SMB202 | Dialect::SMB210 => (Signing::HmacSha256, None, Contexts::default()),
            _ => {
                let encrypts = request.capabilities & capabilities::ENCRYPTION != 0
                    && self.settings.encryption != Encryption::Off;
                let cipher = encrypts.then_some(Cipher::Aes128Ccm);
                (Signing::AesCmac, cipher, Contexts::default())
            }
        };
        let mut ours = match dialect {
            Dialect::SMB202 => 0,
            _ => capabilities::LARGE_MTU | capabilities::LEASING,
        };
        if cipher.is_some() && dialect != Dialect::SMB311 {
            ours |= capabilities::ENCRYPTION;
        }
        let dialects = request.dialects.iter().map(|dialect| dialect.0).collect();
        if self.settings.multichannel && dialect >= Dialect::SMB300 {
            ours |= capabilities::MULTI_CHANNEL;
        }
        if self.server.handles.get().is_some() && dialect >= Dialect::SMB300 {
            ours |= capabilities::PERSISTENT_HANDLES;
        }
        let negotiated = Negotiated {
            dialect,
            signing,
            cipher,
            client: (request.client_guid, request.capabilities, request.security_mode, dialects),
            capabilities: ours,
        };
        *self.negotiated.borrow_mut() = Some(Rc::new(negotiated));
        Ok(self.response(dialect, ours, contexts))
    }

    /// What 3.1.1 negotiates by contexts.
    fn agree(&self, theirs: &Contexts) -> Result<(Signing, Option<Cipher>, Contexts), NtStatus> {
        if theirs.salt.is_none() {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        let ciphers = theirs.ciphers.as_deref().unwrap_or_default();
        // The client's order decides: it knows what it computes quickly.
        let cipher = match self.settings.encryption {
            Encryption::Off => None,
            _ => ciphers.iter().find_map(|number| Cipher::of(*number)),
        };
        let signings = theirs.signings.as_deref().unwrap_or_default();
        let signing = signings.iter().find_map(|number| Signing::of(*number));
        let mut salt = vec![0; SALT];
        SystemRandom.fill(&mut salt);
        let ours = Contexts {
            salt: Some(salt),
            // 0: none that both have (§3.3.5.4).
            ciphers: theirs.ciphers.is_some().then(|| vec![cipher.map_or(0, |one| one as u16)]),
            signings: signing.map(|signing| vec![signing as u16]),
        };
        Ok((signing.unwrap_or(Signing::AesCmac), cipher, ours))
    }
}
