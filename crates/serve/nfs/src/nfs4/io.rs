//! READ, WRITE, COMMIT, READLINK, READ_PLUS and IO_ADVISE (RFC 8881 §18.22, §18.32, §18.3,
//! §18.24; RFC 7862 §15.10, §15.5).

use base::limits::{IO_SIZE_MAX, READ_PLUS_PIECES};
use vfs::attr::FileType;
use vfs::fs::{Extent, ReadDone, Seek, Stable};
use vfs::status::Status;
use wire::nfs4::{
    Bitmap4, CommitArgs4, CommitResOk4, DataInfo4, IoAdviseArgs4, IoAdviseResOk4, Linktext4,
    Nfsstat4, ReadArgs4, ReadPlusArgs4, ReadlinkResOk4, StableHow4, WriteArgs4, WriteResOk4,
    content4, share4,
};
use wire::xdr::{Encode, Writer, padding};

use super::run::{CompoundContext, Fail, Handled, context};
use super::target::Target;
use crate::rpc::{from_file, note_item, read_or_run};

/// The current file, which must hold data.
pub(super) fn file(run: &mut CompoundContext<'_>) -> Result<Target, Fail> {
    run.target(Nfsstat4::ISDIR)
}

/// The status for a file that has no data.
pub(super) fn no_data(run: &CompoundContext<'_>, target: &Target) -> Result<(), Fail> {
    let status = match target.share.fs.getattr(run.cx(), &target.handle)?.kind {
        FileType::Regular => return Ok(()),
        FileType::Directory => Nfsstat4::ISDIR,
        FileType::Symlink if run.minor() > 0 => Nfsstat4::SYMLINK,
        _ if run.minor() > 0 => Nfsstat4::WRONG_TYPE,
        _ => Nfsstat4::INVAL,
    };
    Err(status.into())
}

pub(super) fn read(run: &mut CompoundContext<'_>, args: &ReadArgs4) -> Handled {
    run.range(args.offset, args.count, false);
    let target = file(run)?;
    run.check_io(&args.stateid, share4::ACCESS_READ)?;
    if let Some(extent) = extent(run, &target, args) {
        run.facts.bytes = extent.count as u32;
        let mut w = run.writer();
        Nfsstat4::OK.encode(&mut w);
        w.bool(extent.eof);
        w.u32(extent.count as u32);
        run.progress.extent = Some(extent);
        return Ok(());
    }
    let start = run.out.len();
    let mut w = run.writer();
    Nfsstat4::OK.encode(&mut w);
    w.bool(false);
    let (count, eof) = data_into_reply(run, &target, args.offset, args.count)?;
    let mut w = Writer::new(run.out.vec());
    w.patch_u32(start + 4, u32::from(eof));
    note_item((&mut *run.out, &run.peer.facts), count as usize);
    run.facts.bytes = count;
    Ok(())
}

/// Most bytes of READ4res in addition to its data: status, eof, length, padding.
const READ_FRAME: usize = 15;

/// The data to send from the file itself, after all other results. Not in a compound that has
/// changed something: its reply may have to wait or be retained; nor where the slot is to retain
/// the reply.
fn extent(run: &CompoundContext<'_>, target: &Target, args: &ReadArgs4) -> Option<Extent> {
    let room = run.room_for_last()?.checked_sub(READ_FRAME)?;
    let file = (&*target.share.fs, &target.handle);
    let peer = (run.peer.transport, &run.peer.facts);
    let extent = from_file(file, run.cx(), peer, (args.offset, args.count))?;
    (extent.count <= room).then_some(extent)
}

/// The status of a failed READ or WRITE: that of a file without data, where it is one.
fn refine(run: &CompoundContext<'_>, target: &Target, status: Status) -> Fail {
    match status {
        Status::Invalid | Status::IsDirectory | Status::BadType => {
            no_data(run, target).err().unwrap_or_else(|| status.into())
        }
        status => status.into(),
    }
}

/// Writes length and data, reading the data straight into its place.
fn data_into_reply(
    run: &mut CompoundContext<'_>,
    target: &Target,
    offset: u64,
    count: u32,
) -> Result<(u32, bool), Fail> {
    // A shorter reply than requested is valid (RFC 8881 §18.22.3). No file reaches an offset from
    // which its end could not be expressed, so that a read there is one beyond the end.
    let room = (i64::MAX as u64).saturating_sub(offset);
    let count = count.min(IO_SIZE_MAX).min(u32::try_from(room).unwrap_or(u32::MAX)) as usize;
    let offset = offset.min(i64::MAX as u64);
    let length = run.out.len();
    run.writer().u32(0);
    let at = run.out.extend_stale(count);
    let cx = context(run.progress, &run.peer, run.may_block);
    let room = run.out.vec().get_mut(at..).unwrap_or_default();
    let file = (&*target.share.fs, &target.handle);
    let ReadDone { count, eof, .. } = match read_or_run(file, cx, offset, room) {
        Ok(done) => done,
        Err(status) => return Err(refine(run, target, status)),
    };
    run.out.truncate(at + count);
    let mut w = run.writer();
    w.raw(&[0; 3][..padding(count)]);
    w.patch_u32(length, count as u32);
    Ok((count as u32, eof))
}

/// Pieces of data and holes in turn. A file system that cannot report holes has none: their content
/// is then sent as zeros.
pub(super) fn read_plus(run: &mut CompoundContext<'_>, args: &ReadPlusArgs4) -> Handled {
    run.range(args.offset, args.count, false);
    let target = file(run)?;
    run.check_io(&args.stateid, share4::ACCESS_READ)?;
    let start = run.out.len();
    let mut w = run.writer();
    Nfsstat4::OK.encode(&mut w);
    w.zeros(8);
    let end = args.offset.saturating_add(u64::from(args.count.min(IO_SIZE_MAX)));
    let sparse = target.share.fs.features().sparse;
    let (mut at, mut eof, mut pieces, mut bytes) = (args.offset, false, 0, 0);
    while at < end && !eof && pieces < READ_PLUS_PIECES {
        let hole = if sparse { hole_at(run, &target, at)? } else { None };
        let mut w = run.writer();
        if let Some((hole_end, last)) = hole {
            // The hole may end beyond the requested range; it is cut there.
            let to = hole_end.min(end);
            w.u32(content4::HOLE);
            DataInfo4 { offset: at, length: to - at }.encode(&mut w);
            (at, eof) = (to, last && to == hole_end);
        } else {
            let to = if sparse { next_hole(run, &target, at, end)? } else { end };
            let piece = run.out.len();
            let mut w = run.writer();
            w.u32(content4::DATA);
            w.u64(at);
            // At most IO_SIZE_MAX.
            let (count, last) = data_into_reply(run, &target, at, (to - at) as u32)?;
            (at, eof, bytes) = (at + u64::from(count), last, bytes + count);
            if count == 0 {
                run.out.truncate(piece);
                break;
            }
        }
        pieces += 1;
    }
    let mut w = run.writer();
    w.patch_u32(start + 4, u32::from(eof));
    w.patch_u32(start + 8, pieces);
    run.facts.bytes = bytes;
    Ok(())
}

/// The end of the hole that `at` is in, and whether the file ends there; `None` in data and beyond
/// the end. With permission only to execute the file no holes are reported, and all is read as
/// data.
fn hole_at(
    run: &CompoundContext<'_>,
    target: &Target,
    at: u64,
) -> Result<Option<(u64, bool)>, Fail> {
    let fs = &target.share.fs;
    match fs.seek(run.cx(), &target.handle, at, Seek::Data) {
        Ok(Some(data)) if data > at => Ok(Some((data, false))),
        Ok(Some(_)) | Err(Status::TooLarge | Status::Access) => Ok(None),
        Ok(None) => {
            let size = fs.getattr(run.cx(), &target.handle)?.size;
            Ok((size > at).then_some((size, true)))
        }
        Err(status) => Err(refine(run, target, status)),
    }
}

/// Where the data that `at` is in ends, at most `end`.
fn next_hole(run: &CompoundContext<'_>, target: &Target, at: u64, end: u64) -> Result<u64, Fail> {
    match target.share.fs.seek(run.cx(), &target.handle, at, Seek::Hole) {
        Ok(Some(hole)) if hole > at => Ok(hole.min(end)),
        Ok(_) | Err(Status::TooLarge | Status::Access) => Ok(end),
        Err(status) => Err(refine(run, target, status)),
    }
}

pub(super) fn write(run: &mut CompoundContext<'_>, args: &WriteArgs4<'_>) -> Handled {
    run.range(args.offset, args.data.len() as u32, true);
    let target = file(run)?;
    let stable = match args.stable {
        StableHow4::UNSTABLE => Stable::Unstable,
        StableHow4::DATA_SYNC => Stable::DataSync,
        StableHow4::FILE_SYNC => Stable::FileSync,
        _ => return Err(Nfsstat4::BADXDR.into()),
    };
    run.check_write(&args.stateid)?;
    let fs = &target.share.fs;
    // Before the data: if a flush of another caller loses it right away, this is another one.
    let writeverf = verifier(run, &target);
    let written = match fs.write(run.cx(), &target.handle, args.offset, args.data, stable) {
        Ok(written) => written,
        Err(failed) => return Err(refine(run, &target, failed.status)),
    };
    run.durable(written.flush);
    let count = written.value as u32;
    run.facts.bytes = count;
    run.ok(&WriteResOk4 { count, committed: args.stable, writeverf })
}

/// The write verifier (`writeverf`).
pub(super) fn verifier(run: &CompoundContext<'_>, target: &Target) -> [u8; 8] {
    target.share.fs.write_verifier(run.service.verifier)
}

pub(super) fn commit(run: &mut CompoundContext<'_>, args: &CommitArgs4) -> Handled {
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

pub(super) fn readlink(run: &mut CompoundContext<'_>) -> Handled {
    let wrong = if run.minor() == 0 { Nfsstat4::INVAL } else { Nfsstat4::WRONG_TYPE };
    let target = run.target(wrong)?;
    if target.share.fs.getattr(run.cx(), &target.handle)?.kind != FileType::Symlink {
        return Err(wrong.into());
    }
    let (text, _) = target.share.fs.readlink(run.cx(), &target.handle)?;
    run.ok(&ReadlinkResOk4 { link: Linktext4(&text) })?;
    note_item((&mut *run.out, &run.peer.facts), text.len());
    Ok(())
}

/// Advice is taken and nothing done about it: no hint is promised back.
pub(super) fn io_advise(run: &mut CompoundContext<'_>, args: &IoAdviseArgs4) -> Handled {
    let target = file(run)?;
    no_data(run, &target)?;
    run.check_io(&args.stateid, share4::ACCESS_READ)?;
    run.ok(&IoAdviseResOk4 { hints: Bitmap4::EMPTY })
}
