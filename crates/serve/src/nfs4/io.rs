//! READ, WRITE, COMMIT, READLINK, READ_PLUS and IO_ADVISE (RFC 8881 §18.22, §18.32, §18.3,
//! §18.24; RFC 7862 §15.10, §15.5).

use base::limits::IO_SIZE_MAX;
use vfs::attr::FileType;
use vfs::fs::{ReadDone, Stable};
use wire::nfs4::{
    Bitmap4, CommitArgs4, CommitResOk4, IoAdviseArgs4, IoAdviseResOk4, Linktext4, Nfsstat4,
    ReadArgs4, ReadPlusArgs4, ReadlinkResOk4, StableHow4, Stateid4, WriteArgs4, WriteResOk4,
    content4, share4,
};
use wire::xdr::{Encode, Writer, padding};

use super::fh::Target;
use super::run::{Fail, Handled, Run};

/// The current file, which must hold data.
fn file(run: &mut Run<'_>) -> Result<Target, Fail> {
    run.target(Nfsstat4::ISDIR)
}

/// What to answer about a file that has no data.
fn no_data(run: &Run<'_>, target: &Target) -> Result<(), Fail> {
    let status = match target.share.fs.getattr(run.cx(), &target.handle)?.kind {
        FileType::Regular => return Ok(()),
        FileType::Directory => Nfsstat4::ISDIR,
        FileType::Symlink if run.minor() > 0 => Nfsstat4::SYMLINK,
        _ if run.minor() > 0 => Nfsstat4::WRONG_TYPE,
        _ => Nfsstat4::INVAL,
    };
    Err(status.into())
}

pub(super) fn read(run: &mut Run<'_>, args: &ReadArgs4) -> Handled {
    run.range(args.offset, args.count, false);
    let target = file(run)?;
    readable(run, &target, &args.stateid)?;
    let start = run.out.len();
    let mut w = run.writer();
    Nfsstat4::OK.encode(&mut w);
    w.bool(false);
    let (count, eof) = data_into_reply(run, &target, args.offset, args.count)?;
    let mut w = Writer::new(run.out.vec());
    w.patch_u32(start + 4, u32::from(eof));
    run.facts.bytes = count;
    Ok(())
}

fn readable(run: &Run<'_>, target: &Target, stateid: &Stateid4) -> Result<(), Fail> {
    no_data(run, target)?;
    run.check_io(stateid, share4::ACCESS_READ)
}

/// Writes length and data, reading the data straight into its place.
fn data_into_reply(
    run: &mut Run<'_>,
    target: &Target,
    offset: u64,
    count: u32,
) -> Result<(u32, bool), Fail> {
    // A shorter answer than was asked for is right (RFC 8881 §18.22.3).
    let count = count.min(IO_SIZE_MAX) as usize;
    let length = run.out.len();
    run.writer().u32(0);
    let at = run.out.extend_stale(count);
    let cx = run.cx();
    let room = run.out.vec().get_mut(at..).unwrap_or_default();
    let ReadDone { count, eof, .. } = target.share.fs.read(cx, &target.handle, offset, room)?;
    run.out.truncate(at + count);
    let mut w = run.writer();
    w.raw(&[0; 3][..padding(count)]);
    w.patch_u32(length, count as u32);
    Ok((count as u32, eof))
}

/// One piece of data, or none at the end of the file: holes are told as the zeros that they are.
pub(super) fn read_plus(run: &mut Run<'_>, args: &ReadPlusArgs4) -> Handled {
    run.range(args.offset, args.count, false);
    let target = file(run)?;
    readable(run, &target, &args.stateid)?;
    let start = run.out.len();
    let mut w = run.writer();
    Nfsstat4::OK.encode(&mut w);
    w.bool(false);
    w.u32(1);
    w.u32(content4::DATA);
    w.u64(args.offset);
    let (count, eof) = data_into_reply(run, &target, args.offset, args.count)?;
    if count == 0 {
        run.out.truncate(start + 12);
    }
    let mut w = Writer::new(run.out.vec());
    w.patch_u32(start + 4, u32::from(eof));
    w.patch_u32(start + 8, u32::from(count > 0));
    run.facts.bytes = count;
    Ok(())
}

pub(super) fn write(run: &mut Run<'_>, args: &WriteArgs4<'_>) -> Handled {
    run.range(args.offset, args.data.len() as u32, true);
    let target = file(run)?;
    let stable = match args.stable {
        StableHow4::UNSTABLE => Stable::Unstable,
        StableHow4::DATA_SYNC => Stable::DataSync,
        StableHow4::FILE_SYNC => Stable::FileSync,
        _ => return Err(Nfsstat4::BADXDR.into()),
    };
    no_data(run, &target)?;
    run.check_write(&args.stateid)?;
    let fs = &target.share.fs;
    let written = fs.write(run.cx(), &target.handle, args.offset, args.data, stable)?;
    run.durable(written.flush);
    let count = written.value as u32;
    run.facts.bytes = count;
    run.ok(&WriteResOk4 { count, committed: args.stable, writeverf: verifier(run, &target) })
}

/// Changes with each start and each failed flush, so that whoever has unflushed data learns it.
pub(super) fn verifier(run: &Run<'_>, target: &Target) -> [u8; 8] {
    let failures = target.share.fs.flush_failures();
    (u64::from_be_bytes(run.service.verifier) ^ failures).to_be_bytes()
}

pub(super) fn commit(run: &mut Run<'_>, args: &CommitArgs4) -> Handled {
    run.range(args.offset, args.count, false);
    let target = file(run)?;
    no_data(run, &target)?;
    if args.offset.checked_add(u64::from(args.count)).is_none() {
        return Err(Nfsstat4::INVAL.into());
    }
    let done = target.share.fs.commit(run.cx(), &target.handle)?;
    run.durable(done.flush);
    run.ok(&CommitResOk4 { writeverf: verifier(run, &target) })
}

pub(super) fn readlink(run: &mut Run<'_>) -> Handled {
    let wrong = if run.minor() == 0 { Nfsstat4::INVAL } else { Nfsstat4::WRONG_TYPE };
    let target = run.target(wrong)?;
    if target.share.fs.getattr(run.cx(), &target.handle)?.kind != FileType::Symlink {
        return Err(wrong.into());
    }
    let (text, _) = target.share.fs.readlink(run.cx(), &target.handle)?;
    run.ok(&ReadlinkResOk4 { link: Linktext4(&text) })
}

/// Advice is taken and nothing done about it: no hint is promised back.
pub(super) fn io_advise(run: &mut Run<'_>, args: &IoAdviseArgs4) -> Handled {
    let target = file(run)?;
    no_data(run, &target)?;
    run.check_io(&args.stateid, share4::ACCESS_READ)?;
    run.ok(&IoAdviseResOk4 { hints: Bitmap4::EMPTY })
}
