//! Credentials and verifiers: `opaque_auth` (RFC 5531 §8.2) and AUTH_SYS (appendix A).

use base::limits::{AUTH_SYS_GIDS_MAX, AUTH_SYS_NAME_MAX, RPC_AUTH_MAX};

use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

const AUTH_NONE: u32 = 0;
const AUTH_SYS: u32 = 1;
/// AUTH_TLS: a call that probes for TLS (RFC 9289 §4.1).
pub const AUTH_TLS: u32 = 7;
/// The body of the verifier of a server with TLS (RFC 9289 §4.1).
pub const STARTTLS: &[u8; 8] = b"STARTTLS";

/// A credential or verifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth<'a> {
    /// AUTH_NONE with an empty body.
    None,
    /// AUTH_SYS, unverified ids of the caller.
    Sys(AuthSys<'a>),
    /// Any other flavour, as it came.
    Raw {
        /// Its number.
        flavor: u32,
        /// Its body, at most [`RPC_AUTH_MAX`] bytes.
        body: &'a [u8],
    },
}

impl Auth<'_> {
    /// Number of the flavour.
    pub const fn flavor(&self) -> u32 {
        match self {
            Self::None => AUTH_NONE,
            Self::Sys(_) => AUTH_SYS,
            Self::Raw { flavor, .. } => *flavor,
        }
    }

    /// Whether it is AUTH_TLS as RFC 9289 §4.1 has it, with nothing in its body.
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Raw { flavor: AUTH_TLS, body: [] })
    }
}

/// Decodes AUTH_SYS bodies too. A body that does not fit its flavour is an error that
/// [`super::open_call`] turns into AUTH_BADCRED.
impl<'a> Decode<'a> for Auth<'a> {
    #[inline]
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (flavor, body) = raw(r)?;
        Self::from_raw(flavor, body)
    }
}

/// Flavour and body, the body not looked at.
#[inline]
pub(super) fn raw<'a>(r: &mut Reader<'a>) -> Result<(u32, &'a [u8]), DecodeError> {
    Ok((r.u32("auth flavor")?, r.opaque(RPC_AUTH_MAX, "auth body")?))
}

impl<'a> Auth<'a> {
    #[inline]
    pub(super) fn from_raw(flavor: u32, body: &'a [u8]) -> Result<Self, DecodeError> {
        match flavor {
            AUTH_NONE if body.is_empty() => Ok(Self::None),
            AUTH_SYS => {
                let mut inner = Reader::new(body);
                let sys = AuthSys::decode(&mut inner)?;
                inner.finish()?;
                Ok(Self::Sys(sys))
            }
            _ => Ok(Self::Raw { flavor, body }),
        }
    }
}

impl Encode for Auth<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.flavor());
        match self {
            Self::None => w.u32(0),
            Self::Raw { body, .. } => w.opaque(body),
            Self::Sys(sys) => {
                let length = w.len();
                w.u32(0);
                sys.encode(w);
                w.patch_u32(length, (w.len() - length - 4) as u32);
            }
        }
    }
}

/// `authsys_parms` (RFC 5531, appendix A).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthSys<'a> {
    /// Anything the caller likes.
    pub stamp: u32,
    /// Name of the caller's machine: a label, not an identity.
    pub machine: &'a [u8],
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// Supplementary groups.
    pub gids: Gids,
}

impl<'a> Decode<'a> for AuthSys<'a> {
    #[inline]
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            stamp: r.u32("authsys_parms.stamp")?,
            machine: r.opaque(AUTH_SYS_NAME_MAX, "authsys_parms.machinename")?,
            uid: r.u32("authsys_parms.uid")?,
            gid: r.u32("authsys_parms.gid")?,
            gids: Gids::decode(r)?,
        })
    }
}

impl Encode for AuthSys<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.stamp);
        w.opaque(self.machine);
        w.u32(self.uid);
        w.u32(self.gid);
        self.gids.encode(w);
    }
}

/// The supplementary groups of AUTH_SYS, inline: at most [`AUTH_SYS_GIDS_MAX`].
#[derive(Clone, Copy, Default)]
pub struct Gids {
    gids: [u32; AUTH_SYS_GIDS_MAX],
    count: usize,
}

impl Gids {
    /// None.
    pub const EMPTY: Self = Self { gids: [0; AUTH_SYS_GIDS_MAX], count: 0 };

    /// The first [`AUTH_SYS_GIDS_MAX`] of `gids`; the flavour has no room for more.
    pub fn new(gids: &[u32]) -> Self {
        let mut all = Self::default();
        for (slot, gid) in all.gids.iter_mut().zip(gids) {
            *slot = *gid;
            all.count += 1;
        }
        all
    }

    /// The groups.
    #[inline]
    pub fn as_slice(&self) -> &[u32] {
        &self.gids[..self.count]
    }
}

impl std::ops::Deref for Gids {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        self.as_slice()
    }
}

impl PartialEq for Gids {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Gids {}

impl std::fmt::Debug for Gids {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl Decode<'_> for Gids {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        const WHAT: &str = "authsys_parms.gids";
        let count = r.length(AUTH_SYS_GIDS_MAX, WHAT)?;
        let mut all = Self { gids: [0; AUTH_SYS_GIDS_MAX], count };
        let (words, _) = r.fixed(count * 4, WHAT)?.as_chunks::<4>();
        for (slot, word) in all.gids.iter_mut().zip(words) {
            *slot = u32::from_be_bytes(*word);
        }
        Ok(all)
    }
}

impl Encode for Gids {
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.count as u32);
        for gid in self.as_slice() {
            w.u32(*gid);
        }
    }
}
