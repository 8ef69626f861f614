//! FSSTAT, FSINFO and PATHCONF (RFC 1813 §3.3.18 to §3.3.20).

use base::limits::{IO_SIZE_MAX, READDIR_REPLY_MAX};
use wire::nfs3::{
    FSF3_CANSETTIME, FSF3_HOMOGENEOUS, FSF3_LINK, FSF3_SYMLINK, FsinfoArgs, FsinfoResOk,
    FsstatArgs, FsstatResOk, Nfstime3, PathconfArgs, PathconfResOk,
};

use super::call::{Call, Handled};
use super::convert::fattr;

/// Suggested multiple of READ and WRITE sizes: a page.
const IO_MULTIPLE: u32 = 4096;

pub(super) fn fsstat(call: &mut Call<'_>) -> Handled {
    let args: FsstatArgs<'_> = call.decode()?;
    let target = call.target(args.fsroot);
    let result = target.and_then(|t| {
        let attr = t.fs.getattr(call.cx(), &t.handle)?;
        let space = t.fs.space(call.cx())?;
        Ok(FsstatResOk {
            obj_attributes: Some(fattr(&attr)),
            tbytes: space.total_bytes,
            fbytes: space.free_bytes,
            abytes: space.avail_bytes,
            tfiles: space.total_files,
            ffiles: space.free_files,
            afiles: space.avail_files,
            // It may change at any moment.
            invarsec: 0,
        })
    });
    call.finish(result, |call| call.attr_of(target))
}

pub(super) fn fsinfo(call: &mut Call<'_>) -> Handled {
    let args: FsinfoArgs<'_> = call.decode()?;
    let target = call.target(args.fsroot);
    let result = target.and_then(|t| {
        let attr = t.fs.getattr(call.cx(), &t.handle)?;
        let can = t.fs.abilities();
        Ok(FsinfoResOk {
            obj_attributes: Some(fattr(&attr)),
            rtmax: IO_SIZE_MAX,
            rtpref: IO_SIZE_MAX,
            rtmult: IO_MULTIPLE,
            wtmax: IO_SIZE_MAX,
            wtpref: IO_SIZE_MAX,
            wtmult: IO_MULTIPLE,
            dtpref: READDIR_REPLY_MAX,
            maxfilesize: can.file_size_max,
            time_delta: Nfstime3 {
                seconds: can.time_delta_ns / 1_000_000_000,
                nseconds: can.time_delta_ns % 1_000_000_000,
            },
            properties: FSF3_LINK | FSF3_SYMLINK | FSF3_HOMOGENEOUS | FSF3_CANSETTIME,
        })
    });
    call.finish(result, |call| call.attr_of(target))
}

pub(super) fn pathconf(call: &mut Call<'_>) -> Handled {
    let args: PathconfArgs<'_> = call.decode()?;
    let target = call.target(args.object);
    let result = target.and_then(|t| {
        let attr = t.fs.getattr(call.cx(), &t.handle)?;
        let can = t.fs.abilities();
        Ok(PathconfResOk {
            obj_attributes: Some(fattr(&attr)),
            linkmax: can.link_max,
            name_max: can.name_max,
            no_trunc: true,
            chown_restricted: can.chown_restricted,
            case_insensitive: false,
            case_preserving: true,
        })
    });
    call.finish(result, |call| call.attr_of(target))
}
