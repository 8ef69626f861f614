//! Calls of programs that are not on the large connections (port mapper, NSM over UDP): reads the
//! header, and replies to an invalid one.

use std::ops::RangeInclusive;

use wire::rpc::{self, CallHeader, open_call};
use wire::xdr::{Encode, Reader, Writer};

use engine::transport::small::Answer;

/// A call of `program` in one of `versions`, with its arguments; or the reply to send instead.
pub(crate) fn open(
    message: &[u8],
    program: u32,
    versions: RangeInclusive<u32>,
) -> Result<(CallHeader<'_>, Reader<'_>), Answer> {
    let (header, args) = open_call(message).map_err(|error| {
        let mut out = Vec::new();
        match error.encode_reply(&mut Writer::new(&mut out)) {
            true => Answer::Now(out),
            false => Answer::Nothing,
        }
    })?;
    if header.prog != program {
        return Err(refused(|w| rpc::prog_unavail(w, header.xid)));
    }
    if !versions.contains(&header.vers) {
        let (low, high) = versions.into_inner();
        return Err(refused(|w| rpc::prog_mismatch(w, header.xid, low, high)));
    }
    Ok((header, args))
}

/// A reply without results.
pub(crate) fn refused(how: impl FnOnce(&mut Writer<'_>)) -> Answer {
    let mut out = Vec::new();
    how(&mut Writer::new(&mut out));
    Answer::Now(out)
}

/// A successful reply.
pub(crate) fn results(xid: u32, results: &impl Encode) -> Vec<u8> {
    let mut out = Vec::new();
    let w = &mut Writer::new(&mut out);
    rpc::success(w, xid);
    results.encode(w);
    out
}
