//! MOUNT version 3 (RFC 1813, appendix I): from a path to the handle of a directory.

use base::limits::MOUNT_GROUPS_MAX;
use vfs::attr::FileType;
use vfs::fs::{Context, Entry};
use vfs::handle::Handle;
use vfs::share::rules::{self, Access};
use vfs::share::{EXPORT, OriginGrant, Service, Share};
use vfs::status::Status;
use wire::mount3::{
    Dirpath, ExportEntry, Fhandle3, Flavors, List, MntRes, MntResOk, MountEntry, Mountstat3, Name,
};
use wire::xdr::Encode;

use super::call::{Call, DispatchResult, Handled};
use super::mounts::Mounts;
use super::status::mountstat3;

pub(super) fn mnt(call: &mut Call<'_>) -> Handled {
    let path: Dirpath<'_> = call.decode()?;
    match find(call, path.0) {
        Ok((share, handle, flavors)) => {
            call.facts.share = share;
            lock(call).add(call.caller.address, path.0);
            let fhandle = Fhandle3(handle.as_bytes());
            let auth_flavors = Flavors(flavors.numbers().collect());
            MntRes::Ok(MntResOk { fhandle, auth_flavors }).encode(&mut call.writer());
        }
        Err(Status::WouldBlock) if !call.may_block => return Ok(DispatchResult::WouldBlock(None)),
        Err(status) => {
            let status: Mountstat3 = mountstat3(status);
            call.facts.status = status.0 as u16;
            MntRes::Fail(status).encode(&mut call.writer());
        }
    }
    Ok(DispatchResult::Done)
}

/// The share of `/export/NAME/sub/dir`, and `/sub/dir`.
fn share_of<'a, 'p>(call: &Call<'a>, path: &'p [u8]) -> Option<(&'a Share, &'p [u8])> {
    let rest = path.strip_prefix(EXPORT.as_bytes())?;
    let name = rest.split(|b| *b == b'/').next().unwrap_or_default();
    let (share, sub) = path.split_at(EXPORT.len() + name.len());
    Some((call.shares.by_path(share)?, sub))
}

/// The directory at `/export/NAME/sub/dir`. Symbolic links are the client's to follow, and `..` is
/// refused, so nothing leads out. Returns with it the flavors that the share accepts; MOUNT itself
/// accepts any.
fn find(call: &Call<'_>, path: &[u8]) -> Result<(u16, Handle, rules::Flavors), Status> {
    let (share, sub) = share_of(call, path).ok_or(Status::NotFound)?;
    let grant = OriginGrant::new(share, &call.caller.origin()).at_best();
    if grant.access == Access::None {
        return Err(Status::Access);
    }
    let replaced = grant.acting(call.cred);
    let cx = Context { cred: replaced.as_ref().unwrap_or(call.cred), ..call.cx() };
    let fs = &share.fs;
    let mut handle = fs.root();
    for part in sub.split(|b| *b == b'/').filter(|part| !part.is_empty()) {
        if part == b".." {
            return Err(Status::Access);
        }
        let (Entry { handle: next, attr }, _) =
            fs.lookup(cx, &handle, part).map_err(|failed| failed.status)?;
        if attr.kind != FileType::Directory {
            return Err(Status::NotDirectory);
        }
        handle = next;
    }
    Ok((share.id, handle, grant.flavors))
}

pub(super) fn dump(call: &mut Call<'_>) -> Handled {
    call.decode::<()>()?;
    let known: Vec<_> = {
        let mut mounts = lock(call);
        // No client sends UMNT for a share that was removed, and another one may get its name.
        mounts.keep(|path| share_of(call, path).is_some());
        mounts.known.iter().map(|(c, p)| (c.to_string(), p.clone())).collect()
    };
    let entries = known.iter().map(|(client, path)| MountEntry {
        hostname: Name(client.as_bytes()),
        directory: Dirpath(path),
    });
    List(entries.collect()).encode(&mut call.writer());
    Ok(DispatchResult::Done)
}

pub(super) fn umnt(call: &mut Call<'_>) -> Handled {
    let path: Dirpath<'_> = call.decode()?;
    lock(call).remove(call.caller.address, path.0);
    Ok(DispatchResult::Done)
}

pub(super) fn umntall(call: &mut Call<'_>) -> Handled {
    call.decode::<()>()?;
    lock(call).remove_all(call.caller.address);
    Ok(DispatchResult::Done)
}

pub(super) fn export(call: &mut Call<'_>) -> Handled {
    call.decode::<()>()?;
    let shares = call.shares.iter();
    let clients = |share: &Share| -> Vec<String> {
        share
            .rules_for(Service::Nfs)
            .get()
            .clients()
            .take(MOUNT_GROUPS_MAX)
            .map(str::to_owned)
            .collect()
    };
    let paths: Vec<_> = shares.map(|share| (share.export_path(), clients(share))).collect();
    let entries = paths.iter().map(|(path, clients)| ExportEntry {
        dir: Dirpath(path.as_bytes()),
        // No groups: everyone may mount it.
        groups: List(clients.iter().map(|client| Name(client.as_bytes())).collect()),
    });
    List(entries.collect()).encode(&mut call.writer());
    Ok(DispatchResult::Done)
}

fn lock<'a>(call: &Call<'a>) -> std::sync::MutexGuard<'a, Mounts> {
    call.service.mounts.lock().unwrap_or_else(|e| e.into_inner())
}
