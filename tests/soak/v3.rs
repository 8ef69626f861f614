//! Clients of NFSv3: they write and read a file that they have locked through NLM, and go, with
//! their locks or without; one that returns first reports its restart (FREE_ALL).

use e2e::nfs3::{self, Failure};
use e2e::nfs4::Outcome;
use e2e::nfs4::pipe::{DEPTH, exchange};
use e2e::tcp::connect_reserved;
use wire::nfs3::{
    AccessArgs, CommitArgs, CreateArgs, CreateHow, DiropArgs, Fh3, Filename3, GetattrArgs,
    LookupArgs, Nfsstat3, Proc, ReadArgs, ReaddirArgs, RemoveArgs, RenameArgs, Sattr3, StableHow,
    WriteArgs,
};
use wire::nlm4::{
    self, HostName, LockArgs, NLM_PROGRAM, NLM_V4, Netobj, Nlm4Lock, Nlm4Res, Nlm4Stat, NotifyArgs,
    UnlockArgs,
};

use super::{BLOCK, Life};

const NLM: (u32, u32) = (NLM_PROGRAM, NLM_V4);
/// Locks that a client takes.
const LOCKS: u64 = 8;

impl Life {
    /// FREE_ALL: lets go of what the last one had. Without it a host that holds nothing stays on
    /// record for another minute.
    ///
    /// It comes from a reserved port; from any other it would not be believed.
    pub(super) fn restarted(&self) -> Outcome<()> {
        let mut rpc = nfs3::Client::over(connect_reserved(self.server)?, 0, 0)?;
        let host = self.host();
        let (name, state) = (HostName(host.as_bytes()), self.lives as u32);
        rpc.call(NLM, nlm4::Proc::FREE_ALL.0, &NotifyArgs { name, state })?;
        Ok(())
    }

    fn host(&self) -> String {
        format!("worker{}", self.worker)
    }

    pub(super) fn live3(&mut self) -> Outcome<u64> {
        let mut rpc = nfs3::Client::connect(self.server, 0, 0)?;
        rpc.mnt(&self.export)?;
        let (root, host) = (self.root.clone(), self.host());
        self.restarted()?;
        let how = CreateHow::Unchecked(Sattr3 { mode: Some(0o644), ..Sattr3::default() });
        let file = rpc.create(&root, "locked", how)?.handle;
        let mut done = lock_all(&mut rpc, &host, &file)?;
        for _ in 0..20 + self.roll(100) {
            let batch: Vec<_> = (0..DEPTH).map(|n| self.call3(&mut rpc, &root, &file, n)).collect();
            for answer in exchange(&mut rpc, &batch)? {
                check(&answer)?;
            }
            done += DEPTH as u64;
        }
        if self.roll(2) == 0 {
            done += unlock_all(&mut rpc, &host, &file)?;
        }
        Ok(done)
    }

    fn call3(&mut self, rpc: &mut nfs3::Client, root: &[u8], file: &[u8], n: usize) -> Vec<u8> {
        let (name, other) = (format!("n{}", n / 2), format!("n{}", n % 5));
        let (dir, file) = (Fh3(root), Fh3(file));
        let at = |name| DiropArgs { dir, name: Filename3(name) };
        let (named, offset) = (at(name.as_bytes()), self.roll(1 << 20));
        match self.roll(11) {
            0 => rpc.nfs_record(Proc::GETATTR, &GetattrArgs { object: file }),
            1 => rpc.nfs_record(Proc::LOOKUP, &LookupArgs { what: named }),
            2 => {
                let how = CreateHow::Unchecked(Sattr3 { mode: Some(0o644), ..Sattr3::default() });
                rpc.nfs_record(Proc::CREATE, &CreateArgs { where_: named, how })
            }
            3 => rpc.nfs_record(Proc::REMOVE, &RemoveArgs { object: named }),
            4 => {
                let args = ReaddirArgs { dir, cookie: 0, cookieverf: [0; 8], count: 4096 };
                rpc.nfs_record(Proc::READDIR, &args)
            }
            5 => rpc.nfs_record(Proc::ACCESS, &AccessArgs { object: dir, access: 0x3f }),
            6 => rpc.nfs_record(Proc::COMMIT, &CommitArgs { file, offset: 0, count: 0 }),
            7 => {
                let to = at(other.as_bytes());
                rpc.nfs_record(Proc::RENAME, &RenameArgs { from: named, to })
            }
            // Of a folder: both are refused, which must leave nothing either.
            8 if n.is_multiple_of(2) => {
                rpc.nfs_record(Proc::READ, &ReadArgs { file: dir, offset: 0, count: BLOCK })
            }
            8 => rpc.nfs_record(Proc::WRITE, &write(dir, offset)),
            9 => rpc.nfs_record(Proc::READ, &ReadArgs { file, offset, count: BLOCK }),
            _ => rpc.nfs_record(Proc::WRITE, &write(file, offset)),
        }
    }
}

fn write(file: Fh3<'_>, offset: u64) -> WriteArgs<'_> {
    let data = &[7; 512];
    let (count, stable) = (data.len() as u32, StableHow::UNSTABLE);
    WriteArgs { file, offset, count, stable, data }
}

/// A file that is not there and a folder that holds no data are no faults.
fn check(answer: &[u8]) -> Outcome<()> {
    let status: Option<[u8; 4]> = answer.get(..4).and_then(|status| status.try_into().ok());
    let status = Nfsstat3(status.map_or(0, u32::from_be_bytes));
    let expected = [Nfsstat3::OK, Nfsstat3::NOENT, Nfsstat3::ISDIR, Nfsstat3::INVAL];
    if expected.contains(&status) {
        return Ok(());
    }
    Err(Failure::Status(status).into())
}

/// The `n`th lock of a client: ranges apart from each other, so that each is one of its own.
fn range<'a>(host: &'a str, file: &'a [u8], n: u64) -> Nlm4Lock<'a> {
    Nlm4Lock {
        caller_name: HostName(host.as_bytes()),
        fh: Netobj(file),
        oh: Netobj(host.as_bytes()),
        svid: 1,
        l_offset: n * 100,
        l_len: 10,
    }
}

fn lock_all(rpc: &mut nfs3::Client, host: &str, file: &[u8]) -> Outcome<u64> {
    let locks = (0..LOCKS).map(|n| {
        let (cookie, alock) = (Netobj(b"cookie"), range(host, file, n));
        let args =
            LockArgs { cookie, block: false, exclusive: true, alock, reclaim: false, state: 1 };
        rpc.record(NLM, nlm4::Proc::LOCK.0, &args)
    });
    let locks: Vec<_> = locks.collect();
    granted(rpc, &locks)
}

fn unlock_all(rpc: &mut nfs3::Client, host: &str, file: &[u8]) -> Outcome<u64> {
    let unlocks = (0..LOCKS).map(|n| {
        let (cookie, alock) = (Netobj(b"cookie"), range(host, file, n));
        rpc.record(NLM, nlm4::Proc::UNLOCK.0, &UnlockArgs { cookie, alock })
    });
    let unlocks: Vec<_> = unlocks.collect();
    granted(rpc, &unlocks)
}

fn granted(rpc: &mut nfs3::Client, calls: &[Vec<u8>]) -> Outcome<u64> {
    for answer in exchange(rpc, calls)? {
        let answer = wire::xdr::decode_all::<Nlm4Res<'_>>(&answer);
        let stat = answer.map_err(|e| Failure::Broken(e.to_string()))?.stat;
        if stat != Nlm4Stat::GRANTED {
            return Err(Failure::Broken(stat.to_string()).into());
        }
    }
    Ok(calls.len() as u64)
}
