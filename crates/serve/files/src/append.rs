//! Data that goes to the end of a file, as that is when the data is written: of two clients that
//! append to one file, neither overwrites acknowledged data of the other one.

use std::sync::Arc;

use vfs::fs::{Context, FileSystem, Result, Stable};
use vfs::handle::Handle;
use vfs::locks::{ByOwners, FileKey};

use super::caller::Caller;
use super::core::Core;
use super::node::Node;
use super::serial::Step;
use super::upload::{Upload, write_all};

/// Where data goes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOffset {
    /// To this offset.
    At(u64),
    /// To the end, wherever that is then (RFC 959 §4.1.3, APPE; SSH_FXF_APPEND).
    End,
}

impl WriteOffset {
    /// Its offset, and for the end the step in which no other client of this server that appends
    /// moves it. To be called on a thread that may wait. Clients of other protocols name offsets
    /// themselves, and may write there meanwhile as they may behind any end.
    ///
    /// # Errors
    /// As of GETATTR.
    pub fn settle(
        self,
        (fs, cx): (&dyn FileSystem, Context<'_>),
        (key, file): (FileKey, &Handle),
    ) -> Result<(u64, Option<Step>)> {
        match self {
            Self::At(offset) => Ok((offset, None)),
            Self::End => {
                let step = Step::on_end(key);
                Ok((fs.getattr(cx, file)?.size, Some(step)))
            }
        }
    }

    /// Where more data goes, behind so much.
    #[must_use]
    pub fn behind(self, count: u64) -> Self {
        match self {
            Self::At(offset) => Self::At(offset.saturating_add(count)),
            Self::End => Self::End,
        }
    }
}

impl Core {
    /// Writes to a place in a file that the caller has an [`Upload`] of, and gives the offset at
    /// which that was; the buffer comes back, to be filled again. It is not on disk before
    /// [`Upload::finish`].
    ///
    /// # Errors
    /// As of GETATTR and WRITE.
    pub async fn write_to(
        &self,
        who: &Caller,
        node: &Node,
        place: WriteOffset,
        data: Vec<u8>,
    ) -> Result<(Vec<u8>, u64)> {
        if let WriteOffset::At(offset) = place {
            return self.write_at(who, node, offset, data).await.map(|spare| (spare, offset));
        }
        self.files.still_reach(who, &node.reached, true)?;
        let (fs, file, key) = (Arc::clone(&node.reached.share.fs), node.handle, node.key());
        let lent = who.lent.clone();
        // Not tried on this thread: what a write that would wait has stored before would move the
        // end for the second attempt.
        let append = move |cx: Context<'_>| {
            let _acting = ByOwners::acting(&lent);
            let written = place.settle((&*fs, cx), (key, &file)).and_then(|(at, _step)| {
                let written = write_all(&*fs, cx, &file, (at, &data), Stable::Unstable);
                written.map(|_| at).map_err(|failed| failed.status)
            });
            (written, data)
        };
        let (written, data) = self.pooled(who, &node.reached.cred, append).await?;
        written.map(|at| (data, at))
    }
}

impl Upload {
    /// As [`Core::write_to`], of this upload.
    ///
    /// # Errors
    /// The same.
    pub async fn write_to(&mut self, place: WriteOffset, data: Vec<u8>) -> Result<(Vec<u8>, u64)> {
        let written = self.core().write_to(self.caller(), self.node(), place, data).await;
        if let Err(status) = &written {
            self.fails(*status);
        }
        written
    }
}
