//! The procedures of NFS version 3 and MOUNT version 3, and their handlers.

use std::sync::Arc;

use base::limits::{IO_SIZE_MAX, READDIR_REPLY_MAX, REPLY_SMALL};
use probe::op::Protocol;
use vfs::handle::Handle;
use vfs::share::rules::Access;
use vfs::status::Status;
use wire::mount3::{MOUNT_PROGRAM, MOUNT_V3};
use wire::nfs3::{Fh3, NFS_PROGRAM, NFS_V3, Nfsstat3, Proc, ReadArgs};
use wire::xdr::{Decode, Encode, Reader, Writer};

use super::call::{Call, DispatchResult, Handled};
use super::mount;
use super::service::Service;
use super::status::{mountstat3, nfsstat3};
use super::{attr, dir, info, io, names};
use crate::rpc::{self, Caller, Procedure, Program};
use engine::transport::buffers::ReplyBuf;

/// NFS version 3.
pub(super) struct Nfs3(pub(super) Arc<Service>);

/// MOUNT version 3.
pub(super) struct Mount3(pub(super) Arc<Service>);

type Handler = fn(&mut Call<'_>) -> Handled;

impl Service {
    fn run(&self, handler: Option<Handler>, call: &mut rpc::Call<'_>) -> rpc::Handled {
        // What the call works with to its end, whatever is exchanged meanwhile.
        let shares = self.shares.load();
        let mut call = Call {
            service: self,
            shares: &shares,
            cred: call.caller.cred(),
            caller: call.caller,
            may_block: call.may_block,
            args: call.args.clone(),
            out: &mut *call.out,
            facts: &mut *call.facts,
        };
        // The procedure was found before.
        handler.map_or(Ok(DispatchResult::Done), |handler| handler(&mut call))
    }
}

impl Program for Nfs3 {
    fn number(&self) -> u32 {
        NFS_PROGRAM
    }

    fn version(&self) -> u32 {
        NFS_V3
    }

    fn protocol(&self) -> Protocol {
        Protocol::Nfs3
    }

    #[inline]
    fn procedure(&self, number: u32) -> Option<Procedure> {
        nfs_operation(number).map(|(_, non_idempotent)| Procedure { number, non_idempotent })
    }

    /// Whether the share in question grants the operation to the caller, and sets the identity that
    /// the share gives to it. Every procedure but NULL begins with a handle, which carries its
    /// share's tag; one that does not is left to its handler.
    #[inline]
    fn admit(
        &self,
        procedure: Procedure,
        args: &Reader<'_>,
        caller: &mut Caller,
    ) -> Result<(), Status> {
        let first = (procedure.number != Proc::NULL.0)
            .then(|| Fh3::decode(&mut args.clone()).ok())
            .flatten();
        let shares = self.0.shares.load();
        let share = first.and_then(|fh| shares.by_handle(&Handle::new(fh.0)?));
        let Some(share) = share else {
            caller.leave();
            return Ok(());
        };
        match caller.enter(share).access {
            Access::None => Err(Status::Access),
            // Twice is not once: it changes something.
            Access::ReadOnly if procedure.non_idempotent => Err(Status::ReadOnly),
            _ => Ok(()),
        }
    }

    fn reply_max(&self, procedure: Procedure, args: &Reader<'_>) -> usize {
        let data = match Proc(procedure.number) {
            Proc::READ => {
                let asked = ReadArgs::decode(&mut args.clone()).map_or(0, |args| args.count);
                asked.min(IO_SIZE_MAX) as usize
            }
            Proc::READDIR | Proc::READDIRPLUS => READDIR_REPLY_MAX as usize,
            _ => 0,
        };
        data + REPLY_SMALL
    }

    fn handle(&self, procedure: Procedure, call: &mut rpc::Call<'_>) -> rpc::Handled {
        self.0.run(nfs_operation(procedure.number).map(|(handler, _)| handler), call)
    }

    fn fail(&self, procedure: u32, status: Status, out: &mut ReplyBuf) -> u16 {
        let status: Nfsstat3 = nfsstat3(status);
        let mut w = Writer::new(out.vec());
        status.encode(&mut w);
        (0..absent_attributes(Proc(procedure))).for_each(|_| w.bool(false));
        status.0 as u16
    }
}

impl Program for Mount3 {
    fn number(&self) -> u32 {
        MOUNT_PROGRAM
    }

    fn version(&self) -> u32 {
        MOUNT_V3
    }

    fn protocol(&self) -> Protocol {
        Protocol::Mount3
    }

    fn procedure(&self, number: u32) -> Option<Procedure> {
        mount_operation(number).map(|_| Procedure { number, non_idempotent: false })
    }

    /// Its lists are made on the connection's thread.
    fn reply_max(&self, _: Procedure, _: &Reader<'_>) -> usize {
        REPLY_SMALL
    }

    fn handle(&self, procedure: Procedure, call: &mut rpc::Call<'_>) -> rpc::Handled {
        self.0.run(mount_operation(procedure.number), call)
    }

    fn has_status(&self, procedure: u32) -> bool {
        procedure == wire::mount3::Proc::MNT.0
    }

    fn fail(&self, _: u32, status: Status, out: &mut ReplyBuf) -> u16 {
        let status = mountstat3(status);
        status.encode(&mut Writer::new(out.vec()));
        status.0 as u16
    }
}

fn nfs_operation(proc: u32) -> Option<(Handler, bool)> {
    Some(match Proc(proc) {
        Proc::NULL => (null, false),
        Proc::GETATTR => (attr::getattr, false),
        Proc::SETATTR => (attr::setattr, true),
        Proc::LOOKUP => (names::lookup, false),
        Proc::ACCESS => (attr::access, false),
        Proc::READLINK => (io::readlink, false),
        Proc::READ => (io::read, false),
        // Twice the same write is one write, unless another came between.
        Proc::WRITE => (io::write, true),
        Proc::CREATE => (names::create, true),
        Proc::MKDIR => (names::mkdir, true),
        Proc::SYMLINK => (names::symlink, true),
        Proc::MKNOD => (names::mknod, true),
        Proc::REMOVE => (names::remove, true),
        Proc::RMDIR => (names::rmdir, true),
        Proc::RENAME => (names::rename, true),
        Proc::LINK => (names::link, true),
        Proc::READDIR => (dir::readdir, false),
        Proc::READDIRPLUS => (dir::readdirplus, false),
        Proc::FSSTAT => (info::fsstat, false),
        Proc::FSINFO => (info::fsinfo, false),
        Proc::PATHCONF => (info::pathconf, false),
        Proc::COMMIT => (io::commit, false),
        _ => return None,
    })
}

fn mount_operation(proc: u32) -> Option<Handler> {
    Some(match wire::mount3::Proc(proc) {
        wire::mount3::Proc::NULL => null,
        wire::mount3::Proc::MNT => mount::mnt,
        wire::mount3::Proc::DUMP => mount::dump,
        wire::mount3::Proc::UMNT => mount::umnt,
        wire::mount3::Proc::UMNTALL => mount::umntall,
        wire::mount3::Proc::EXPORT => mount::export,
        _ => return None,
    })
}

fn null(call: &mut Call<'_>) -> Handled {
    call.decode::<()>()?;
    Ok(DispatchResult::Done)
}

/// How many "no attributes follow" a failure of the procedure carries.
fn absent_attributes(proc: Proc) -> usize {
    match proc {
        Proc::NULL | Proc::GETATTR => 0,
        Proc::LOOKUP | Proc::ACCESS | Proc::READLINK | Proc::READ => 1,
        Proc::READDIR | Proc::READDIRPLUS | Proc::FSSTAT | Proc::FSINFO | Proc::PATHCONF => 1,
        Proc::RENAME => 4,
        Proc::LINK => 3,
        _ => 2,
    }
}

#[cfg(test)]
mod tests;
