//! A client of NFSv3 with NLM.

use std::net::SocketAddr;

use e2e::nfs3::{Client, Failure, Handle};
use e2e::smb::scene::UID;
use wire::nfs3::{Nfsstat3, StableHow};
use wire::nlm4::{
    self, HostName, LockArgs, NLM_PROGRAM, NLM_V4, Netobj, Nlm4Lock, Nlm4Res, Nlm4Share, Nlm4Stat,
    Proc, ShareArgs, ShareRes, UnlockArgs,
};
use wire::xdr::{Encode, decode_all};

use crate::lock_table::second::Operation;
use crate::lock_table::{EXPORT, Outcome, RENAMED, Refusal, refused};

const NLM: (u32, u32) = (NLM_PROGRAM, NLM_V4);
const COOKIE: Netobj<'static> = Netobj(b"cookie");
/// Access and deny bits of SHARE for reading and writing.
const BOTH: u32 = 3;

/// A host.
pub(super) struct OldNfs {
    client: Client,
    root: Handle,
    name: &'static str,
}

fn of_nfs(failure: Failure) -> Refusal {
    match failure {
        Failure::Status(Nfsstat3::JUKEBOX) => Refusal::Again,
        Failure::Status(status) => refused(status),
        Failure::Broken(why) => panic!("{why}"),
    }
}

fn of_nlm(stat: Nlm4Stat) -> Outcome {
    match stat {
        Nlm4Stat::GRANTED => Ok(()),
        Nlm4Stat::DENIED_GRACE_PERIOD => Err(Refusal::Again),
        other => Err(refused(other)),
    }
}

impl OldNfs {
    pub fn new(server: SocketAddr, name: &'static str) -> Self {
        let mut client = Client::connect(server, UID, 4322).expect("NFSv3");
        let root = client.mnt(EXPORT).expect("a mount");
        Self { client, root, name }
    }

    pub fn find(&mut self, name: &str) -> Outcome<Handle> {
        let found = self.client.lookup(&self.root, name).map_err(of_nfs)?;
        Ok(found.handle)
    }

    fn call(&mut self, proc: Proc, args: &impl Encode) -> Vec<u8> {
        self.client.call(NLM, proc.0, args).expect("an answer")
    }

    /// SHARE or UNSHARE for reading and writing.
    pub fn share(&mut self, proc: Proc, file: &[u8], mode: u32) -> Outcome {
        let name = self.name.as_bytes();
        let (caller_name, oh) = (HostName(name), Netobj(name));
        let share = Nlm4Share { caller_name, fh: Netobj(file), oh, mode, access: BOTH };
        let reply = self.call(proc, &ShareArgs { cookie: COOKIE, share, reclaim: false });
        of_nlm(decode_all::<ShareRes<'_>>(&reply).expect("a result").stat)
    }

    fn alock<'a>(&self, file: &'a [u8]) -> Nlm4Lock<'a> {
        let (name, svid, l_offset, l_len) = (self.name.as_bytes(), 1, 0, 0);
        Nlm4Lock {
            caller_name: HostName(name),
            fh: Netobj(file),
            oh: Netobj(name),
            svid,
            l_offset,
            l_len,
        }
    }

    /// LOCK of all bytes, exclusive, at once or not at all.
    pub fn lock(&mut self, file: &[u8]) -> Outcome {
        let (block, exclusive, state) = (false, true, 1);
        let alock = self.alock(file);
        let args = LockArgs { cookie: COOKIE, block, exclusive, alock, reclaim: false, state };
        let reply = self.call(Proc::LOCK, &args);
        of_nlm(decode_all::<Nlm4Res<'_>>(&reply).expect("a result").stat)
    }

    pub fn unlock(&mut self, file: &[u8]) {
        let args = UnlockArgs { cookie: COOKIE, alock: self.alock(file) };
        self.call(Proc::UNLOCK, &args);
    }

    pub fn unshare(&mut self, file: &[u8]) {
        // It may be gone.
        let _ = self.share(Proc::UNSHARE, file, 0);
    }

    pub fn perform(&mut self, operation: Operation, name: &str) -> Outcome {
        let file = self.find(name)?;
        match operation {
            Operation::Read => self.client.read(&file, 0, 9).map(drop).map_err(of_nfs),
            Operation::Write => {
                let written = self.client.write(&file, 0, b"new", StableHow::FILE_SYNC);
                written.map(drop).map_err(of_nfs)
            }
            Operation::Open => {
                self.share(Proc::SHARE, &file, 0)?;
                self.unshare(&file);
                Ok(())
            }
            Operation::Lock => {
                self.lock(&file)?;
                self.unlock(&file);
                Ok(())
            }
            Operation::Rename => {
                let (from, to) = ((&self.root[..], name), (&self.root[..], RENAMED));
                self.client.rename(from, to).map_err(of_nfs)
            }
            Operation::Remove => self.client.remove(&self.root, name, false).map_err(of_nfs),
        }
    }
}

/// The deny mode of a SHARE that denies both.
pub(super) const DENY_BOTH: u32 = BOTH;
/// The procedure SHARE.
pub(super) const SHARE: nlm4::Proc = Proc::SHARE;
