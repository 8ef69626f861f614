//! Compounds of preparation: written with the codec, answered as a whole, decoded at leisure.

use crate::client::ClientError;
use crate::client::pipe::inbox::{answer, protocol};
use wire::nfs4::{ArgOp, CompoundArgs, CompoundRes, Nfsstat4, Res4, ResOp, Tag4};
use wire::xdr::{Decode, Encode, Reader, Writer};

/// The minor version in use.
pub const MINOR: u32 = 1;

/// Appends a compound's arguments.
pub fn write(w: &mut Writer<'_>, ops: &[ArgOp<'_>]) {
    CompoundArgs { tag: Tag4(b""), minorversion: MINOR, count: ops.len() as u32 }.encode(w);
    ops.iter().for_each(|op| op.encode(w));
}

/// An answered compound.
pub struct Reply {
    /// Status of the last operation that was done.
    pub status: Nfsstat4,
    /// How many were done.
    pub count: u32,
    record: Vec<u8>,
}

impl Reply {
    /// From a whole record.
    ///
    /// # Errors
    /// It is no answer to a compound.
    pub fn new(record: Vec<u8>) -> Result<Self, ClientError> {
        let mut r = Reader::new(&record);
        answer(&mut r)?;
        let head = CompoundRes::decode(&mut r).map_err(protocol)?;
        let (status, count) = (head.status, head.count);
        Ok(Self { status, count, record })
    }

    /// The results in order.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn results(&self) -> Result<Vec<ResOp<'_>>, ClientError> {
        let mut r = Reader::new(&self.record);
        answer(&mut r)?;
        CompoundRes::decode(&mut r).map_err(protocol)?;
        // Each result is at least eight bytes long, so the record bounds their number.
        (0..self.count).map(|_| ResOp::decode(&mut r).map_err(protocol)).collect()
    }

    /// The results of a compound that succeeded.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with `what` was tried.
    pub fn done(&self, what: &str) -> Result<Vec<ResOp<'_>>, ClientError> {
        if self.status != Nfsstat4::OK {
            return Err(refused(what, self.status));
        }
        self.results()
    }

    /// The file handle that GETFH gave.
    ///
    /// # Errors
    /// The compound failed, or holds none.
    pub fn handle(&self, what: &str) -> Result<Vec<u8>, ClientError> {
        let results = self.done(what)?;
        let found = results.iter().find_map(|result| match result {
            ResOp::Getfh(Res4::Ok(ok)) => Some(ok.object.0.to_vec()),
            _ => None,
        });
        found.ok_or_else(|| ClientError::Protocol("GETFH without a handle".into()))
    }
}

/// A refusal with the name of its status.
pub fn refused(what: impl Into<String>, status: Nfsstat4) -> ClientError {
    let status = match status.name() {
        name @ "NFS4ERR_WRONGSEC" => {
            format!("{name}; its export rules require TLS or Kerberos, which this client lacks")
        }
        name => name.to_owned(),
    };
    ClientError::Refused { what: what.into(), status }
}
