//! Previous versions: what a client opens at a time (`TWrp`), or by the name of a time in a path
//! (`@GMT-` tokens), is a file of a snapshot of the share, below `.snapshot`.

use std::sync::Arc;

use base::limits::SMB_TRANSACT_MAX;
use vfs::fs::Context;
use vfs::host::snapshots::Snapshots;
use vfs::share::snapdir;
use wire::smb::snapshot;
use wire::smb::status::NtStatus;

use super::status;
use files::caller::Reached;
use files::core::Core;
use files::{Caller, VPath};

/// Snapshots by the seconds of their times, newest first; of those of one second, the last in the
/// order of names.
async fn all(
    (core, caller): (&Core, &Caller),
    reached: &Reached,
    snapshots: &Arc<Snapshots>,
) -> Result<Vec<(i64, Vec<u8>)>, NtStatus> {
    let snapshots = Arc::clone(snapshots);
    let list = move |cx: Context<'_>| {
        let all = snapshots.list(cx)?;
        let mut all: Vec<_> = all.iter().map(|one| (one.created.sec, one.name.clone())).collect();
        all.sort_by(|one, other| other.cmp(one));
        all.dedup_by_key(|(seconds, _)| *seconds);
        Ok(all)
    };
    core.look(caller, &reached.cred, list).await.map_err(status::of)
}

/// FSCTL_SRV_ENUMERATE_SNAPSHOTS: the times of all snapshots of the share.
pub(super) async fn enumerate(
    by: (&Core, &Caller),
    reached: &Reached,
    max: usize,
) -> Result<Vec<u8>, NtStatus> {
    if max < snapshot::LIST_MIN {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let Some(snapshots) = &reached.share.snapshots else { return Ok(snapshot::list(&[], max)) };
    let all = all(by, reached, snapshots).await?;
    // The newest ones: no client may ask for more room.
    let tokens = all.iter().filter_map(|(seconds, _)| snapshot::token(*seconds));
    let tokens: Vec<String> = tokens.take(snapshot::room(SMB_TRANSACT_MAX)).collect();
    Ok(snapshot::list(&tokens, max))
}

/// The path of what is opened, with `.snapshot` and the name of a snapshot in it if the path or a
/// context names a time.
pub(super) async fn placed(
    by: (&Core, &Caller),
    reached: &Reached,
    path: VPath,
    at: Option<u64>,
) -> Result<VPath, NtStatus> {
    let parts = path.parts();
    let mut tokens = parts.iter().skip(1).filter_map(|part| snapshot::time(part));
    let named = tokens.next();
    let at = at.map(|time| wire::smb::time::to_unix(time).0);
    let Some(seconds) = named.or(at) else { return Ok(path) };
    // A path leads to one time.
    if tokens.next().is_some() {
        return Err(NtStatus::OBJECT_NAME_INVALID);
    }
    let missing = NtStatus::OBJECT_NAME_NOT_FOUND;
    let Some(snapshots) = &reached.share.snapshots else {
        // A name like others where there are no snapshots.
        return if at.is_some() { Err(missing) } else { Ok(path) };
    };
    let all = all(by, reached, snapshots).await?;
    let found = all.into_iter().find(|(second, _)| *second == seconds);
    let (_, name) = found.ok_or(missing)?;
    let rest = parts.iter().skip(1).filter(|part| snapshot::time(part).is_none());
    let below: Vec<Vec<u8>> =
        [snapdir::NAME.to_vec(), name].into_iter().chain(rest.cloned()).collect();
    if below.len() >= base::limits::TRANSFER_PARTS_MAX {
        return Err(NtStatus::OBJECT_NAME_INVALID);
    }
    Ok(VPath::ROOT.with(reached.share.name.as_bytes()).below(&below))
}
