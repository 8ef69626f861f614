//! Large data of a READ: sent from the file itself where that costs less than copying it.

use base::limits::{IO_SIZE_MAX, SEND_FILE_MIN};
use vfs::fs::{Context, Extent, FileSystem};
use vfs::handle::Handle;
use vfs::share::rules::Transport;

/// What of `count` bytes from `offset` on to send from the file. For small reads that costs more
/// than copying does, and on the pool the copy is what brings the data into memory. What is
/// encrypted is copied in any case.
pub(crate) fn from_file(
    (fs, handle): (&dyn FileSystem, &Handle),
    cx: Context<'_>,
    transport: Transport,
    (offset, count): (u64, u32),
) -> Option<Extent> {
    let count = count.min(IO_SIZE_MAX) as usize;
    if count < SEND_FILE_MIN || cx.may_block || transport != Transport::Plain {
        return None;
    }
    let extent = fs.extent(cx, handle, offset, count)?;
    (extent.count >= SEND_FILE_MIN).then_some(extent)
}
