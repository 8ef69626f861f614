//! Space of a share: that of its file system, or less where the share has a limit of its own.

use std::sync::OnceLock;

use crate::fs::{Context, Result, Space};
use crate::host::{HostFs, sys};
use crate::status::Status;

/// Space of a share that is less than a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Bytes that it uses.
    pub used: u64,
    /// Most bytes that it uses.
    pub limit: Option<u64>,
}

/// Asks for the part of a share. None: it is not known now.
pub type PartOf = Box<dyn Fn() -> Option<Part> + Send + Sync>;

/// The part of a share, if it has one.
#[derive(Default)]
pub(super) struct ShareLimit(OnceLock<PartOf>);

impl HostFs {
    /// From now on clients see the space of this part. Once.
    pub fn limit_space(&self, part: PartOf) {
        // A second one is not needed: the first is asked each time.
        let _ = self.limit.0.set(part);
    }

    pub(super) fn space_left(&self, cx: Context<'_>) -> Result<Space> {
        if !cx.may_block && (!self.inline.attr || self.limit.0.get().is_some()) {
            return Err(Status::WouldBlock);
        }
        let st = sys::statfs(self.root.fd())?;
        let bytes = |blocks: u64| blocks.saturating_mul(st.f_bsize as u64);
        let whole = Space {
            total_bytes: bytes(st.f_blocks),
            free_bytes: bytes(st.f_bfree),
            avail_bytes: bytes(st.f_bavail),
            total_files: st.f_files,
            free_files: st.f_ffree,
            avail_files: st.f_ffree,
        };
        let part = self.limit.0.get().and_then(|part| part());
        Ok(part.map_or(whole, |part| limited(whole, part)))
    }
}

/// Space of a part: what it uses, and what it can use beyond.
fn limited(whole: Space, Part { used, limit }: Part) -> Space {
    let left = limit.map_or(u64::MAX, |limit| limit.saturating_sub(used));
    let avail_bytes = whole.avail_bytes.min(left);
    let total_bytes = limit.unwrap_or_else(|| used.saturating_add(avail_bytes));
    // What others have taken of the file system is neither used nor free here.
    let free_bytes = total_bytes.saturating_sub(used);
    Space { total_bytes, free_bytes, avail_bytes, ..whole }
}

#[cfg(test)]
mod tests;
