//! Compounds against a file system in memory: each family of operations, what each minor version
//! refuses, where a compound continues after it would have blocked, and the effect of a failed
//! flush.

use std::task::Poll;

use probe::op::OpRecord;
use vfs::cred::Cred;
use vfs::fs::FileSystem;
use vfs::mem::MemFs;
use vfs::share::rules::{Flavor, Transport};
use vfs::share::{ShareTable, tag};
use wire::nfs4::*;
use wire::xdr::{Decode, Encode, Reader, Seq, Writer};

use super::*;
use engine::transport::Budgets;
use engine::transport::buffers::ReplyBuf;

mod changes;
mod compound;
mod exports;
mod files;
mod owners;
mod pseudo;
mod sim;
mod tolerance;
mod v42;

/// A service over one or more shares in memory.
struct World {
    nfs: Nfs4,
    cred: Cred,
    transport: Transport,
    flavor: Flavor,
}

/// What a compound came to.
struct Answer {
    status: Nfsstat4,
    results: Vec<ResOp<'static>>,
    facts: Vec<OpRecord>,
}

impl Answer {
    /// The last result, which must be a success.
    fn last(&self) -> &ResOp<'static> {
        assert_eq!(self.status, Nfsstat4::OK, "{:?}", self.results.last());
        self.results.last().expect("a result")
    }
}

/// Keeps no state, but takes one stateid for everything.
struct OneStateid;

/// Whence the calls come.
const ADDRESS: (std::net::IpAddr, u16) =
    (std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 40_000);
const GOOD: Stateid4 = Stateid4 { seqid: 1, other: [7; 12] };

impl StateOps for OneStateid {
    fn operate(&self, run: &mut CompoundContext<'_>, op: &ArgOp<'_>) -> Handled {
        match op {
            ArgOp::Sequence(args) => {
                let slot = Slot { session: args.sessionid, slot: args.slotid };
                run.hold_slot(slot, args.highest_slotid as usize, None);
                run.ok(&SequenceResOk4 {
                    sessionid: args.sessionid,
                    sequenceid: args.sequenceid,
                    slotid: args.slotid,
                    highest_slotid: 0,
                    target_highest_slotid: 0,
                    status_flags: 0,
                })
            }
            _ => Err(Nfsstat4::NOTSUPP.into()),
        }
    }

    fn check_io(&self, _: &CompoundContext<'_>, stateid: &Stateid4, _: u32) -> Result<(), Fail> {
        if *stateid == GOOD { Ok(()) } else { Err(Nfsstat4::BAD_STATEID.into()) }
    }
}

impl World {
    fn new(names: &[&str]) -> Self {
        let mut shares = ShareTable::default();
        for name in names {
            shares.add(name, MemFs::new(tag(name), 1 << 30), false).expect("a share");
        }
        let nfs = Nfs4 {
            shares: Shares::new(shares),
            verifier: [1; 8],
            lease: Duration::from_secs(90),
            idmap: Arc::default(),
            state: Arc::new(OneStateid),
        };
        let cred = Cred { uid: 0, gid: 0, groups: Vec::new() };
        Self { nfs, cred, transport: Transport::Plain, flavor: Flavor::Sys }
    }

    fn message(minorversion: u32, ops: &[ArgOp<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes);
        let count = ops.len() as u32;
        CompoundArgs { tag: Tag4(b"test"), minorversion, count }.encode(&mut w);
        ops.iter().for_each(|op| op.encode(&mut w));
        bytes
    }

    /// Runs a message as a connection would: inline first, then where it may block.
    fn raw(&self, message: &[u8]) -> Answer {
        let peer = Peer {
            cred: &self.cred,
            address: ADDRESS,
            transport: self.transport,
            flavor: self.flavor,
            facts: OpRecord::default(),
            connection: 1,
            back: None,
            budgets: &Budgets::default(),
        };
        let mut out = ReplyBuf::default();
        out.vec().extend_from_slice(b"head");
        let mut facts = Vec::new();
        if let Some(mut progress) = self.nfs.begin(message, &mut out).expect("a head") {
            let p = &mut progress;
            if self.nfs.run(p, peer, false, message, &mut out, 4) == Poll::Pending {
                let done = self.nfs.run(p, peer, true, message, &mut out, 4);
                assert_eq!(done, Poll::Ready(()));
            }
            facts = progress.facts;
        }
        decode(&out.into_vec()[4..], facts)
    }

    fn run(&self, minor: u32, ops: &[ArgOp<'_>]) -> Answer {
        self.raw(&Self::message(minor, ops))
    }

    /// 4.0, from the root of the first share on.
    fn at_share(&self, ops: &[ArgOp<'_>]) -> Answer {
        let name = self.nfs.shares.load().iter().next().expect("a share").name.clone();
        let mut all = vec![ArgOp::Putrootfh(()), lookup(b"export"), lookup(name.as_bytes())];
        all.extend_from_slice(ops);
        let mut answer = self.run(0, &all);
        answer.results.drain(..3);
        answer
    }

    /// Makes a file in the share's root, since OPEN is not here.
    fn file(&self, name: &[u8], data: &[u8]) {
        self.file_of(name, data, 0o644);
    }

    /// A file with this mode.
    fn file_of(&self, name: &[u8], data: &[u8], mode: u32) {
        use vfs::fs::{Context, CreateHow, Stable};
        let shares = self.nfs.shares.load();
        let fs: &Arc<dyn FileSystem> = &shares.iter().next().expect("a share").fs;
        let cx = Context { cred: &self.cred, may_block: true };
        let how = CreateHow::Guarded(vfs::attr::SetAttr { mode: Some(mode), ..Default::default() });
        let entry = fs.create(cx, &fs.root(), name, how).expect("a file").value;
        fs.write(cx, &entry.handle, 0, data, Stable::FileSync).expect("data");
    }
}

/// Reads COMPOUND4res; its bytes live as long as the test's process.
fn decode(bytes: &[u8], facts: Vec<OpRecord>) -> Answer {
    let bytes: &'static [u8] = bytes.to_vec().leak();
    let mut r = Reader::new(bytes);
    let head = CompoundRes::decode(&mut r).expect("a head");
    let results: Vec<_> = (0..head.count).map(|_| ResOp::decode(&mut r).expect("res")).collect();
    r.finish().expect("nothing more");
    Answer { status: head.status, results, facts }
}

fn lookup(name: &[u8]) -> ArgOp<'_> {
    ArgOp::Lookup(LookupArgs4 { objname: Component4(name) })
}

fn getattr(numbers: &[u32]) -> ArgOp<'static> {
    ArgOp::Getattr(GetattrArgs4 { attr_request: Bitmap4::of(numbers) })
}

/// The attributes in the last result of the reply.
fn attrs(answer: &Answer) -> Attrs4<'static> {
    match answer.last() {
        ResOp::Getattr(Res4::Ok(ok)) => ok.obj_attributes.values().expect("attributes"),
        other => panic!("{other:?}"),
    }
}

/// Attributes as they are sent; their bytes live as long as the test's process.
fn fattr(attrs: &Attrs4<'_>) -> Fattr4<'static> {
    let mut bytes = Vec::new();
    attrs.encode(&mut Writer::new(&mut bytes));
    wire::xdr::decode_all(bytes.leak()).expect("attributes")
}

fn read(stateid: Stateid4, offset: u64, count: u32) -> ArgOp<'static> {
    ArgOp::Read(ReadArgs4 { stateid, offset, count })
}

fn mkdir(name: &[u8]) -> ArgOp<'_> {
    ArgOp::Create(CreateArgs4 {
        objtype: Createtype4::Other(Ftype4::DIR),
        objname: Component4(name),
        createattrs: Fattr4::NONE,
    })
}

fn readdir(cookie: u64, cookieverf: [u8; 8], maxcount: u32) -> ArgOp<'static> {
    let attr_request = Bitmap4::of(&[attr4::TYPE, attr4::FILEID, attr4::MOUNTED_ON_FILEID]);
    ArgOp::Readdir(ReaddirArgs4 { cookie, cookieverf, dircount: 0, maxcount, attr_request })
}

fn names_of(answer: &Answer) -> Vec<(u64, String)> {
    match answer.last() {
        ResOp::Readdir(Res4::Ok(ok)) => ok
            .entries
            .iter()
            .map(|e| (e.cookie, String::from_utf8_lossy(e.name.0).into_owned()))
            .collect(),
        other => panic!("{other:?}"),
    }
}

/// Names of all entries, listed in pieces of `maxcount` bytes.
fn list_all(world: &World, maxcount: u32) -> Vec<String> {
    let (mut all, mut cookie, mut verifier) = (Vec::new(), 0, [0; 8]);
    loop {
        let answer = world.at_share(&[readdir(cookie, verifier, maxcount)]);
        let names = names_of(&answer);
        let ResOp::Readdir(Res4::Ok(ok)) = answer.last() else { panic!() };
        verifier = ok.cookieverf;
        cookie = names.last().map_or(cookie, |(cookie, _)| *cookie);
        all.extend(names.into_iter().map(|(_, name)| name));
        if ok.eof {
            return all;
        }
    }
}

/// A sequence operation of [`OneStateid`]: `reply_max` bytes for the compound.
fn sequence(reply_max: u32) -> ArgOp<'static> {
    ArgOp::Sequence(SequenceArgs4 {
        sessionid: [5; 16],
        sequenceid: 1,
        slotid: 0,
        highest_slotid: reply_max,
        cachethis: false,
    })
}

fn seq_of(flavors: &Seq<Secinfo4<'_>, 64>) -> Vec<u32> {
    flavors.0.iter().map(|f| if let Secinfo4::Flavor(n) = f { *n } else { 6 }).collect()
}
