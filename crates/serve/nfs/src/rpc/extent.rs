//! Data of a READ: large data is sent from the file itself where that costs less than copying it,
//! and data that a device may write separately is noted as the reply is written. Permission to
//! execute a file includes reading it.

use base::limits::{IO_SIZE_MAX, SEND_FILE_MIN};
use probe::op::{OpRecord, flag};
use vfs::attr::FileType;
use vfs::cred::Cred;
use vfs::fs::{Context, Extent, FileSystem, ReadDone, access};
use vfs::handle::Handle;
use vfs::share::rules::Transport;
use vfs::status::Status;
use wire::rpcrdma::ddp::{self, Called};
use wire::xdr::padding;

use engine::transport::buffers::ReplyBuf;

/// What of `count` bytes from `offset` on to send from the file. For small reads that costs more
/// than copying does, and on the pool the copy is what brings the data into memory. What is
/// encrypted is copied in any case, and so is what a device sends: the file may be cut short
/// while it does.
pub(crate) fn from_file(
    (fs, handle): (&dyn FileSystem, &Handle),
    cx: Context<'_>,
    peer: (Transport, &OpRecord),
    (offset, count): (u64, u32),
) -> Option<Extent> {
    let count = count.min(IO_SIZE_MAX) as usize;
    let (transport, facts) = peer;
    let stream = transport == Transport::Plain && facts.flags & flag::RDMA == 0;
    if count < SEND_FILE_MIN || cx.may_block || !stream {
        return None;
    }
    let extent = fs.extent(cx, handle, offset, count)?;
    (extent.count >= SEND_FILE_MIN).then_some(extent)
}

/// Notes that the reply ends with an item of this length, and its padding, which RDMA may move
/// apart from the rest (RFC 8267 §3, §4).
pub(crate) fn note_item((out, facts): (&mut ReplyBuf, &OpRecord), length: usize) {
    if facts.flags & flag::RDMA != 0
        && let Some(start) = out.len().checked_sub(length + padding(length))
    {
        out.note_item(start..start + length);
    }
}

/// Notes the items of a reply that was retained as bytes, for a call that is repeated: its message
/// begins at `start`.
pub(crate) fn note_kept((out, facts): (&mut ReplyBuf, &OpRecord), start: usize, called: Called) {
    if facts.flags & flag::RDMA == 0 {
        return;
    }
    let message = out.as_slice().get(start..).unwrap_or_default();
    let items = ddp::in_reply(called, message, usize::MAX);
    out.note_items(start, items);
}

/// Reads a file for a client that may want to execute it: for that it must read it, and a server
/// cannot distinguish the two (RFC 1813 §4.4). So permission to execute a regular file includes
/// reading it.
///
/// # Errors
/// As of [`FileSystem::read`].
pub(crate) fn read_or_run(
    (fs, handle): (&dyn FileSystem, &Handle),
    cx: Context<'_>,
    offset: u64,
    room: &mut [u8],
) -> Result<ReadDone, Status> {
    match fs.read(cx, handle, offset, room) {
        Err(Status::Access) => {
            let (granted, attr) = fs.access(cx, handle, access::EXECUTE)?;
            if granted & access::EXECUTE == 0 || attr.kind != FileType::Regular {
                return Err(Status::Access);
            }
            let server = Cred::root();
            fs.read(Context { cred: &server, ..cx }, handle, offset, room)
        }
        other => other,
    }
}
