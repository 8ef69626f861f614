//! READLINK, READ, WRITE and COMMIT (RFC 1813 §3.3.5 to §3.3.7, §3.3.21).

use base::limits::IO_SIZE_MAX;
use probe::op::flag;
use vfs::fs::{ReadDone, Stable};
use vfs::status::Status;
use wire::nfs3::{
    CommitArgs, CommitResOk, Fattr3, Nfspath3, ReadArgs, ReadResOkHead, ReadlinkArgs,
    ReadlinkResOk, StableHow, WccData, WriteArgs, WriteResOk,
};

use super::call::{Call, DispatchResult, Handled, Target};
use super::convert::{fattr, wcc};
use crate::rpc::{from_file, note_item, read_or_run};

pub(super) fn readlink(call: &mut Call<'_>) -> Handled {
    let args: ReadlinkArgs<'_> = call.decode()?;
    let target = call.target(args.symlink);
    match target.and_then(|t| t.fs.readlink(call.cx(), &t.handle)) {
        Ok((path, attr)) => {
            let symlink_attributes = Some(fattr(&attr));
            let ok = ReadlinkResOk { symlink_attributes, data: Nfspath3(&path) };
            let done = call.finish(Ok(ok), |_| ());
            note_item((&mut *call.out, &*call.facts), path.len());
            done
        }
        Err(status) => call.finish(Err::<(), _>(status), |call| call.attr_of(target)),
    }
}

pub(super) fn read(call: &mut Call<'_>) -> Handled {
    let args: ReadArgs<'_> = call.decode()?;
    call.facts.offset = args.offset;
    call.facts.size = args.count;
    call.facts.flags |= flag::HAS_RANGE;
    let target = call.target(args.file);
    let from = (args.offset, args.count);
    let peer = (call.caller.transport(), &*call.facts);
    let extent = |t: Target<'_>| from_file((t.fs, &t.handle), call.cx(), peer, from);
    if let Some(extent) = target.ok().and_then(extent) {
        call.facts.bytes = extent.count as u32;
        let attr = Some(fattr(&extent.attr));
        ReadResOkHead::encode_detached(&mut call.writer(), attr, extent.count as u32, extent.eof);
        return Ok(DispatchResult::Extent(extent));
    }
    match target.and_then(|t| read_into_reply(call, &t, args.offset, args.count)) {
        Ok(count) => {
            call.facts.bytes = count;
            Ok(DispatchResult::Done)
        }
        Err(status) => call.finish(Err::<(), _>(status), |call| call.attr_of(target)),
    }
}

/// Bytes of READ3res before its data: status, attributes with their flag, count, eof, length.
const READ_HEAD: usize = 4 + 4 + wire::nfs3::FATTR3_LEN + 12;

/// Writes the whole reply, reading the data straight into its place. Nothing is left of it if that
/// fails.
fn read_into_reply(
    call: &mut Call<'_>,
    target: &Target<'_>,
    offset: u64,
    count: u32,
) -> Result<u32, Status> {
    let cx = call.cx();
    let start = call.out.len();
    // A shorter reply than requested is valid (RFC 1813 §3.3.6).
    let count = count.min(IO_SIZE_MAX) as usize;
    ReadResOkHead::encode_detached(&mut call.writer(), Some(Fattr3::default()), 0, false);
    let data = call.out.extend_stale(count);
    debug_assert_eq!(data, start + READ_HEAD);
    let room = call.out.vec().get_mut(data..).unwrap_or_default();
    let file = (target.fs, &target.handle);
    let ReadDone { count, eof, attr } = match read_or_run(file, cx, offset, room) {
        Ok(done) => done,
        Err(status) => {
            call.out.truncate(start);
            return Err(status);
        }
    };
    call.out.truncate(data + count);
    let mut w = call.writer();
    w.raw(&[0; 3][..wire::xdr::padding(count)]);
    w.patch(start + 8, &fattr(&attr).to_xdr());
    w.patch_u32(data - 12, count as u32);
    w.patch_u32(data - 8, u32::from(eof));
    w.patch_u32(data - 4, count as u32);
    note_item((&mut *call.out, &*call.facts), count);
    Ok(count as u32)
}

pub(super) fn write(call: &mut Call<'_>) -> Handled {
    let args: WriteArgs<'_> = call.decode()?;
    call.facts.offset = args.offset;
    call.facts.size = args.count;
    call.facts.flags |= flag::HAS_RANGE | flag::INWARD;
    let result = match call.target(args.file) {
        Ok(target) => write_data(call, &target, &args),
        Err(status) => Err((status, WccData::default())),
    };
    if let Ok((ok, _)) = &result {
        call.facts.bytes = ok.count;
    }
    call.finish_change(result)
}

type Written = Result<(WriteResOk, vfs::fs::Flush), (Status, WccData)>;

fn write_data(call: &Call<'_>, target: &Target<'_>, args: &WriteArgs<'_>) -> Written {
    let invalid = (Status::Invalid, WccData::default());
    let stable = match args.stable {
        StableHow::UNSTABLE => Stable::Unstable,
        StableHow::DATA_SYNC => Stable::DataSync,
        StableHow::FILE_SYNC => Stable::FileSync,
        _ => return Err(invalid),
    };
    // The count rules; data that was announced and not sent cannot be made up.
    let data = args.data.get(..args.count as usize).ok_or(invalid)?;
    // Before the data: if a flush of another caller loses it right away, this is another one.
    let verf = target.fs.write_verifier(call.service.verifier);
    match target.fs.write(call.cx(), &target.handle, args.offset, data, stable) {
        Ok(changed) => {
            let ok = WriteResOk {
                file_wcc: wcc(&changed.wcc),
                count: changed.value as u32,
                committed: args.stable,
                verf,
            };
            Ok((ok, changed.flush))
        }
        Err(failed) => Err((failed.status, wcc(&failed.wcc))),
    }
}

pub(super) fn commit(call: &mut Call<'_>) -> Handled {
    let args: CommitArgs<'_> = call.decode()?;
    call.facts.offset = args.offset;
    call.facts.size = args.count;
    call.facts.flags |= flag::HAS_RANGE;
    let start = call.service.verifier;
    let result = match call.target(args.file) {
        Ok(t) => match t.fs.commit(call.cx(), &t.handle) {
            Ok(changed) => {
                let (file_wcc, verf) = (wcc(&changed.wcc), t.fs.write_verifier(start));
                Ok((CommitResOk { file_wcc, verf }, changed.flush))
            }
            Err(failed) => Err((failed.status, wcc(&failed.wcc))),
        },
        Err(status) => Err((status, WccData::default())),
    };
    call.finish_change(result)
}
