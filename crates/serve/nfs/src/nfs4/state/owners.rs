//! Open and lock owners of 4.0 (RFC 7530 §9.1.7): each request has the number after the last one's,
//! and the last one's reply is kept for a client that did not get it.

use base::limits::NFS4_OWNER_REPLY_MAX;
use wire::nfs4::Nfsstat4;

/// The decision of an owner's sequence on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SequenceDecision {
    /// It is the next one.
    Next,
    /// It was done before: this was its result (from the status on).
    Again(Vec<u8>),
}

/// The sequence of one owner.
#[derive(Debug, Default)]
pub struct Sequence {
    last: Option<u32>,
    reply: Vec<u8>,
    /// Whether OPEN_CONFIRM has shown that the owner's requests are in order.
    pub confirmed: bool,
    /// The file that the last request led to, for when it is repeated.
    pub file: Option<vfs::handle::Handle>,
}

impl Sequence {
    /// Checks a request's number. An unconfirmed owner may start again with any.
    ///
    /// # Errors
    /// NFS4ERR_BAD_SEQID.
    pub fn turn(&self, seqid: u32, may_start: bool) -> Result<SequenceDecision, Nfsstat4> {
        match self.last {
            None => Ok(SequenceDecision::Next),
            Some(last) if seqid == last && !self.reply.is_empty() => {
                Ok(SequenceDecision::Again(self.reply.clone()))
            }
            Some(last) if seqid == last.wrapping_add(1) => Ok(SequenceDecision::Next),
            Some(_) if may_start && !self.confirmed => Ok(SequenceDecision::Next),
            Some(_) => Err(Nfsstat4::BAD_SEQID),
        }
    }

    /// A request has ended; some failures do not count (RFC 7530 §9.1.7).
    pub fn done(&mut self, seqid: u32, status: Nfsstat4, result: &[u8]) {
        let uncounted = [
            Nfsstat4::STALE_CLIENTID,
            Nfsstat4::STALE_STATEID,
            Nfsstat4::BAD_STATEID,
            Nfsstat4::BAD_SEQID,
            Nfsstat4::BADXDR,
            Nfsstat4::RESOURCE,
            Nfsstat4::NOFILEHANDLE,
            Nfsstat4::MOVED,
        ];
        if uncounted.contains(&status) {
            return;
        }
        self.last = Some(seqid);
        self.reply.clear();
        if result.len() <= NFS4_OWNER_REPLY_MAX {
            self.reply.extend_from_slice(result);
        }
    }
}
