//! One call in the hands of its handler: arguments to decode, a reply to encode, facts to note.

use probe::op::{FileId, OpRecord, flag};
use vfs::attr::Attr;
use vfs::cred::Cred;
use vfs::fs::{Context, FileSystem, Flush};
use vfs::handle::Handle;
use vfs::share::ShareTable;
use vfs::status::Status;
use wire::nfs3::{Fattr3, Fh3, Nfsstat3, Res};
use wire::xdr::{Decode, DecodeError, Encode, Reader, Writer};

use super::convert;
use super::service::Service;
use super::status::nfsstat3;
use crate::rpc::Caller;
pub(super) use crate::rpc::{DispatchResult, Handled};
use engine::transport::buffers::ReplyBuf;

/// A call being handled.
pub(super) struct Call<'a> {
    pub(super) service: &'a Service,
    pub(super) shares: &'a ShareTable,
    pub(super) cred: &'a Cred,
    pub(super) caller: &'a Caller,
    pub(super) may_block: bool,
    pub(super) args: Reader<'a>,
    pub(super) out: &'a mut ReplyBuf,
    pub(super) facts: &'a mut OpRecord,
}

/// A file that a call is about: its file system and its handle.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) fs: &'a dyn FileSystem,
    pub(super) handle: Handle,
    pub(super) share: u16,
}

impl<'a> Call<'a> {
    /// The arguments.
    pub(super) fn decode<T: Decode<'a>>(&mut self) -> Result<T, DecodeError> {
        let args = T::decode(&mut self.args)?;
        self.args.clone().finish()?;
        Ok(args)
    }

    /// The caller's credentials, and whether the operation may block.
    pub(super) fn cx(&self) -> Context<'a> {
        Context { cred: self.cred, may_block: self.may_block }
    }

    /// The file behind a handle; the operation is then counted for it and its share.
    pub(super) fn target(&mut self, fh: Fh3<'_>) -> Result<Target<'a>, Status> {
        let target = self.second(fh)?;
        self.count_for(&target);
        Ok(target)
    }

    /// The file behind a further handle of the call.
    pub(super) fn second(&self, fh: Fh3<'_>) -> Result<Target<'a>, Status> {
        let handle = Handle::new(fh.0).ok_or(Status::BadHandle)?;
        let share = self.shares.by_handle(&handle).ok_or(Status::Stale)?;
        Ok(Target { fs: &*share.fs, handle, share: share.id })
    }

    fn count_for(&mut self, target: &Target<'_>) {
        let file: FileId = target.fs.file_id(&target.handle);
        self.facts.share = target.share;
        self.facts.file = file;
        if file != 0 {
            self.facts.flags |= flag::HAS_FILE;
        }
    }

    /// A file's attributes for a reply, if they are available.
    pub(super) fn attr_of(&self, target: Result<Target<'_>, Status>) -> Option<Fattr3> {
        let target = target.ok()?;
        target.fs.getattr(self.cx(), &target.handle).ok().map(|attr: Attr| convert::fattr(&attr))
    }

    /// Where the reply is written.
    pub(super) fn writer(&mut self) -> Writer<'_> {
        Writer::new(self.out.vec())
    }

    /// Writes the reply of an operation that changes nothing. `fail` gives the attributes of a
    /// failure; it is called only when the failure is final.
    pub(super) fn finish<O: Encode, F: Encode>(
        &mut self,
        result: Result<O, Status>,
        fail: impl FnOnce(&Self) -> F,
    ) -> Handled {
        match result {
            Ok(ok) => {
                Res::<O, F>::Ok(ok).encode(&mut self.writer());
                Ok(DispatchResult::Done)
            }
            Err(status) if self.must_wait(status) => Ok(DispatchResult::WouldBlock(None)),
            Err(status) => {
                let fail = fail(self);
                self.fail(status, fail)
            }
        }
    }

    /// Writes the reply of an operation that changed something, or tried to.
    pub(super) fn finish_change<O: Encode, F: Encode>(
        &mut self,
        result: Result<(O, Flush), (Status, F)>,
    ) -> Handled {
        match result {
            Ok((ok, flush)) => {
                Res::<O, F>::Ok(ok).encode(&mut self.writer());
                Ok(if flush.is_empty() {
                    DispatchResult::Done
                } else {
                    DispatchResult::Durable(flush, None)
                })
            }
            Err((status, _)) if self.must_wait(status) => Ok(DispatchResult::WouldBlock(None)),
            Err((status, fail)) => self.fail(status, fail),
        }
    }

    fn must_wait(&self, status: Status) -> bool {
        status == Status::WouldBlock && !self.may_block
    }

    fn fail<F: Encode>(&mut self, status: Status, fail: F) -> Handled {
        let status: Nfsstat3 = nfsstat3(status);
        self.facts.status = status.0 as u16;
        Res::<(), F>::Fail(status, fail).encode(&mut self.writer());
        Ok(DispatchResult::Done)
    }
}
