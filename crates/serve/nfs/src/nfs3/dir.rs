//! READDIR and READDIRPLUS (RFC 1813 §3.3.16, §3.3.17).

use base::limits::READDIR_REPLY_MAX;
use vfs::fs::DirEntry;
use vfs::status::Status;
use wire::nfs3::{ReaddirArgs, ReaddirEncoder, ReaddirplusArgs, ReaddirplusEncoder};
use wire::xdr::Writer;

use super::call::{Call, DispatchResult, Handled, Target};
use super::convert::fattr;

pub(super) fn readdir(call: &mut Call<'_>) -> Handled {
    let args: ReaddirArgs<'_> = call.decode()?;
    let target = call.target(args.dir);
    match target.and_then(|t| list(call, &t, &args)) {
        Ok(()) => Ok(DispatchResult::Done),
        Err(status) => call.finish(Err::<(), _>(status), |call| call.attr_of(target)),
    }
}

fn list(call: &mut Call<'_>, t: &Target<'_>, args: &ReaddirArgs<'_>) -> Result<(), Status> {
    let cx = call.cx();
    let mut w = Writer::new(call.out.vec());
    let mut reply = ReaddirEncoder::begin(&mut w, args.count.min(READDIR_REPLY_MAX));
    let mut each = |e: DirEntry<'_>| reply.add(e.fileid, e.name, e.cookie);
    match t.fs.list(cx, &t.handle, args.cookie, args.cookieverf, false, &mut each) {
        Ok(done) if reply.entries() == 0 && !done.eof => {
            reply.abort();
            Err(Status::TooSmall)
        }
        Ok(done) => {
            reply.finish(Some(&fattr(&done.dir)), done.verifier, done.eof);
            Ok(())
        }
        Err(status) => {
            reply.abort();
            Err(status)
        }
    }
}

pub(super) fn readdirplus(call: &mut Call<'_>) -> Handled {
    let args: ReaddirplusArgs<'_> = call.decode()?;
    let target = call.target(args.dir);
    match target.and_then(|t| list_plus(call, &t, &args)) {
        Ok(()) => Ok(DispatchResult::Done),
        Err(status) => call.finish(Err::<(), _>(status), |call| call.attr_of(target)),
    }
}

fn list_plus(
    call: &mut Call<'_>,
    t: &Target<'_>,
    args: &ReaddirplusArgs<'_>,
) -> Result<(), Status> {
    let cx = call.cx();
    let mut w = Writer::new(call.out.vec());
    let maxcount = args.maxcount.min(READDIR_REPLY_MAX);
    let mut reply = ReaddirplusEncoder::begin(&mut w, args.dircount, maxcount);
    let mut each = |e: DirEntry<'_>| {
        let attr = e.entry.as_ref().map(|entry| fattr(&entry.attr));
        let handle = e.entry.as_ref().map(|entry| entry.handle.as_bytes());
        reply.add(e.fileid, e.name, e.cookie, &attr, handle)
    };
    match t.fs.list(cx, &t.handle, args.cookie, args.cookieverf, true, &mut each) {
        Ok(done) if reply.entries() == 0 && !done.eof => {
            reply.abort();
            Err(Status::TooSmall)
        }
        Ok(done) => {
            reply.finish(Some(&fattr(&done.dir)), done.verifier, done.eof);
            Ok(())
        }
        Err(status) => {
            reply.abort();
            Err(status)
        }
    }
}
