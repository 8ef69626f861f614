//! The header of a call (RFC 5531 §9, `call_body`), and what to answer to a header that is wrong.

use thiserror::Error;

use super::RPC_VERSION;
use super::auth::{self, Auth};
use super::reply::{self, AuthStat};
use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

const CALL: u32 = 0;

/// The header of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallHeader<'a> {
    /// Transaction, repeated in the reply.
    pub xid: u32,
    /// Program.
    pub prog: u32,
    /// Its version.
    pub vers: u32,
    /// Procedure.
    pub proc: u32,
    /// The credential of the caller.
    pub cred: Auth<'a>,
    /// Its verifier.
    pub verf: Auth<'a>,
}

impl Encode for CallHeader<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        for word in [self.xid, CALL, RPC_VERSION, self.prog, self.vers, self.proc] {
            w.u32(word);
        }
        self.cred.encode(w);
        self.verf.encode(w);
    }
}

impl<'a> Decode<'a> for CallHeader<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        header(r).map_err(|error| match error {
            CallError::NotACall { got } => DecodeError::BadValue { what: "msg_type", got },
            CallError::RpcVersion { got, .. } => DecodeError::BadValue { what: "rpcvers", got },
            CallError::Auth { source, .. } | CallError::Malformed(source) => source,
        })
    }
}

/// Why a record is not a call that can be dispatched. The caller is at fault in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CallError {
    /// It is a reply, or nothing of RPC. Nothing can be answered: close the connection.
    #[error("message type is {got}, not a call")]
    NotACall {
        /// The message type.
        got: u32,
    },
    /// Another version of RPC.
    #[error("RPC version {got} is not supported, only 2")]
    RpcVersion {
        /// Transaction to answer.
        xid: u32,
        /// The caller's version.
        got: u32,
    },
    /// A credential or verifier that does not fit its flavour.
    #[error("{why} rejected")]
    Auth {
        /// Transaction to answer.
        xid: u32,
        /// What to answer: AUTH_BADCRED or AUTH_BADVERF.
        why: AuthStat,
        /// What was wrong with it.
        source: DecodeError,
    },
    /// The header itself is cut short. Nothing can be answered: close the connection.
    #[error("malformed call header")]
    Malformed(#[source] DecodeError),
}

impl CallError {
    /// Writes the reply that RFC 5531 §9 requires. False when there is none, and the connection
    /// should be closed.
    pub fn encode_reply(&self, w: &mut Writer<'_>) -> bool {
        match *self {
            Self::RpcVersion { xid, .. } => reply::rpc_mismatch(w, xid),
            Self::Auth { xid, why, .. } => reply::auth_error(w, xid, why),
            Self::NotACall { .. } | Self::Malformed(_) => return false,
        }
        true
    }
}

/// Splits a record into the call's header and a reader at its arguments.
///
/// # Errors
/// [`CallError`]; see [`CallError::encode_reply`] for what to send.
#[inline]
pub fn open_call(record: &[u8]) -> Result<(CallHeader<'_>, Reader<'_>), CallError> {
    let mut r = Reader::new(record);
    let call = header(&mut r)?;
    Ok((call, r))
}

#[inline]
fn header<'a>(r: &mut Reader<'a>) -> Result<CallHeader<'a>, CallError> {
    let fixed = r.array::<12>("rpc_msg").map_err(CallError::Malformed)?;
    let [xid, kind, vers] = words(fixed);
    if kind != CALL {
        return Err(CallError::NotACall { got: kind });
    }
    if vers != RPC_VERSION {
        return Err(CallError::RpcVersion { xid, got: vers });
    }
    let [prog, vers, proc] = words(r.array::<12>("call_body").map_err(CallError::Malformed)?);
    let bad = |why| move |source| CallError::Auth { xid, why, source };
    let (flavor, body) = auth::raw(r).map_err(bad(AuthStat::BADCRED))?;
    let cred = Auth::from_raw(flavor, body).map_err(bad(AuthStat::BADCRED))?;
    let (flavor, body) = auth::raw(r).map_err(bad(AuthStat::BADVERF))?;
    let verf = Auth::from_raw(flavor, body).map_err(bad(AuthStat::BADVERF))?;
    Ok(CallHeader { xid, prog, vers, proc, cred, verf })
}

/// Three words of a header.
#[inline]
fn words(bytes: &[u8; 12]) -> [u32; 3] {
    let mut out = [0; 3];
    for (slot, word) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *slot = u32::from_be_bytes(*word);
    }
    out
}
