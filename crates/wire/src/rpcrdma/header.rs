//! The header before each message (RFC 8166 §4.2 to §4.5).

use thiserror::Error;

use super::chunks::Chunks;
use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

/// The supported version of RPC over RDMA.
pub const VERSION: u32 = 1;

const RDMA_MSG: u32 = 0;
const RDMA_NOMSG: u32 = 1;
const RDMA_ERROR: u32 = 4;
const ERR_VERS: u32 = 1;
const ERR_CHUNK: u32 = 2;

/// What comes first in each message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The transaction: that of the RPC message.
    pub xid: u32,
    /// Credits that are requested, or granted.
    pub credits: u32,
    /// The rest.
    pub body: Body,
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// The message, behind the header; chunks may hold data of it (RDMA_MSG).
    Message(Chunks),
    /// The message is in a chunk: at position 0, or in the reply chunk (RDMA_NOMSG).
    NoMessage(Chunks),
    /// A message was refused (RDMA_ERROR).
    Error(Refusal),
}

/// Why a message was refused (`rpc_rdma_error`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Another version (ERR_VERS).
    Version {
        /// The lowest supported one.
        low: u32,
        /// The highest.
        high: u32,
    },
    /// The header is invalid, or a chunk is too small (ERR_CHUNK).
    Chunk,
}

/// Why a header cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// It has not even its fixed part. Nothing can be answered: close the connection.
    #[error("malformed header")]
    Short(#[source] DecodeError),
    /// Another version: answer ERR_VERS.
    #[error("version {got} of RPC over RDMA, only version 1 is supported")]
    Version {
        /// The transaction to answer.
        xid: u32,
        /// The version.
        got: u32,
    },
    /// A procedure that is not supported (RDMA_MSGP and RDMA_DONE among them): answer ERR_CHUNK.
    #[error("procedure {got} of RPC over RDMA")]
    Procedure {
        /// The transaction to answer.
        xid: u32,
        /// The procedure.
        got: u32,
    },
    /// A chunk list that cannot be read: answer ERR_CHUNK.
    #[error("malformed chunk list")]
    Chunks {
        /// The transaction to answer.
        xid: u32,
        /// What is wrong with it.
        source: DecodeError,
    },
}

impl HeaderError {
    /// The header of the answer, if there is one.
    pub fn answer(&self, credits: u32) -> Option<Header> {
        let (xid, refusal) = match *self {
            Self::Short(_) => return None,
            Self::Version { xid, .. } => (xid, Refusal::Version { low: VERSION, high: VERSION }),
            Self::Procedure { xid, .. } | Self::Chunks { xid, .. } => (xid, Refusal::Chunk),
        };
        Some(Header { xid, credits, body: Body::Error(refusal) })
    }
}

impl Header {
    /// Reads the header of a message; the message itself is what the reader has left.
    ///
    /// # Errors
    /// [`HeaderError`]; see [`HeaderError::answer`] for what to send.
    pub fn open(message: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        let mut r = Reader::new(message);
        let mut word = |what| r.u32(what).map_err(HeaderError::Short);
        let (xid, version) = (word("rdma_xid")?, word("rdma_vers")?);
        let (credits, procedure) = (word("rdma_credit")?, word("rdma_proc")?);
        if version != VERSION {
            return Err(HeaderError::Version { xid, got: version });
        }
        let malformed = |source| HeaderError::Chunks { xid, source };
        let body = match procedure {
            RDMA_MSG => Body::Message(Chunks::decode(&mut r).map_err(malformed)?),
            RDMA_NOMSG => Body::NoMessage(Chunks::decode(&mut r).map_err(malformed)?),
            RDMA_ERROR => Body::Error(Refusal::decode(&mut r).map_err(malformed)?),
            got => return Err(HeaderError::Procedure { xid, got }),
        };
        Ok((Self { xid, credits, body }, r.rest()))
    }
}

impl Encode for Header {
    fn encode(&self, w: &mut Writer<'_>) {
        let (procedure, lists): (u32, &dyn Encode) = match &self.body {
            Body::Message(chunks) => (RDMA_MSG, chunks),
            Body::NoMessage(chunks) => (RDMA_NOMSG, chunks),
            Body::Error(refusal) => (RDMA_ERROR, refusal),
        };
        [self.xid, VERSION, self.credits, procedure].into_iter().for_each(|word| w.u32(word));
        lists.encode(w);
    }
}

impl Encode for Refusal {
    fn encode(&self, w: &mut Writer<'_>) {
        match *self {
            Self::Version { low, high } => {
                [ERR_VERS, low, high].into_iter().for_each(|word| w.u32(word));
            }
            Self::Chunk => w.u32(ERR_CHUNK),
        }
    }
}

impl Decode<'_> for Refusal {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u32("rdma_err")? {
            ERR_VERS => {
                Ok(Self::Version { low: r.u32("rdma_vers_low")?, high: r.u32("rdma_vers_high")? })
            }
            ERR_CHUNK => Ok(Self::Chunk),
            got => Err(DecodeError::BadValue { what: "rdma_err", got }),
        }
    }
}

#[cfg(test)]
impl crate::arb::Arb<'_> for Header {
    fn arb(g: &mut crate::arb::Gen<'_>) -> Self {
        let (xid, credits) = (g.arb(), g.arb());
        let body = match g.byte() % 4 {
            0 => Body::Message(g.arb()),
            1 => Body::NoMessage(g.arb()),
            2 => Body::Error(Refusal::Chunk),
            _ => Body::Error(Refusal::Version { low: g.arb(), high: g.arb() }),
        };
        Self { xid, credits, body }
    }
}
