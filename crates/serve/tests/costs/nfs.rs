//! Calls of NFS: procedures of version 3, compounds of versions 4.0 and 4.2.

use base::random::{Random, SeededRandom};
use vfs::host::{HostFs, HostOptions};
use vfs::share::tag;
use wire::nfs3::{self, Fh3, ReaddirArgs, ReaddirplusArgs};
use wire::nfs4::*;
use wire::xdr::{Decode, Encode, Reader, Seq, Writer};

use crate::calls::{Client, Compound, Scene, Wire};
use crate::scene::Scratch;
use crate::search::worst;
use crate::tree::{self, one_of, up_to};

/// Calls a compound; its status, how many operations were done, and its results.
fn call(wire: &mut Wire, minor: u32, ops: &[ArgOp<'_>]) -> (Nfsstat4, u32, Vec<u8>) {
    let bytes = wire.call((NFS4_PROGRAM, NFS_V4, 1), &Compound(minor, ops));
    let mut r = Reader::new(&bytes);
    let head = CompoundRes::decode(&mut r).expect("a head");
    (head.status, head.count, r.rest().to_vec())
}

fn lookup(name: &'static str) -> ArgOp<'static> {
    ArgOp::Lookup(LookupArgs4 { objname: Component4(name.as_bytes()) })
}

/// What operations are made of.
struct Operands {
    /// Directories, files and links, by name.
    handles: Vec<(&'static str, Vec<u8>)>,
    /// Attributes to be set and compared: access control lists of more and more entries.
    lists: Vec<Vec<u8>>,
    /// All attributes that can be read.
    all: Bitmap4,
}

const NAMES: [&str; 9] =
    ["large", "few", "links", "deep", "many", "small", "sparse", "holes", "work"];

/// The handle of what is called so in the root of the share.
pub fn handle(wire: &mut Wire, name: &'static str) -> Vec<u8> {
    let ops = [ArgOp::Putrootfh(()), lookup("export"), lookup("t"), lookup(name), ArgOp::Getfh(())];
    let (status, _, results) = call(wire, 0, &ops);
    assert_eq!(status, Nfsstat4::OK, "{name}");
    let mut r = Reader::new(&results);
    let result = (0..5).map(|_| ResOp::decode(&mut r).expect("a result")).last();
    let Some(ResOp::Getfh(Res4::Ok(ok))) = result else { panic!("{name}") };
    ok.object.0.to_vec()
}

impl Operands {
    fn new(wire: &mut Wire) -> Self {
        let handles = NAMES.into_iter().map(|name| (name, handle(wire, name))).collect();
        let lists = [1, 50, 250, 500, 1_000].map(|count: u32| {
            let who: Vec<String> = (0..count).map(|n| (10_000 + n).to_string()).collect();
            let ace = |who: &'static str| Nfsace4 {
                kind: acetype4::ALLOWED,
                flag: 0,
                access_mask: acemask4::READ_DATA,
                who: Utf8str(who.as_bytes()),
            };
            let fixed = ["OWNER@", "GROUP@", "EVERYONE@"].map(ace);
            let named = who.iter().map(|who| Nfsace4 { who: Utf8str(who.as_bytes()), ..fixed[0] });
            let acl = Some(Seq(fixed.into_iter().chain(named).collect()));
            let mut bytes = Vec::new();
            Attrs4 { acl, ..Attrs4::default() }.encode(&mut Writer::new(&mut bytes));
            bytes
        });
        let mut all = Bitmap4::EMPTY;
        attr4::ALL.iter().for_each(|(number, _)| all.add(*number));
        Self { handles, lists: lists.into(), all }
    }

    fn attrs(&self, random: &mut SeededRandom) -> Fattr4<'_> {
        let list = &self.lists[random.below(self.lists.len() as u64) as usize];
        wire::xdr::decode_all(list).expect("attributes")
    }

    fn wanted(&self, random: &mut SeededRandom) -> Bitmap4 {
        match random.below(4) {
            0 => self.all,
            1 => Bitmap4::of(&[attr4::ACL]),
            2 => Bitmap4::of(&[attr4::TYPE]),
            _ => Bitmap4::of(&[attr4::FILEID, attr4::SPACE_FREE]),
        }
    }

    /// An operation on the current file.
    fn op(&self, random: &mut SeededRandom, kind: u64) -> ArgOp<'_> {
        let (offset, stateid) = (up_to(random, 1 << 26), Stateid4::ANONYMOUS);
        match kind {
            0 => ArgOp::Getattr(GetattrArgs4 { attr_request: self.wanted(random) }),
            1 => ArgOp::Readdir(ReaddirArgs4 {
                cookie: if random.below(2) == 0 { 0 } else { up_to(random, 1 << 40) },
                cookieverf: [0; 8],
                dircount: up_to(random, u64::from(u32::MAX)) as u32,
                maxcount: up_to(random, 1 << 21) as u32,
                attr_request: self.wanted(random),
            }),
            2 => ArgOp::Verify(VerifyArgs4 { obj_attributes: self.attrs(random) }),
            3 => ArgOp::Nverify(VerifyArgs4 { obj_attributes: self.attrs(random) }),
            4 => ArgOp::Setattr(SetattrArgs4 { stateid, obj_attributes: self.attrs(random) }),
            5 => ArgOp::Access(AccessArgs4 { access: 0x3f }),
            6 => ArgOp::Read(ReadArgs4 { stateid, offset, count: up_to(random, 1 << 20) as u32 }),
            7 => ArgOp::Secinfo(SecinfoArgs4 { name: Component4(b"small") }),
            8 => ArgOp::Savefh(()),
            9 => lookup(one_of(random, &["d", "small", "long", "chain0"])),
            10 => ArgOp::Commit(CommitArgs4 { offset: 0, count: 0 }),
            11 => {
                let data: &[u8] = &[7; 512];
                ArgOp::Write(WriteArgs4 { stateid, offset, stable: StableHow4::UNSTABLE, data })
            }
            12 => ArgOp::Create(CreateArgs4 {
                objtype: Createtype4::Other(Ftype4::DIR),
                objname: Component4(b"made"),
                createattrs: self.attrs(random),
            }),
            13 => {
                let what = if random.below(2) == 0 { content4::DATA } else { content4::HOLE };
                ArgOp::Seek(SeekArgs4 { stateid, offset, what })
            }
            14 => {
                let count = up_to(random, 1 << 20) as u32;
                ArgOp::ReadPlus(ReadPlusArgs4 { stateid, offset, count })
            }
            15 => ArgOp::Setxattr(SetxattrArgs4 {
                option: setxattr4::EITHER,
                key: Component4(one_of(random, &["a", "b", "c", "d"]).as_bytes()),
                value: &[1; 4096],
            }),
            16 => ArgOp::Getxattr(GetxattrArgs4 { name: Component4(b"a") }),
            17 => {
                let (cookie, maxcount) = (up_to(random, 8), up_to(random, 1 << 18) as u32);
                ArgOp::Listxattrs(ListxattrsArgs4 { cookie, maxcount })
            }
            18 => {
                let length = up_to(random, 1 << 22);
                ArgOp::Deallocate(AllocateArgs4 { stateid, offset, length })
            }
            _ => ArgOp::Copy(CopyArgs4 {
                src_stateid: stateid,
                dst_stateid: stateid,
                src_offset: 0,
                dst_offset: 64 << 20,
                count: up_to(random, 60 << 20),
                consecutive: true,
                synchronous: true,
                source_server: Seq(Vec::new()),
            }),
        }
    }

    fn putfh(&self, random: &mut SeededRandom) -> (&'static str, ArgOp<'_>) {
        let (name, handle) = &self.handles[random.below(self.handles.len() as u64) as usize];
        (name, ArgOp::Putfh(PutfhArgs4 { object: Fh4(handle) }))
    }

    /// A compound of at most `most` operations: one kind many times, or all kinds.
    fn compound(
        &self,
        random: &mut SeededRandom,
        most: u64,
        kinds: u64,
    ) -> (String, Vec<ArgOp<'_>>) {
        let (name, putfh) = self.putfh(random);
        let (mut ops, mut bytes) = (vec![putfh.clone()], Vec::new());
        let (kind, mixed) = (random.below(kinds), random.below(4) == 0);
        if kind == 19 {
            ops.push(ArgOp::Savefh(()));
        }
        while (ops.len() as u64) < most {
            let kind = if mixed { random.below(kinds) } else { kind };
            let op = self.op(random, kind);
            op.encode(&mut Writer::new(&mut bytes));
            // A record has no room for more.
            if bytes.len() > 900_000 {
                break;
            }
            ops.push(op);
            // Operations that leave the directory go back to it.
            if matches!(kind, 7 | 9 | 12) {
                ops.push(putfh.clone());
            }
        }
        ops.truncate(most as usize);
        (
            format!(
                "{name}: {} of kind {kind}{}",
                ops.len(),
                if mixed { " and others" } else { "" }
            ),
            ops,
        )
    }
}

/// A call of version 3.
fn call3(wire: &mut Wire, parts: &Operands, random: &mut SeededRandom) -> String {
    let (name, handle) = &parts.handles[random.below(parts.handles.len() as u64) as usize];
    let cookie = if random.below(2) == 0 { 0 } else { up_to(random, 1 << 40) };
    let (dir, cookieverf, count) = (Fh3(handle), [0; 8], up_to(random, 1 << 21) as u32);
    let program = |proc: nfs3::Proc| (nfs3::NFS_PROGRAM, nfs3::NFS_V3, proc.0);
    let bytes = match random.below(2) {
        0 => {
            let args = ReaddirArgs { dir, cookie, cookieverf, count };
            wire.call(program(nfs3::Proc::READDIR), &args)
        }
        _ => {
            let dircount = up_to(random, 1 << 20) as u32;
            let args = ReaddirplusArgs { dir, cookie, cookieverf, dircount, maxcount: count };
            wire.call(program(nfs3::Proc::READDIRPLUS), &args)
        }
    };
    format!("version 3: listing of {name} from {cookie}, {count} bytes at most: {}", bytes.len())
}

/// A service on the folder `share` of this one.
pub fn scene(folder: &Scratch) -> Scene {
    let options = HostOptions::new(tag("t"), [7; 32]);
    let fs = HostFs::open(&folder.0.join("share"), options).expect("a share");
    Scene::over(fs, Vec::new())
}

#[test]
fn of_nfs() {
    let folder = tree::new();
    let scene = scene(&folder);
    let mut wire = Wire::connect(scene.addr);
    let parts = Operands::new(&mut wire);
    let Client { wire: mut session, session: sessionid, .. } =
        Client::new(scene.addr, b"costs", vec![CallbackSec4::None(())]);
    // The first was RECLAIM_COMPLETE.
    let mut sequenceid = 1;
    worst("nfs", |random: &mut SeededRandom| match random.below(4) {
        0 => call3(&mut wire, &parts, random),
        1 | 2 => {
            // Some are long, most are short: what costs is what is repeated.
            let most = if random.below(8) == 0 { 128 } else { 2 + up_to(random, 14) };
            let (text, ops) = parts.compound(random, most, 13);
            let (status, done, results) = call(&mut wire, 0, &ops);
            format!("4.0, {text}: {status:?} after {done}, {} bytes", results.len())
        }
        _ => {
            sequenceid += 1;
            let sequence = ArgOp::Sequence(SequenceArgs4 {
                sessionid,
                sequenceid,
                slotid: 0,
                highest_slotid: 0,
                cachethis: false,
            });
            let most = 2 + up_to(random, 13);
            let (text, mut ops) = parts.compound(random, most, 20);
            ops.insert(0, sequence);
            let (status, done, results) = call(&mut session, 2, &ops);
            format!("4.2, {text}: {status:?} after {done}, {} bytes", results.len())
        }
    });
}
