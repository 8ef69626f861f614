//! Which data of a message may be moved by chunks: the bindings of NFS to RPC over RDMA
//! (RFC 8267 §3, §4). Data of READ and WRITE, and the texts of READLINK and SYMLINK; READ_PLUS is
//! not among them.

use std::ops::Range;

use crate::nfs3::{self, NFS_PROGRAM, NFS_V3, Proc};
use crate::nfs4::{self, ArgOp, NFS_V4, NFSPROC4_COMPOUND, Res4, ResOp};
use crate::rpc::{Accepted, ReplyBody, ReplyHeader, open_call};
use crate::xdr::{Decode, Reader, padding};

/// What was called, as far as the reply must know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Called {
    /// The program.
    pub prog: u32,
    /// Its version.
    pub vers: u32,
    /// The procedure.
    pub proc: u32,
}

impl Called {
    /// What a message calls; `None` if it is no call.
    pub fn of(message: &[u8]) -> Option<Self> {
        let (header, _) = open_call(message).ok()?;
        Some(Self { prog: header.prog, vers: header.vers, proc: header.proc })
    }
}

/// The last item, of this length, of what was read up to where the reader stands.
fn last(whole: usize, r: &Reader<'_>, length: usize) -> Option<Range<usize>> {
    let start = (whole - r.rest().len()).checked_sub(length + padding(length))?;
    Some(start..start + length)
}

/// Where in the message of a reply such data is, in order: the first write chunk is for the first.
/// At most `max`.
pub fn in_reply(called: Called, message: &[u8], max: usize) -> Vec<Range<usize>> {
    let mut r = Reader::new(message);
    let success = |header: ReplyHeader<'_>| {
        matches!(header.body, ReplyBody::Accepted { stat: Accepted::Success, .. })
    };
    if max == 0 || !ReplyHeader::decode(&mut r).is_ok_and(success) {
        return Vec::new();
    }
    match called {
        Called { prog: NFS_PROGRAM, vers: NFS_V3, proc } => {
            in_results(Proc(proc), message.len(), &mut r).into_iter().collect()
        }
        Called { prog: NFS_PROGRAM, vers: NFS_V4, proc: NFSPROC4_COMPOUND } => {
            in_compound(message.len(), &mut r, max)
        }
        _ => Vec::new(),
    }
}

fn in_results(proc: Proc, whole: usize, r: &mut Reader<'_>) -> Option<Range<usize>> {
    let length = match proc {
        Proc::READ => nfs3::ReadRes::decode(r).ok()?.into_result().ok()?.data.len(),
        Proc::READLINK => nfs3::ReadlinkRes::decode(r).ok()?.into_result().ok()?.data.0.len(),
        _ => return None,
    };
    last(whole, r, length)
}

fn in_compound(whole: usize, r: &mut Reader<'_>, max: usize) -> Vec<Range<usize>> {
    let mut items = Vec::new();
    let Ok(head) = nfs4::CompoundRes::decode(r) else { return items };
    for _ in 0..head.count {
        let length = match ResOp::decode(r) {
            Ok(ResOp::Read(Res4::Ok(ok))) => ok.data.len(),
            Ok(ResOp::Readlink(Res4::Ok(ok))) => ok.link.0.len(),
            Ok(_) => continue,
            Err(_) => break,
        };
        items.extend(last(whole, r, length));
        if items.len() == max {
            break;
        }
    }
    items
}

/// Where in the message of a call such data is, in order.
pub fn in_call(message: &[u8]) -> Vec<Range<usize>> {
    let Ok((header, mut r)) = open_call(message) else { return Vec::new() };
    let (whole, r) = (message.len(), &mut r);
    match (header.prog, header.vers, Proc(header.proc)) {
        (NFS_PROGRAM, NFS_V3, Proc::WRITE) => nfs3::WriteArgs::decode(r).ok().map(|a| a.data.len()),
        (NFS_PROGRAM, NFS_V3, Proc::SYMLINK) => {
            nfs3::SymlinkArgs::decode(r).ok().map(|a| a.symlink_data.0.len())
        }
        (NFS_PROGRAM, NFS_V4, Proc(NFSPROC4_COMPOUND)) => return in_operations(whole, r),
        _ => None,
    }
    .and_then(|length| last(whole, r, length))
    .into_iter()
    .collect()
}

fn in_operations(whole: usize, r: &mut Reader<'_>) -> Vec<Range<usize>> {
    let mut items = Vec::new();
    let Ok(head) = nfs4::CompoundArgs::decode(r) else { return items };
    for _ in 0..head.count {
        match ArgOp::decode(r) {
            Ok(ArgOp::Write(args)) => items.extend(last(whole, r, args.data.len())),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    items
}
