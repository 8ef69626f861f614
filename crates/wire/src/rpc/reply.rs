//! Replies (RFC 5531 §9, `reply_body`): the few that a server sends, each in one go, and the
//! general form that a client decodes.

use std::fmt;

use super::auth::{Auth, STARTTLS};
use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

const REPLY: u32 = 1;
const MSG_ACCEPTED: u32 = 0;
const MSG_DENIED: u32 = 1;
const RPC_MISMATCH: u32 = 0;
const AUTH_ERROR: u32 = 1;

/// Bytes of the header that [`success`] writes.
pub const REPLY_SUCCESS_LEN: usize = 24;

xdr_enum! {
    /// Why a credential or verifier was refused (`auth_stat`, RFC 5531 §9).
    pub enum AuthStat {
        /// No failure.
        OK = 0 "AUTH_OK",
        /// Bad credential (seal broken).
        BADCRED = 1 "AUTH_BADCRED",
        /// The client must begin a new session.
        REJECTEDCRED = 2 "AUTH_REJECTEDCRED",
        /// Bad verifier.
        BADVERF = 3 "AUTH_BADVERF",
        /// Verifier expired or replayed.
        REJECTEDVERF = 4 "AUTH_REJECTEDVERF",
        /// Rejected for security reasons.
        TOOWEAK = 5 "AUTH_TOOWEAK",
        /// Bogus response verifier.
        INVALIDRESP = 6 "AUTH_INVALIDRESP",
        /// Reason unknown.
        FAILED = 7 "AUTH_FAILED",
    }
}

/// A reply's header; for [`Accepted::Success`] the results follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyHeader<'a> {
    /// Transaction of the call.
    pub xid: u32,
    /// The answer.
    pub body: ReplyBody<'a>,
}

/// Accepted or denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyBody<'a> {
    /// The call reached the server's programs.
    Accepted {
        /// The server's verifier.
        verf: Auth<'a>,
        /// How it went there.
        stat: Accepted,
    },
    /// It did not.
    Denied(Denied),
}

/// `accept_stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// Results follow.
    Success,
    /// The program is not served here.
    ProgUnavail,
    /// The program's version is not.
    ProgMismatch {
        /// Lowest version served.
        low: u32,
        /// Highest version served.
        high: u32,
    },
    /// The program has no such procedure.
    ProcUnavail,
    /// The arguments cannot be decoded.
    GarbageArgs,
    /// The server is out of memory or the like.
    SystemErr,
}

/// `rejected_reply`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The RPC version is not supported.
    RpcMismatch {
        /// Lowest supported version.
        low: u32,
        /// Highest supported version.
        high: u32,
    },
    /// The caller could not be authenticated.
    AuthError(AuthStat),
}

impl fmt::Display for ReplyBody<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted { stat, .. } => stat.fmt(f),
            Self::Denied(denied) => denied.fmt(f),
        }
    }
}

impl fmt::Display for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => f.write_str("SUCCESS"),
            Self::ProgUnavail => f.write_str("PROG_UNAVAIL (the program is not served there)"),
            Self::ProgMismatch { low, high } => {
                write!(f, "PROG_MISMATCH (versions {low} to {high} of the program are served)")
            }
            Self::ProcUnavail => f.write_str("PROC_UNAVAIL (the program has no such procedure)"),
            Self::GarbageArgs => f.write_str("GARBAGE_ARGS (the arguments cannot be decoded)"),
            Self::SystemErr => f.write_str("SYSTEM_ERR (the server has failed)"),
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RpcMismatch { low, high } => {
                write!(f, "RPC_MISMATCH (supported RPC versions: {low} to {high})")
            }
            Self::AuthError(why) => match why.known_name() {
                Some(name) => write!(f, "AUTH_ERROR ({name})"),
                None => write!(f, "AUTH_ERROR ({})", why.0),
            },
        }
    }
}

impl Accepted {
    const fn number(self) -> u32 {
        match self {
            Self::Success => 0,
            Self::ProgUnavail => 1,
            Self::ProgMismatch { .. } => 2,
            Self::ProcUnavail => 3,
            Self::GarbageArgs => 4,
            Self::SystemErr => 5,
        }
    }
}

impl Encode for ReplyHeader<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.xid);
        w.u32(REPLY);
        match self.body {
            ReplyBody::Accepted { verf, stat } => {
                w.u32(MSG_ACCEPTED);
                verf.encode(w);
                stat.encode(w);
            }
            ReplyBody::Denied(denied) => {
                w.u32(MSG_DENIED);
                denied.encode(w);
            }
        }
    }
}

impl Encode for Accepted {
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.number());
        if let Self::ProgMismatch { low, high } = *self {
            w.u32(low);
            w.u32(high);
        }
    }
}

impl Encode for Denied {
    fn encode(&self, w: &mut Writer<'_>) {
        match *self {
            Self::RpcMismatch { low, high } => {
                w.u32(RPC_MISMATCH);
                w.u32(low);
                w.u32(high);
            }
            Self::AuthError(why) => {
                w.u32(AUTH_ERROR);
                why.encode(w);
            }
        }
    }
}

impl<'a> Decode<'a> for ReplyHeader<'a> {
    #[inline]
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let xid = r.u32("rpc_msg.xid")?;
        match r.u32("msg_type")? {
            REPLY => {}
            got => return Err(DecodeError::BadValue { what: "msg_type", got }),
        }
        let body = match r.u32("reply_stat")? {
            MSG_ACCEPTED => {
                ReplyBody::Accepted { verf: Auth::decode(r)?, stat: Accepted::decode(r)? }
            }
            MSG_DENIED => ReplyBody::Denied(Denied::decode(r)?),
            got => return Err(DecodeError::BadValue { what: "reply_stat", got }),
        };
        Ok(Self { xid, body })
    }
}

impl Decode<'_> for Accepted {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.u32("accept_stat")? {
            0 => Self::Success,
            1 => Self::ProgUnavail,
            2 => Self::ProgMismatch {
                low: r.u32("mismatch_info.low")?,
                high: r.u32("mismatch_info.high")?,
            },
            3 => Self::ProcUnavail,
            4 => Self::GarbageArgs,
            5 => Self::SystemErr,
            got => return Err(DecodeError::BadValue { what: "accept_stat", got }),
        })
    }
}

impl Decode<'_> for Denied {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.u32("reject_stat")? {
            RPC_MISMATCH => Self::RpcMismatch {
                low: r.u32("mismatch_info.low")?,
                high: r.u32("mismatch_info.high")?,
            },
            AUTH_ERROR => Self::AuthError(AuthStat::decode(r)?),
            got => return Err(DecodeError::BadValue { what: "reject_stat", got }),
        })
    }
}

/// Header of a successful reply with an AUTH_NONE verifier; the results follow.
#[inline]
pub fn success(w: &mut Writer<'_>, xid: u32) {
    // Verifier flavour and length, and SUCCESS, are all zero.
    let mut bytes = [0; REPLY_SUCCESS_LEN];
    bytes[..4].copy_from_slice(&xid.to_be_bytes());
    bytes[7] = REPLY as u8;
    w.raw(&bytes);
}

fn accepted(w: &mut Writer<'_>, xid: u32, stat: Accepted) {
    ReplyHeader { xid, body: ReplyBody::Accepted { verf: Auth::None, stat } }.encode(w);
}

/// The reply to a probe with AUTH_TLS where TLS is supported: SUCCESS of NULL, and a verifier of
/// AUTH_NONE with STARTTLS (RFC 9289 §4.1).
pub fn starttls(w: &mut Writer<'_>, xid: u32) {
    let verf = Auth::Raw { flavor: Auth::None.flavor(), body: STARTTLS };
    ReplyHeader { xid, body: ReplyBody::Accepted { verf, stat: Accepted::Success } }.encode(w);
}

/// PROG_UNAVAIL: the program is not served here.
pub fn prog_unavail(w: &mut Writer<'_>, xid: u32) {
    accepted(w, xid, Accepted::ProgUnavail);
}

/// PROG_MISMATCH: versions `low` to `high` are served.
pub fn prog_mismatch(w: &mut Writer<'_>, xid: u32, low: u32, high: u32) {
    accepted(w, xid, Accepted::ProgMismatch { low, high });
}

/// PROC_UNAVAIL: no such procedure.
pub fn proc_unavail(w: &mut Writer<'_>, xid: u32) {
    accepted(w, xid, Accepted::ProcUnavail);
}

/// GARBAGE_ARGS: the arguments cannot be decoded.
pub fn garbage_args(w: &mut Writer<'_>, xid: u32) {
    accepted(w, xid, Accepted::GarbageArgs);
}

/// SYSTEM_ERR: our own fault.
pub fn system_err(w: &mut Writer<'_>, xid: u32) {
    accepted(w, xid, Accepted::SystemErr);
}

/// RPC_MISMATCH: only version 2 is supported.
pub fn rpc_mismatch(w: &mut Writer<'_>, xid: u32) {
    let denied = Denied::RpcMismatch { low: super::RPC_VERSION, high: super::RPC_VERSION };
    ReplyHeader { xid, body: ReplyBody::Denied(denied) }.encode(w);
}

/// AUTH_ERROR: the caller could not be authenticated.
pub fn auth_error(w: &mut Writer<'_>, xid: u32, why: AuthStat) {
    ReplyHeader { xid, body: ReplyBody::Denied(Denied::AuthError(why)) }.encode(w);
}
