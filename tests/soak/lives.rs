//! The lives of clients: they come, open, lock, read, write, list, make, rename and remove, and go,
//! some with a word and some without. One that comes again under its name has restarted.
//!
//! Those of NFSv4 are here, those of NFSv3 in [`v3`].

use std::net::SocketAddr;

use base::random::{Random, SeededRandom};
use e2e::api::Api;
use e2e::nfs3;
use e2e::nfs4::pipe::{DEPTH, Pipe};
use e2e::nfs4::{Failure, Outcome, fattr, lookup, putfh};
use wire::nfs3::Sattr3;
use wire::nfs4::*;

#[path = "v3.rs"]
mod v3;

/// Names that each worker's clients bear in turn.
const NAMES: u64 = 8;
/// Files that a client has open.
const FILES: usize = 4;
const BLOCK: u32 = 4096;

/// What a client speaks.
#[derive(Debug, Clone, Copy)]
pub enum Version {
    V3,
    V40,
    V41,
}

/// The clients of one worker: of NFSv3, 4.0 and 4.1 in turn.
pub struct Life {
    server: SocketAddr,
    export: String,
    worker: u64,
    lives: u64,
    random: SeededRandom,
    root: Vec<u8>,
}

/// A file that is open and locked.
struct File {
    handle: Vec<u8>,
    open: Stateid4,
    lock: Stateid4,
    /// Numbers of the next requests of its owners (4.0).
    numbers: (u32, u32),
}

fn stateid(reply: &e2e::nfs4::Reply) -> Outcome<Stateid4> {
    let results = reply.results()?;
    let told = results.iter().rev().find_map(|result| match result {
        ResOp::Open(Res4::Ok(ok)) => Some(ok.stateid),
        ResOp::OpenConfirm(Res4::Ok(ok)) | ResOp::Locku(Res4::Ok(ok)) => Some(ok.stateid),
        ResOp::Lock(LockRes4::Ok(ok)) => Some(ok.stateid),
        _ => None,
    });
    told.ok_or(Failure::Status(reply.status))
}

impl Life {
    /// No client yet; makes the worker's folder.
    pub fn new(
        server: SocketAddr,
        export: String,
        worker: u64,
        random: SeededRandom,
    ) -> Result<Self, String> {
        let mut client = nfs3::Client::connect(server, 0, 0).map_err(|e| e.to_string())?;
        let share = client.mnt(&export).map_err(|e| format!("{e:?}"))?;
        let mode = Sattr3 { mode: Some(0o755), ..Sattr3::default() };
        let made = client.mkdir(&share, &format!("w{worker}"), mode);
        let root = made.map_err(|e| format!("{e:?}"))?.handle;
        Ok(Self { server, export, worker, lives: 0, random, root })
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.random.next_u64() % sides
    }

    /// One client's life: its version, and the operations that it did.
    pub fn live(&mut self) -> Result<(Version, u64), String> {
        self.lives += 1;
        // A life over NFSv3 is shorter by the operations of a COMPOUND.
        let (version, done) = match (self.lives + self.worker) % 4 {
            0 => (Version::V40, self.live4(0)),
            1 => (Version::V41, self.live4(1)),
            _ => (Version::V3, self.live3()),
        };
        let done = done.map_err(|e| format!("worker {}, life {}: {e:?}", self.worker, self.lives));
        done.map(|done| (version, done))
    }

    /// The last ones leave, so far as they can.
    pub fn end(&mut self) -> Result<(), String> {
        for name in 0..NAMES {
            self.lives += 1;
            let name = format!("worker {} name {name}", self.worker);
            let pipe = Pipe::connect(self.server, 1, &name, self.lives);
            pipe.and_then(Pipe::leave).map_err(|e| format!("{e:?}"))?;
        }
        self.restarted().map_err(|e| format!("{e:?}"))?;
        self.remove().map_err(|e| format!("{e:?}"))
    }

    /// Takes the worker's files away, so that nothing is kept of them.
    fn remove(&mut self) -> Result<(), nfs3::Failure> {
        let mut client = nfs3::Client::connect(self.server, 0, 0)?;
        for name in client.names(&self.root)? {
            // Folders may be left from the middle of being made and removed.
            client.remove(&self.root, &name, name.starts_with('d'))?;
        }
        let share = client.mnt(&self.export)?;
        client.remove(&share, &format!("w{}", self.worker), true)
    }

    fn live4(&mut self, minor: u32) -> Outcome<u64> {
        let which = self.roll(NAMES);
        let name = format!("worker {} name {which}", self.worker);
        let mut pipe = Pipe::connect(self.server, minor, &name, self.lives)?;
        let mut files = Vec::new();
        for n in 0..FILES {
            files.push(self.open(&mut pipe, minor, &format!("{name} of 4.{minor} file {n}"))?);
        }
        for _ in 0..5 + self.roll(40) {
            self.round(&mut pipe, minor, &mut files)?;
        }
        match self.roll(3) {
            // It has lost its power.
            0 => Ok(pipe.done),
            1 => {
                self.close(&mut pipe, minor, files.pop())?;
                Ok(pipe.done)
            }
            _ => {
                while let Some(file) = files.pop() {
                    self.close(&mut pipe, minor, Some(file))?;
                }
                if minor > 0 { pipe.leave() } else { Ok(pipe.done) }
            }
        }
    }

    fn open(&mut self, pipe: &mut Pipe, minor: u32, name: &str) -> Outcome<File> {
        let mut buf = Vec::new();
        let mode = fattr(&Attrs4 { mode: Some(0o644), ..Default::default() }, &mut buf);
        let root = self.root.clone();
        let owner = |owner| StateOwner4 { clientid: pipe_id(minor, pipe), owner: Opaque4(owner) };
        let open = ArgOp::Open(OpenArgs4 {
            seqid: 1,
            share_access: share4::ACCESS_BOTH,
            share_deny: share4::DENY_NONE,
            owner: owner(name.as_bytes()),
            openhow: Openflag4::Create(Createhow4::Unchecked(mode)),
            claim: OpenClaim4::Null(Component4(name.as_bytes())),
        });
        let locker = owner(name.as_bytes());
        let reply = pipe.one(&[putfh(&root), open, ArgOp::Getfh(())])?;
        let (handle, mut stateid_open) = (e2e::nfs4::handle(&reply)?, stateid(&reply)?);
        if minor == 0 {
            let args = OpenConfirmArgs4 { open_stateid: stateid_open, seqid: 2 };
            let reply = pipe.one(&[putfh(&handle), ArgOp::OpenConfirm(args)])?;
            stateid_open = stateid(&reply)?;
        }
        let lock = ArgOp::Lock(LockArgs4 {
            locktype: locktype4::WRITE,
            reclaim: false,
            offset: 0,
            length: 10,
            locker: Locker4::New(OpenToLockOwner4 {
                open_seqid: 3,
                open_stateid: stateid_open,
                lock_seqid: 1,
                lock_owner: locker,
            }),
        });
        let reply = pipe.one(&[putfh(&handle), lock])?;
        let lock = stateid(&reply)?;
        Ok(File { handle, open: stateid_open, lock, numbers: (4, 2) })
    }

    /// A batch of whatever comes, and the lock of one file taken elsewhere.
    fn round(&mut self, pipe: &mut Pipe, minor: u32, files: &mut [File]) -> Outcome<()> {
        let root = self.root.clone();
        let made: Vec<_> = (0..DEPTH).map(|n| format!("d{n}")).collect();
        let picks: Vec<_> = (0..DEPTH).map(|_| (self.roll(9), self.roll(1 << 20))).collect();
        let batch: Vec<_> = picks
            .iter()
            .zip(&made)
            .map(|((what, at), name)| compound(*what, *at, name, &root, files))
            .collect();
        for reply in pipe.batch(&batch)? {
            // A file that is not there, and a folder that two make, are no faults.
            if ![Nfsstat4::OK, Nfsstat4::NOENT, Nfsstat4::EXIST].contains(&reply.status) {
                return Err(Failure::Status(reply.status));
            }
        }
        let offset = 10 * self.roll(100);
        let which = self.roll(files.len() as u64) as usize;
        let Some(file) = files.get_mut(which) else { return Ok(()) };
        let number = file.numbers.1;
        let lock = ArgOp::Lock(LockArgs4 {
            locktype: locktype4::WRITE,
            reclaim: false,
            offset,
            length: 10,
            locker: Locker4::Existing(ExistLockOwner4 {
                lock_stateid: file.lock,
                lock_seqid: number,
            }),
        });
        let reply = pipe.one(&[putfh(&file.handle), lock])?;
        (file.lock, file.numbers.1) = (stateid(&reply)?, number + u32::from(minor == 0));
        Ok(())
    }

    fn close(&mut self, pipe: &mut Pipe, minor: u32, file: Option<File>) -> Outcome<()> {
        let Some(file) = file else { return Ok(()) };
        if self.roll(2) == 0 || minor == 0 {
            let unlock = ArgOp::Locku(LockuArgs4 {
                locktype: locktype4::WRITE,
                seqid: file.numbers.1,
                lock_stateid: file.lock,
                offset: 0,
                length: u64::MAX,
            });
            pipe.one(&[putfh(&file.handle), unlock])?.last()?;
        }
        let close = CloseArgs4 { seqid: file.numbers.0, open_stateid: file.open };
        pipe.one(&[putfh(&file.handle), ArgOp::Close(close)])?.last().map(|_| ())
    }
}

/// From 4.1 on the session identifies the client of an owner.
fn pipe_id(minor: u32, pipe: &Pipe) -> u64 {
    if minor == 0 { pipe.id } else { 0 }
}

fn compound<'a>(
    what: u64,
    at: u64,
    name: &'a str,
    root: &'a [u8],
    files: &'a [File],
) -> Vec<ArgOp<'a>> {
    let file = &files[at as usize % files.len()];
    let attr_request = Bitmap4::of(&[attr4::TYPE, attr4::SIZE, attr4::FILEID]);
    let getattr = ArgOp::Getattr(GetattrArgs4 { attr_request });
    let (stateid, offset) = (file.open, at);
    match what {
        0 => vec![putfh(&file.handle), getattr],
        1 => vec![
            putfh(&file.handle),
            ArgOp::Read(ReadArgs4 { stateid, offset, count: BLOCK }),
            getattr,
        ],
        2 => {
            let (stable, data) = (StableHow4::UNSTABLE, &[9; 512][..]);
            let write = ArgOp::Write(WriteArgs4 { stateid, offset, stable, data });
            vec![putfh(&file.handle), write, getattr]
        }
        3 => vec![putfh(root), lookup(name), ArgOp::Getfh(()), getattr],
        // Of a name that may be there just now.
        6 => {
            let (oldname, newname) = (Component4(name.as_bytes()), Component4(b"d-renamed"));
            let rename = ArgOp::Rename(RenameArgs4 { oldname, newname });
            vec![putfh(root), ArgOp::Savefh(()), rename]
        }
        7 => vec![putfh(&file.handle), ArgOp::Commit(CommitArgs4 { offset: 0, count: 0 }), getattr],
        4 => {
            let args = ReaddirArgs4 {
                cookie: 0,
                cookieverf: [0; 8],
                dircount: 0,
                maxcount: BLOCK,
                attr_request,
            };
            vec![putfh(root), ArgOp::Readdir(args)]
        }
        5 => {
            let create = ArgOp::Create(CreateArgs4 {
                objtype: Createtype4::Other(Ftype4::DIR),
                objname: Component4(name.as_bytes()),
                createattrs: Fattr4::NONE,
            });
            let remove = ArgOp::Remove(RemoveArgs4 { target: Component4(name.as_bytes()) });
            vec![putfh(root), create, getattr, putfh(root), remove]
        }
        _ => vec![putfh(root), ArgOp::Access(AccessArgs4 { access: 0x3f }), getattr],
    }
}

/// Ends those of 4.0, which cannot leave.
pub fn expire_all(api: &Api) {
    let (_, clients) = api.get("/api/v1/services/nfs/clients");
    for client in clients["rows"].as_array().into_iter().flatten() {
        let id = client["id"].as_str().unwrap_or_default();
        let (code, was) = api.delete(&format!("/api/v1/services/nfs/clients/{id}"));
        assert_eq!(code, 200, "{was}");
    }
}
