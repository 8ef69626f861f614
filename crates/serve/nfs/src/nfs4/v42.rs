//! ALLOCATE, DEALLOCATE, SEEK, COPY and CLONE (RFC 7862 §15.1, §15.4, §15.11, §15.2, §15.13).
//! Copies are within this server, done before the reply, and stable when it leaves.

use base::limits::COPY_TURN_MAX;
use vfs::fs::Seek;
use vfs::status::Status;
use wire::nfs4::{
    AllocateArgs4, CloneArgs4, CopyArgs4, CopyRequirements4, CopyRes4, CopyResOk4, Nfsstat4,
    SeekArgs4, SeekResOk4, StableHow4, Stateid4, WriteResponse4, content4, share4,
};
use wire::xdr::Encode;

use super::io::{file, no_data, verifier};
use super::run::{CompoundContext, Fail, Handled};
use super::target::Target;

/// The current file, to be changed in a range that must make sense.
fn changed_file(run: &mut CompoundContext<'_>, args: &AllocateArgs4) -> Result<Target, Fail> {
    run.range(args.offset, u32::try_from(args.length).unwrap_or(u32::MAX), false);
    let target = file(run)?;
    no_data(run, &target)?;
    if args.length == 0 || args.offset.checked_add(args.length).is_none() {
        return Err(Nfsstat4::INVAL.into());
    }
    run.check_write(&args.stateid)?;
    Ok(target)
}

pub(super) fn allocate(run: &mut CompoundContext<'_>, args: &AllocateArgs4) -> Handled {
    let target = changed_file(run, args)?;
    let (cx, at) = (run.cx(), &target.handle);
    let done = target.share.fs.allocate(cx, at, args.offset, args.length)?;
    run.durable(done.flush);
    run.ok(&())
}

pub(super) fn deallocate(run: &mut CompoundContext<'_>, args: &AllocateArgs4) -> Handled {
    let target = changed_file(run, args)?;
    let (cx, at) = (run.cx(), &target.handle);
    let done = target.share.fs.deallocate(cx, at, args.offset, args.length)?;
    run.durable(done.flush);
    run.ok(&())
}

pub(super) fn seek(run: &mut CompoundContext<'_>, args: &SeekArgs4) -> Handled {
    run.range(args.offset, 0, false);
    let target = file(run)?;
    no_data(run, &target)?;
    run.check_io(&args.stateid, share4::ACCESS_READ)?;
    let what = match args.what {
        content4::DATA => Seek::Data,
        content4::HOLE => Seek::Hole,
        _ => return Err(Nfsstat4::UNION_NOTSUPP.into()),
    };
    let fs = &target.share.fs;
    let found = fs.seek(run.cx(), &target.handle, args.offset, what).map_err(|s| match s {
        Status::TooLarge => Nfsstat4::NXIO.into(),
        other => Fail::from(other),
    })?;
    let size = fs.getattr(run.cx(), &target.handle)?.size;
    let offset = found.unwrap_or(size);
    run.ok(&SeekResOk4 { eof: offset >= size, offset })
}

/// The saved file, which is read, and the current one, which is written; both of one share.
fn two_files(
    run: &mut CompoundContext<'_>,
    from: &Stateid4,
    to: &Stateid4,
) -> Result<(Target, Target), Fail> {
    run.current()?;
    let source = run.saved()?.target().ok_or(Nfsstat4::ISDIR)?;
    no_data(run, &source)?;
    let target = file(run)?;
    no_data(run, &target)?;
    run.check_write(to)?;
    // Stateids are checked against the current file.
    std::mem::swap(&mut run.progress.current, &mut run.progress.saved);
    std::mem::swap(&mut run.progress.current_stateid, &mut run.progress.saved_stateid);
    let readable = run.check_io(from, share4::ACCESS_READ);
    std::mem::swap(&mut run.progress.current, &mut run.progress.saved);
    std::mem::swap(&mut run.progress.current_stateid, &mut run.progress.saved_stateid);
    readable?;
    if source.share.id != target.share.id {
        return Err(Nfsstat4::XDEV.into());
    }
    Ok((source, target))
}

/// Whether the source has all that is to be copied: RFC 7862 §15.2.3 wants it so.
fn within(run: &CompoundContext<'_>, source: &Target, offset: u64, count: u64) -> Handled {
    let size = source.share.fs.getattr(run.cx(), &source.handle)?.size;
    match offset.checked_add(count) {
        Some(end) if end <= size => Ok(()),
        _ => Err(Nfsstat4::INVAL.into()),
    }
}

pub(super) fn copy(run: &mut CompoundContext<'_>, args: &CopyArgs4<'_>) -> Handled {
    if !args.source_server.0.is_empty() {
        // From another server: not offered.
        return Err(Nfsstat4::NOTSUPP.into());
    }
    run.range(args.dst_offset, u32::try_from(args.count).unwrap_or(u32::MAX), true);
    let (source, target) = two_files(run, &args.src_stateid, &args.dst_stateid)?;
    within(run, &source, args.src_offset, args.count)?;
    // What one COPY may copy is for all of a compound: with 128 of them it was 16 GiB.
    let room = COPY_TURN_MAX.saturating_sub(run.progress.copied);
    if room == 0 {
        return Err(Nfsstat4::DELAY.into());
    }
    // A count of 0 is all that follows (RFC 7862 §15.2.3).
    let count = if args.count == 0 { 0 } else { args.count.min(room) };
    let (from, to) = ((&source.handle, args.src_offset), (&target.handle, args.dst_offset));
    let done = target.share.fs.copy_range(run.cx(), from, to, count)?;
    run.progress.copied += done.value;
    run.durable(done.flush);
    run.facts.bytes = u32::try_from(done.value).unwrap_or(u32::MAX);
    let response = WriteResponse4 {
        callback_id: None,
        count: done.value,
        committed: StableHow4::FILE_SYNC,
        writeverf: verifier(run, &target),
    };
    let requirements = CopyRequirements4 { consecutive: true, synchronous: true };
    CopyRes4::Ok(CopyResOk4 { response, requirements }).encode(&mut run.writer());
    Ok(())
}

pub(super) fn clone(run: &mut CompoundContext<'_>, args: &CloneArgs4) -> Handled {
    run.range(args.dst_offset, u32::try_from(args.count).unwrap_or(u32::MAX), false);
    let (source, target) = two_files(run, &args.src_stateid, &args.dst_stateid)?;
    within(run, &source, args.src_offset, args.count)?;
    let (from, to) = ((&source.handle, args.src_offset), (&target.handle, args.dst_offset));
    let done = target.share.fs.clone_range(run.cx(), from, to, args.count)?;
    run.durable(done.flush);
    run.ok(&())
}
