//! The header of every message (MS-SMB2 §2.2.1) and that of an encrypted one (§2.2.41).

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::codec::{Field, Reader, Result, SmbError};

/// Bytes of a header.
pub const HEADER: usize = 64;
/// Where its command is.
pub const COMMAND: usize = 12;
/// Where its flags are.
pub const FLAGS: usize = 16;
/// Where its number is.
pub const MESSAGE_ID: usize = 24;
/// Where its signature is.
pub const SIGNATURE: std::ops::Range<usize> = 48..64;
/// Bytes of the header of an encrypted message.
pub const TRANSFORM: usize = 52;
/// How a message begins.
pub const MAGIC: [u8; 4] = *b"\xfeSMB";
/// How a message of SMB 1 begins.
pub const MAGIC_1: [u8; 4] = *b"\xffSMB";
/// How an encrypted message begins.
pub const MAGIC_TRANSFORM: [u8; 4] = *b"\xfdSMB";

/// The command of a request or response (§2.2.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Command(pub u16);

macro_rules! commands {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        impl Command {
            $(#[doc = concat!("SMB2 ", $text, ".")] pub const $name: Self = Self($number);)*
            /// Names by number.
            pub const NAMES: &[&str] = &[$($text),*];
        }
    };
}
commands! {
    NEGOTIATE = 0, "negotiate";
    SESSION_SETUP = 1, "session-setup";
    LOGOFF = 2, "logoff";
    TREE_CONNECT = 3, "tree-connect";
    TREE_DISCONNECT = 4, "tree-disconnect";
    CREATE = 5, "create";
    CLOSE = 6, "close";
    FLUSH = 7, "flush";
    READ = 8, "read";
    WRITE = 9, "write";
    LOCK = 10, "lock";
    IOCTL = 11, "ioctl";
    CANCEL = 12, "cancel";
    ECHO = 13, "echo";
    QUERY_DIRECTORY = 14, "query-directory";
    CHANGE_NOTIFY = 15, "change-notify";
    QUERY_INFO = 16, "query-info";
    SET_INFO = 17, "set-info";
    OPLOCK_BREAK = 18, "oplock-break";
}

/// Flags of a header.
pub mod flags {
    /// It is a response.
    pub const RESPONSE: u32 = 1;
    /// It has an AsyncId in place of a TreeId.
    pub const ASYNC: u32 = 2;
    /// It is related to the request before it in the compound.
    pub const RELATED: u32 = 4;
    /// It is signed.
    pub const SIGNED: u32 = 8;
    /// It may have been sent before, over another connection.
    pub const REPLAY: u32 = 0x2000_0000;
}

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Credits that a request of more than 64 KiB takes.
    pub credit_charge: u16,
    /// NTSTATUS of a response; ChannelSequence of a request.
    pub status: u32,
    /// What it is.
    pub command: Command,
    /// Credits requested, or granted.
    pub credits: u16,
    /// [`flags`].
    pub flags: u32,
    /// Where the next message of a compound is, from this header on; 0 in the last.
    pub next: u32,
    /// Number of the request.
    pub message_id: u64,
    /// AsyncId with [`flags::ASYNC`]; otherwise the process in the lower half, in the upper the
    /// tree.
    pub id: u64,
    /// The session.
    pub session_id: u64,
    /// The signature.
    pub signature: [u8; 16],
}

impl Header {
    /// The tree of a message that is not asynchronous.
    pub const fn tree_id(&self) -> u32 {
        (self.id >> 32) as u32
    }

    /// ChannelSequence of a request, from 3.0 on.
    pub const fn channel(&self) -> u16 {
        self.status as u16
    }

    /// Whether all of these flags are set.
    pub const fn has(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[..4].copy_from_slice(&MAGIC);
        out[4..6].copy_from_slice(&(HEADER as u16).to_le_bytes());
        out[6..8].copy_from_slice(&self.credit_charge.to_le_bytes());
        out[8..12].copy_from_slice(&self.status.to_le_bytes());
        out[12..14].copy_from_slice(&self.command.0.to_le_bytes());
        out[14..16].copy_from_slice(&self.credits.to_le_bytes());
        out[16..20].copy_from_slice(&self.flags.to_le_bytes());
        out[20..24].copy_from_slice(&self.next.to_le_bytes());
        out[24..32].copy_from_slice(&self.message_id.to_le_bytes());
        out[32..40].copy_from_slice(&self.id.to_le_bytes());
        out[40..48].copy_from_slice(&self.session_id.to_le_bytes());
        out[SIGNATURE].copy_from_slice(&self.signature);
        out
    }

    /// The header at the front of a message.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &[u8]) -> Result<Self> {
        Reader::new(msg, "header").get()
    }
}

/// Headers of requests that were decoded in this process so far. They are counted in builds for
/// tests only.
#[cfg(debug_assertions)]
static DECODED: AtomicU64 = AtomicU64::new(0);

/// How many headers of requests were decoded in this process so far.
#[cfg(debug_assertions)]
pub fn requests_decoded() -> u64 {
    DECODED.load(Relaxed)
}

impl Field for Header {
    const SIZE: usize = HEADER;

    fn get(r: &mut Reader<'_>) -> Result<Self> {
        if r.array()? != MAGIC {
            return Err(SmbError::Value("header"));
        }
        r.size(HEADER as u16)?;
        let header = Self {
            credit_charge: r.get()?,
            status: r.get()?,
            command: Command(r.get()?),
            credits: r.get()?,
            flags: r.get()?,
            next: r.get()?,
            message_id: r.get()?,
            id: r.get()?,
            session_id: r.get()?,
            signature: r.get()?,
        };
        #[cfg(debug_assertions)]
        if !header.has(flags::RESPONSE) {
            DECODED.fetch_add(1, Relaxed);
        }
        Ok(header)
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.encode());
    }
}

/// The header of an encrypted message. The additional authenticated data begins at its nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transform {
    /// The tag of the cipher.
    pub signature: [u8; 16],
    /// The nonce: 11 bytes for CCM, 12 for GCM, then zeros.
    pub nonce: [u8; 16],
    /// Bytes of the message.
    pub size: u32,
    /// The session; its keys are used.
    pub session_id: u64,
}

/// Where the bytes begin that a transform header has authenticated.
pub const TRANSFORM_AAD: usize = 20;

impl Transform {
    /// Its bytes.
    pub fn encode(&self) -> [u8; TRANSFORM] {
        let mut out = [0; TRANSFORM];
        out[..4].copy_from_slice(&MAGIC_TRANSFORM);
        out[4..20].copy_from_slice(&self.signature);
        out[20..36].copy_from_slice(&self.nonce);
        out[36..40].copy_from_slice(&self.size.to_le_bytes());
        // Encrypted, in 3.1.1; the algorithm, always 1, in 3.0.
        out[42..44].copy_from_slice(&1u16.to_le_bytes());
        out[44..].copy_from_slice(&self.session_id.to_le_bytes());
        out
    }
}

impl Field for Transform {
    const SIZE: usize = TRANSFORM;

    fn get(r: &mut Reader<'_>) -> Result<Self> {
        if r.array()? != MAGIC_TRANSFORM {
            return Err(SmbError::Value("transform header"));
        }
        let (signature, nonce, size) = (r.get()?, r.get()?, r.get()?);
        let _reserved: u16 = r.get()?;
        // Encrypted, in 3.1.1; the algorithm, always 1, in 3.0.
        if r.get::<u16>()? != 1 {
            return Err(SmbError::Value("transform header"));
        }
        Ok(Self { signature, nonce, size, session_id: r.get()? })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.encode());
    }
}

/// The messages of a compound, each from its header to the next one, padding included.
#[derive(Debug, Clone)]
pub struct Messages<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Messages<'a> {
    /// Those of a frame.
    pub const fn new(frame: &'a [u8]) -> Self {
        Self { rest: Some(frame) }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<(Header, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        let header = match Header::decode(rest) {
            Ok(header) => header,
            Err(error) => return Some(Err(error)),
        };
        let next = header.next as usize;
        if next == 0 {
            return Some(Ok((header, rest)));
        }
        if next < HEADER || !next.is_multiple_of(8) {
            return Some(Err(SmbError::Value("compound")));
        }
        match rest.split_at_checked(next) {
            Some((message, behind)) => {
                self.rest = Some(behind);
                Some(Ok((header, message)))
            }
            None => Some(Err(SmbError::Short("compound"))),
        }
    }
}

/// Appends the body of an error (§2.2.2) with data, which is in a context since 3.1.1 (§2.2.2.1).
pub fn put_error_data(out: &mut Vec<u8>, is_context: bool, data: &[u8]) {
    const CONTEXT: usize = 8;
    let head = if is_context { CONTEXT } else { 0 };
    9u16.put(out);
    out.extend_from_slice(&[u8::from(is_context), 0]);
    ((head + data.len()) as u32).put(out);
    if is_context {
        (data.len() as u32).put(out);
        // The default ErrorId.
        0u32.put(out);
    }
    out.extend_from_slice(data);
}

/// Appends the body of an error (§2.2.2), without error data.
pub fn put_error(out: &mut Vec<u8>) {
    9u16.put(out);
    out.extend_from_slice(&[0; 7]);
}
