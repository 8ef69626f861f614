//! The data of an existing file, for an upload.

use std::sync::Arc;

use base::limits::TRANSFER_PIECE;
use vfs::fs::{Context, FileSystem, Result};
use vfs::status::Status;

use super::caller::Caller;
use super::core::Core;
use super::node::Node;
use super::upload::Upload;

impl Upload {
    /// Copies all data of a file that the caller may read: by the file system as far as it can.
    ///
    /// # Errors
    /// As of READ and WRITE.
    pub async fn copy_from(&mut self, core: &Core, who: &Caller, from: &Node) -> Result<()> {
        let same = from.reached.share.id == self.reached().share.id;
        let done = if same { by_file_system(core, who, (from, self)).await? } else { 0 };
        by_hand(core, who, (from, self), done).await
    }
}

/// Lets the file system copy; gives how far it came.
async fn by_file_system(core: &Core, who: &Caller, (node, to): (&Node, &Upload)) -> Result<u64> {
    let (from, file, size) = (node.handle, to.node().handle, node.attr.size);
    let mut at = 0;
    while at < size {
        let copy = move |fs: &dyn FileSystem, cx: Context<'_>| {
            fs.copy_range(cx, (&from, at), (&file, at), size - at)
        };
        match core.alter(who, to.reached(), copy).await {
            Ok(0) | Err(Status::NotSupported | Status::CrossDevice | Status::Invalid) => break,
            done => at += done?,
        }
    }
    Ok(at)
}

/// Copies what is left from `at` on, piece by piece.
async fn by_hand(
    core: &Core,
    who: &Caller,
    (node, to): (&Node, &mut Upload),
    at: u64,
) -> Result<()> {
    let (mut at, mut buf) = (at, Vec::new());
    loop {
        let (fs, file) = (Arc::clone(&node.reached.share.fs), node.handle);
        let read = move |cx: Context<'_>| {
            buf.resize(TRANSFER_PIECE, 0);
            let done = fs.read(cx, &file, at, &mut buf);
            buf.truncate(done.map_or(0, |done| done.count));
            done.map(|done| (buf, done.eof))
        };
        let (data, eof) = core.pooled_look(who, &node.reached.cred, read).await??;
        let count = data.len() as u64;
        buf = if count > 0 { to.write(at, data).await? } else { data };
        at += count;
        if eof || count == 0 {
            return Ok(());
        }
    }
}
