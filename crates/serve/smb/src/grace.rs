//! Waiting for the end of the grace period: what clients of NFS may reclaim is neither opened for
//! writing, denied, locked, written, removed nor renamed before ([`vfs::locks::grace`]). A request
//! waits as for a lock: it can be cancelled, and ends with its file and its connection.

use vfs::locks::{GraceRequest, Protocol};
use wire::smb::status::NtStatus;

use super::dispatch::Request;
use super::state::opens::{Open, OpenFile};
use files::grace;

/// Waits until the grace period is over, if a client must with what it wants.
///
/// # Errors
/// `otherwise` if it lasts too long; STATUS_CANCELLED.
pub(super) async fn wait(
    request: &Request,
    wanted: GraceRequest,
    otherwise: NtStatus,
) -> Result<(), NtStatus> {
    let locks = &request.conn.core.files.locks;
    if !locks.waits_for_grace(Protocol::Smb, wanted) {
        return Ok(());
    }
    let _waits = request.wait_permit();
    tokio::select! {
        ended = grace::ended(locks, grace::patience(locks)) => match ended {
            true => Ok(()),
            false => Err(otherwise),
        },
        () = request.cancel().cancelled() => Err(NtStatus::CANCELLED),
    }
}

/// The same for what is done with an open: nothing of a file that was made since can be reclaimed.
///
/// # Errors
/// As of [`wait`]; STATUS_FILE_CLOSED.
pub(super) async fn wait_with(
    request: &Request,
    (open, file): (&Open, &OpenFile),
    wanted: GraceRequest,
    otherwise: NtStatus,
) -> Result<(), NtStatus> {
    if file.is_new || !file.entry.locks.in_grace() {
        return Ok(());
    }
    let closed = open.closed.notified();
    tokio::select! {
        // First: what is done then is notified of no end before.
        biased;
        () = closed => Err(NtStatus::FILE_CLOSED),
        done = wait(request, wanted, otherwise) => done,
    }
}
