//! GETATTR, SETATTR and ACCESS (RFC 1813 §3.3.1, §3.3.2, §3.3.4).

use vfs::fs::access;
use vfs::share::rules::Access;
use wire::nfs3::{AccessArgs, AccessResOk, GetattrArgs, SetattrArgs, WccData};

use super::call::{Call, Handled};
use super::convert::{fattr, set_attr, time, wcc};

pub(super) fn getattr(call: &mut Call<'_>) -> Handled {
    let args: GetattrArgs<'_> = call.decode()?;
    let attr = call.target(args.object).and_then(|t| t.fs.getattr(call.cx(), &t.handle));
    call.finish(attr.map(|attr| fattr(&attr)), |_| ())
}

pub(super) fn setattr(call: &mut Call<'_>) -> Handled {
    let args: SetattrArgs<'_> = call.decode()?;
    let set = set_attr(&args.new_attributes);
    let guard = args.guard.map(time);
    let result = match call.target(args.object).and_then(|t| Ok((t, set?))) {
        Ok((t, set)) => match t.fs.setattr(call.cx(), &t.handle, &set, guard) {
            Ok(changed) => Ok((wcc(&changed.wcc), changed.flush)),
            Err(failed) => Err((failed.status, wcc(&failed.wcc))),
        },
        Err(status) => Err((status, WccData::default())),
    };
    call.finish_change(result)
}

pub(super) fn access(call: &mut Call<'_>) -> Handled {
    let args: AccessArgs<'_> = call.decode()?;
    let target = call.target(args.object);
    let want = match call.caller.grant().access {
        Access::ReadWrite => args.access,
        _ => args.access & !(access::MODIFY | access::EXTEND | access::DELETE),
    };
    let granted = target.and_then(|t| t.fs.access(call.cx(), &t.handle, want));
    let granted =
        granted.map(|(access, attr)| AccessResOk { obj_attributes: Some(fattr(&attr)), access });
    call.finish(granted, |call| call.attr_of(target))
}
