//! The operations on parts of files: ALLOCATE, DEALLOCATE, SEEK, COPY, CLONE.

use std::os::fd::AsFd;
use std::sync::Arc;

use base::limits::{COPY_BUFFER, COPY_TURN_MAX};

use crate::attr::{Attr, Before, Wcc};
use crate::flush::FlushSite;
use crate::fs::{Change, Changed, Context, Failed, Flush, Result, Seek};
use crate::handle::Handle;
use crate::host::lock::lock;
use crate::host::node::Node;
use crate::host::open::{OpenFile, Stamp};
use crate::host::sys::{self, extents};
use crate::host::{CredGuard, HostFs};
use crate::status::Status;

impl HostFs {
    /// A change of a file's data that is made through a descriptor for writing and is on disk
    /// when its flush is done.
    fn change_data<T>(
        &self,
        cx: Context<'_>,
        file: &Handle,
        site: FlushSite,
        change: impl FnOnce(&OpenFile, &Arc<Node>, &Attr) -> Result<T>,
    ) -> Change<T> {
        if !cx.may_block && !self.inline.all {
            return Err(Status::WouldBlock.into());
        }
        let node = self.node(cx, file)?;
        let before = self.attr(&node)?;
        let outcome = self.open_for(cx, &node, &before, true).and_then(|open| {
            let done = change(&open, &node, &before);
            // What goes to the pool first has changed nothing yet.
            if !matches!(done, Err(Status::WouldBlock)) {
                node.touched();
            }
            let after = self.attr(&node)?;
            let mut stamp = lock(&open.stamp);
            if stamp.same(&before) && stamp.same_mode(&after) {
                *stamp = Stamp::of(&after);
            }
            let mut flush = Flush::NONE;
            self.flush_file(&mut flush, site, &node, Some(Arc::clone(&open.fd)));
            Ok((done?, flush))
        });
        let wcc = Wcc { before: Some(Before::from(&before)), after: self.attr(&node).ok() };
        match outcome {
            Ok((value, flush)) => Ok(Changed { value, wcc, flush }),
            Err(status) => Err(Failed { status, wcc }),
        }
    }

    pub(super) fn allocate_range(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        len: u64,
    ) -> Change<()> {
        self.change_data(cx, file, FlushSite::Allocate, |open, _, _| {
            let end = offset.checked_add(len).ok_or(Status::Invalid)?;
            if i64::try_from(end).is_err() {
                return Err(Status::TooLarge);
            }
            let _caller = self.as_caller(cx)?;
            Ok(extents::allocate(open.fd.as_fd(), offset, len)?)
        })
    }

    pub(super) fn deallocate_range(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        len: u64,
    ) -> Change<()> {
        self.change_data(cx, file, FlushSite::Deallocate, |open, _, before| {
            offset.checked_add(len).ok_or(Status::Invalid)?;
            // Beyond the end there is nothing to deallocate, and some file systems refuse.
            let len = len.min(before.size.saturating_sub(offset));
            if len == 0 {
                return Ok(());
            }
            let _caller = self.as_caller(cx)?;
            Ok(extents::punch(open.fd.as_fd(), offset, len)?)
        })
    }

    pub(super) fn seek_file(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        what: Seek,
    ) -> Result<Option<u64>> {
        if !cx.may_block && !self.inline.all {
            return Err(Status::WouldBlock);
        }
        let node = self.node(cx, file)?;
        let attr = self.attr(&node)?;
        let open = self.open_for(cx, &node, &attr, false)?;
        if offset >= attr.size {
            return Err(Status::TooLarge);
        }
        match extents::seek(open.fd.as_fd(), offset, what == Seek::Hole) {
            Ok(at) => Ok(Some(at)),
            Err(e) if e.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            // It does not know; then all of it is data.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                Ok(Some(if what == Seek::Hole { attr.size } else { offset }))
            }
            Err(e) => Err(e.into()),
        }
    }

    /// The source of a copy: its descriptor and how many bytes are meant.
    fn source(
        &self,
        cx: Context<'_>,
        (file, offset): (&Handle, u64),
        to: (&Arc<Node>, u64),
        len: u64,
    ) -> Result<(Arc<OpenFile>, u64)> {
        let node = self.node(cx, file)?;
        let attr = self.attr(&node)?;
        let open = self.open_for(cx, &node, &attr, false)?;
        let end =
            if len == 0 { attr.size } else { offset.checked_add(len).ok_or(Status::Invalid)? };
        let len = end.checked_sub(offset).ok_or(Status::Invalid)?;
        if end > attr.size {
            return Err(Status::Invalid);
        }
        let last = to.1.checked_add(len).ok_or(Status::TooLarge)?;
        let overlaps = to.1 < end && offset < last;
        if node.ino == to.0.ino && overlaps && len > 0 {
            return Err(Status::Invalid);
        }
        if i64::try_from(last).is_err() {
            return Err(Status::TooLarge);
        }
        Ok((open, len))
    }

    pub(super) fn copy_file_range(
        &self,
        cx: Context<'_>,
        from: (&Handle, u64),
        (to, dest): (&Handle, u64),
        len: u64,
    ) -> Change<u64> {
        self.change_data(cx, to, FlushSite::Copy, |open, node, _| {
            let (source, len) = self.source(cx, from, (node, dest), len)?;
            let _caller = self.as_caller(cx)?;
            copy_bytes(&source, from.1, open, dest, len.min(COPY_TURN_MAX))
        })
    }

    pub(super) fn clone_file_range(
        &self,
        cx: Context<'_>,
        from: (&Handle, u64),
        (to, dest): (&Handle, u64),
        len: u64,
    ) -> Change<()> {
        self.change_data(cx, to, FlushSite::Clone, |open, node, _| {
            let (source, len) = self.source(cx, from, (node, dest), len)?;
            if len == 0 {
                return Ok(());
            }
            let _caller: CredGuard = self.as_caller(cx)?;
            let (from, to) = ((source.fd.as_fd(), from.1), (open.fd.as_fd(), dest));
            extents::clone(from, to, len).map_err(|e| match e.raw_os_error() {
                Some(libc::ENOTTY | libc::EOPNOTSUPP) => Status::NotSupported,
                _ => Status::from(e),
            })
        })
    }
}

/// Copies in the kernel, or through a buffer where the kernel cannot.
fn copy_bytes(source: &OpenFile, from: u64, target: &OpenFile, to: u64, len: u64) -> Result<u64> {
    let (mut done, mut by_kernel) = (0, true);
    let mut buf = Vec::new();
    while done < len {
        let left = usize::try_from(len - done).unwrap_or(usize::MAX);
        let at = ((source.fd.as_fd(), from + done), (target.fd.as_fd(), to + done));
        let copied = if by_kernel {
            extents::copy(at.0, at.1, left)
        } else {
            buf.resize(left.min(COPY_BUFFER), 0);
            sys::read_at(at.0.0, &mut buf, at.0.1, false).and_then(|n| {
                let part = buf.get(..n).unwrap_or_default();
                if part.is_empty() { Ok(0) } else { sys::write_at(at.1.0, part, at.1.1) }
            })
        };
        match copied {
            Ok(0) if by_kernel => by_kernel = false,
            Ok(0) => break,
            Ok(n) => done += n as u64,
            Err(e) if by_kernel && kernel_cannot(&e) => by_kernel = false,
            Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
            Err(e) if done == 0 => return Err(e.into()),
            Err(_) => break,
        }
    }
    Ok(done)
}

fn kernel_cannot(e: &std::io::Error) -> bool {
    let errno = e.raw_os_error();
    matches!(errno, Some(libc::EXDEV | libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL))
}
