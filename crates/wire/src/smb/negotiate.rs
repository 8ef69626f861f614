//! NEGOTIATE (MS-SMB2 §2.2.3, §2.2.4), its contexts, and SMB 1's request for SMB 2.

use base::limits::{SMB_BLOB_MAX, SMB_CONTEXTS_MAX, SMB_DIALECTS_MAX};

use super::codec::{Field, Reader, Result, SmbError, buffer, pad, patch};
use super::header::{HEADER, MAGIC_1};

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dialect(pub u16);

impl Dialect {
    /// 2.0.2.
    pub const SMB202: Self = Self(0x0202);
    /// 2.1.
    pub const SMB210: Self = Self(0x0210);
    /// 3.0.
    pub const SMB300: Self = Self(0x0300);
    /// 3.0.2.
    pub const SMB302: Self = Self(0x0302);
    /// 3.1.1.
    pub const SMB311: Self = Self(0x0311);
    /// Whatever of 2, to a request of SMB 1: the client negotiates again.
    pub const WILDCARD: Self = Self(0x02ff);
    /// Those that are served.
    pub const SERVED: [Self; 5] =
        [Self::SMB202, Self::SMB210, Self::SMB300, Self::SMB302, Self::SMB311];

    /// Its display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SMB202 => "2.0.2",
            Self::SMB210 => "2.1",
            Self::SMB300 => "3.0",
            Self::SMB302 => "3.0.2",
            Self::SMB311 => "3.1.1",
            _ => "?",
        }
    }
}

/// SecurityMode.
pub mod security_mode {
    /// Signing is possible.
    pub const ENABLED: u16 = 1;
    /// Signing is required.
    pub const REQUIRED: u16 = 2;
}

/// Capabilities.
pub mod capabilities {
    /// Referrals of DFS.
    pub const DFS: u32 = 1;
    /// Leases.
    pub const LEASING: u32 = 2;
    /// Requests of more than 64 KiB.
    pub const LARGE_MTU: u32 = 4;
    /// Several connections of a session.
    pub const MULTI_CHANNEL: u32 = 8;
    /// Opens that outlive a restart of the server.
    pub const PERSISTENT_HANDLES: u32 = 0x10;
    /// Encryption, in 3.0 and 3.0.2.
    pub const ENCRYPTION: u32 = 0x40;
}

/// An algorithm that encrypts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// AES-128-CCM.
    Aes128Ccm = 1,
    /// AES-128-GCM.
    Aes128Gcm = 2,
    /// AES-256-CCM.
    Aes256Ccm = 3,
    /// AES-256-GCM.
    Aes256Gcm = 4,
}

impl Cipher {
    /// The best first.
    pub const ALL: [Self; 4] = [Self::Aes128Gcm, Self::Aes256Gcm, Self::Aes128Ccm, Self::Aes256Ccm];

    /// The algorithm of this number.
    pub fn of(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|cipher| *cipher as u16 == number)
    }

    /// Bytes of its key.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Ccm | Self::Aes128Gcm => 16,
            Self::Aes256Ccm | Self::Aes256Gcm => 32,
        }
    }

    /// Bytes of its nonce.
    pub const fn nonce_len(self) -> usize {
        match self {
            Self::Aes128Ccm | Self::Aes256Ccm => 11,
            Self::Aes128Gcm | Self::Aes256Gcm => 12,
        }
    }

    /// Its display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Ccm => "AES-128-CCM",
            Self::Aes128Gcm => "AES-128-GCM",
            Self::Aes256Ccm => "AES-256-CCM",
            Self::Aes256Gcm => "AES-256-GCM",
        }
    }
}

/// An algorithm that signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signing {
    /// HMAC-SHA-256, cut to half.
    HmacSha256 = 0,
    /// AES-128-CMAC.
    AesCmac = 1,
    /// AES-128-GMAC.
    AesGmac = 2,
}

impl Signing {
    /// The best first.
    pub const ALL: [Self; 3] = [Self::AesGmac, Self::AesCmac, Self::HmacSha256];

    /// The algorithm of this number.
    pub fn of(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|signing| *signing as u16 == number)
    }
}

/// Types of contexts.
mod context {
    pub(super) const PREAUTH: u16 = 1;
    pub(super) const ENCRYPTION: u16 = 2;
    pub(super) const SIGNING: u16 = 8;
}

/// SHA-512, the only algorithm of the pre-authentication integrity.
const SHA_512: u16 = 1;

/// The contexts of a negotiation. Unknown algorithms are not listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contexts {
    /// The salt, if the pre-authentication integrity is by SHA-512.
    pub salt: Option<Vec<u8>>,
    /// Numbers of ciphers in the order of the sender; `None` without the context.
    pub ciphers: Option<Vec<u16>>,
    /// The same of signing algorithms.
    pub signings: Option<Vec<u16>>,
}

/// Numbers behind their count.
fn numbers(r: &mut Reader<'_>) -> Result<Vec<u16>> {
    let count: u16 = r.get()?;
    if usize::from(count) > SMB_CONTEXTS_MAX {
        return Err(SmbError::Limit(r.what()));
    }
    (0..count).map(|_| r.get()).collect()
}

fn put_numbers(out: &mut Vec<u8>, numbers: &[u16]) {
    (numbers.len() as u16).put(out);
    numbers.iter().for_each(|number| number.put(out));
}

impl Contexts {
    /// Those at an offset of a message. One that comes twice is an error (§3.3.5.4).
    fn decode(msg: &[u8], offset: usize, count: u16) -> Result<Self> {
        if usize::from(count) > SMB_CONTEXTS_MAX {
            return Err(SmbError::Limit("negotiate contexts"));
        }
        let (mut contexts, mut at) = (Self::default(), offset);
        for _ in 0..count {
            let mut r = Reader::at(msg, at, "negotiate context")?;
            let (kind, len): (u16, u16) = (r.get()?, r.get()?);
            let _reserved: u32 = r.get()?;
            let data = r.take(usize::from(len))?;
            contexts.take(kind, data)?;
            at = (at + 8 + usize::from(len)).next_multiple_of(8);
        }
        Ok(contexts)
    }

    fn take(&mut self, kind: u16, data: &[u8]) -> Result<()> {
        let mut r = Reader::new(data, "negotiate context");
        let twice = match kind {
            context::PREAUTH => {
                let (hashes, salt_len): (u16, u16) = (r.get()?, r.get()?);
                if usize::from(hashes) > SMB_CONTEXTS_MAX {
                    return Err(SmbError::Limit("hashes"));
                }
                let mut has_sha = false;
                for _ in 0..hashes {
                    has_sha |= r.get::<u16>()? == SHA_512;
                }
                let salt = r.take(usize::from(salt_len))?.to_vec();
                has_sha && self.salt.replace(salt).is_some()
            }
            context::ENCRYPTION => self.ciphers.replace(numbers(&mut r)?).is_some(),
            context::SIGNING => self.signings.replace(numbers(&mut r)?).is_some(),
            _ => false,
        };
        if twice { Err(SmbError::Value("negotiate context")) } else { Ok(()) }
    }

    /// Appends them to a message that begins at `start`; returns their number.
    fn put(&self, out: &mut Vec<u8>, start: usize) -> u16 {
        let mut count = 0;
        let mut one = |out: &mut Vec<u8>, kind: u16, data: Vec<u8>| {
            pad(out, start, 8);
            kind.put(out);
            (data.len() as u16).put(out);
            0u32.put(out);
            out.extend_from_slice(&data);
            count += 1;
        };
        if let Some(salt) = &self.salt {
            let mut data = Vec::new();
            1u16.put(&mut data);
            (salt.len() as u16).put(&mut data);
            SHA_512.put(&mut data);
            data.extend_from_slice(salt);
            one(out, context::PREAUTH, data);
        }
        for (kind, list) in
            [(context::ENCRYPTION, &self.ciphers), (context::SIGNING, &self.signings)]
        {
            if let Some(list) = list {
                let mut data = Vec::new();
                put_numbers(&mut data, list);
                one(out, kind, data);
            }
        }
        count
    }
}

/// NEGOTIATE of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// [`security_mode`].
    pub security_mode: u16,
    /// [`capabilities`].
    pub capabilities: u32,
    /// The client, as it calls itself.
    pub client_guid: [u8; 16],
    /// Versions that it has.
    pub dialects: Vec<Dialect>,
    /// With 3.1.1 among them.
    pub contexts: Contexts,
}

impl Request {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &[u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "NEGOTIATE")?;
        r.size(36)?;
        let count: u16 = r.get()?;
        let security_mode = r.get()?;
        let _reserved: u16 = r.get()?;
        let (capabilities, client_guid) = (r.get()?, r.get()?);
        let (context_offset, context_count): (u32, u16) = (r.get()?, r.get()?);
        let _reserved: u16 = r.get()?;
        if count == 0 || usize::from(count) > SMB_DIALECTS_MAX {
            return Err(SmbError::Limit("dialects"));
        }
        let dialects: Vec<Dialect> =
            (0..count).map(|_| r.get().map(Dialect)).collect::<Result<_>>()?;
        let contexts = match dialects.contains(&Dialect::SMB311) {
            true => Contexts::decode(msg, context_offset as usize, context_count)?,
            // The field is ClientStartTime then.
            false => Contexts::default(),
        };
        Ok(Self { security_mode, capabilities, client_guid, dialects, contexts })
    }

    /// Appends the body to a message that begins at `start`.
    pub fn put(&self, out: &mut Vec<u8>, start: usize) {
        36u16.put(out);
        (self.dialects.len() as u16).put(out);
        self.security_mode.put(out);
        0u16.put(out);
        self.capabilities.put(out);
        self.client_guid.put(out);
        let at = out.len();
        0u64.put(out);
        self.dialects.iter().for_each(|dialect| dialect.0.put(out));
        if self.dialects.contains(&Dialect::SMB311) {
            pad(out, start, 8);
            let offset = (out.len() - start) as u32;
            let count = self.contexts.put(out, start);
            patch(out, at, &offset.to_le_bytes());
            patch(out, at + 4, &count.to_le_bytes());
        }
    }
}

/// What a server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// [`security_mode`].
    pub security_mode: u16,
    /// The version.
    pub dialect: Dialect,
    /// The server.
    pub server_guid: [u8; 16],
    /// [`capabilities`].
    pub capabilities: u32,
    /// Most bytes of a QUERY, SET or IOCTL.
    pub max_transact: u32,
    /// Most bytes of a READ.
    pub max_read: u32,
    /// Most bytes of a WRITE.
    pub max_write: u32,
    /// FILETIME now.
    pub system_time: u64,
    /// The first token of SPNEGO.
    pub blob: Vec<u8>,
    /// With 3.1.1.
    pub contexts: Contexts,
}

impl Response {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &[u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "NEGOTIATE response")?;
        r.size(65)?;
        let (security_mode, dialect, count) = (r.get()?, Dialect(r.get()?), r.get()?);
        let (server_guid, capabilities) = (r.get()?, r.get()?);
        let (max_transact, max_read, max_write) = (r.get()?, r.get()?, r.get()?);
        let (system_time, _start): (u64, u64) = (r.get()?, r.get()?);
        let (offset, len): (u16, u16) = (r.get()?, r.get()?);
        let context_offset: u32 = r.get()?;
        let place = (usize::from(offset), usize::from(len));
        let blob = buffer(msg, place, SMB_BLOB_MAX, "blob")?.to_vec();
        let contexts = match dialect {
            Dialect::SMB311 => Contexts::decode(msg, context_offset as usize, count)?,
            _ => Contexts::default(),
        };
        let limits = (max_transact, max_read, max_write);
        let (max_transact, max_read, max_write) = limits;
        Ok(Self {
            security_mode,
            dialect,
            server_guid,
            capabilities,
            max_transact,
            max_read,
            max_write,
            system_time,
            blob,
            contexts,
        })
    }

    /// Appends the body to a message that begins at `start`.
    pub fn put(&self, out: &mut Vec<u8>, start: usize) {
        65u16.put(out);
        self.security_mode.put(out);
        self.dialect.0.put(out);
        let at_count = out.len();
        0u16.put(out);
        self.server_guid.put(out);
        self.capabilities.put(out);
        self.max_transact.put(out);
        self.max_read.put(out);
        self.max_write.put(out);
        self.system_time.put(out);
        0u64.put(out);
        ((HEADER + 64) as u16).put(out);
        (self.blob.len() as u16).put(out);
        let at_offset = out.len();
        0u32.put(out);
        out.extend_from_slice(&self.blob);
        if self.dialect == Dialect::SMB311 {
            pad(out, start, 8);
            let offset = (out.len() - start) as u32;
            let count = self.contexts.put(out, start);
            patch(out, at_count, &count.to_le_bytes());
            patch(out, at_offset, &offset.to_le_bytes());
        }
    }
}

/// Whether a message of SMB 1 is a NEGOTIATE that would take SMB 2 (§3.3.5.3): which dialect it is
/// answered with.
pub fn smb1_request(msg: &[u8]) -> Option<Dialect> {
    const NEGOTIATE: u8 = 0x72;
    let rest = msg.strip_prefix(&MAGIC_1)?;
    if rest.first() != Some(&NEGOTIATE) {
        return None;
    }
    // Words (none), a count of bytes, then strings that begin with 2 and end with 0.
    let strings = msg.get(35..)?;
    let has = |name: &[u8]| strings.split(|byte| *byte == 0).any(|one| one == name);
    has(b"\x02SMB 2.???").then_some(Dialect::WILDCARD)
}
