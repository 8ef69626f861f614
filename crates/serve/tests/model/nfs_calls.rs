//! A client of NFSv3 and NFSv4.0 that goes to places name by name, and follows no link. Its
//! operations go over TCP and RDMA in turn.

use std::collections::HashMap;
use std::net::SocketAddr;

use wire::nfs3::*;
use wire::nfs4::{self, ArgOp, Component4, CompoundArgs, CompoundRes, Tag4};
use wire::xdr::{Decode, Encode, Reader, Writer};

use crate::nfs::stream::Stream;
use crate::nfs::{Client, PATIENCE, Reply};
use crate::op::{SharePath, What};
use crate::tree::SHARES;

/// COMPOUND (RFC 7530 §15.2).
pub const COMPOUND: u32 = 1;

/// A connection of each kind, and the handles of the shares.
pub struct Nfs {
    client: Client,
    /// The one of the other transport.
    other: Client,
    roots: HashMap<&'static str, Vec<u8>>,
}

/// COMPOUND4args of 4.0.
pub struct Compound<'a>(pub &'a [ArgOp<'a>]);

impl Encode for Compound<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        let count = self.0.len() as u32;
        CompoundArgs { tag: Tag4(b""), minorversion: 0, count }.encode(w);
        self.0.iter().for_each(|op| op.encode(w));
    }
}

fn at<'a>(dir: &'a [u8], name: &'a str) -> DiropArgs<'a> {
    DiropArgs { dir: Fh3(dir), name: Filename3(name.as_bytes()) }
}

/// Whether a reply's status is OK.
fn done(reply: &Reply) -> bool {
    let (_, mut results) = reply.open();
    results.u32("status").expect("a status") == 0
}

fn named(name: &str) -> Component4<'_> {
    Component4(name.as_bytes())
}

impl Nfs {
    pub fn connect(addr: SocketAddr) -> Self {
        let mut client = Client::over(Stream::connect_tcp(addr, PATIENCE));
        let mut other = Client::over(Stream::connect_rdma(addr, PATIENCE));
        // Numbers that the other does not use: they are of the same address.
        other.xid = 1 << 31;
        let root = |(name, _): (&'static str, _)| (name, client.mount(&format!("/export/{name}")));
        let roots = SHARES.into_iter().map(root).collect();
        Self { client, other, roots }
    }

    fn change_transport(&mut self) {
        std::mem::swap(&mut self.client, &mut self.other);
    }

    fn look(&mut self, dir: &[u8], name: &str) -> Option<Vec<u8>> {
        let reply = self.client.call(Proc::LOOKUP, &LookupArgs { what: at(dir, name) });
        let found = reply.results::<LookupRes<'_>>().into_result().ok()?;
        Some(found.object.0.to_vec())
    }

    /// The directory that a place is in, and its name there. `None` if that is no way.
    fn parent<'p>(&mut self, place: &'p SharePath) -> Option<(Vec<u8>, &'p str)> {
        let (name, dirs) = place.path.split_last()?;
        let root = self.roots[place.share].clone();
        let dir = dirs.iter().try_fold(root, |dir, part| self.look(&dir, part))?;
        Some((dir, name))
    }

    /// Does it over NFSv3; `None` or false if it is not done.
    pub fn perform(&mut self, what: &What) -> Option<bool> {
        self.change_transport();
        let attributes = Sattr3 { mode: Some(0o755), ..Sattr3::default() };
        let reply = match what {
            What::Put(place, data) => return self.put(place, data.as_bytes()),
            What::Mkdir(place) => {
                let (dir, name) = self.parent(place)?;
                let args = MkdirArgs { where_: at(&dir, name), attributes };
                self.client.call(Proc::MKDIR, &args)
            }
            What::Symlink(place, target) => {
                let (dir, name) = self.parent(place)?;
                let args = SymlinkArgs {
                    where_: at(&dir, name),
                    symlink_attributes: Sattr3::default(),
                    symlink_data: Nfspath3(target.as_bytes()),
                };
                self.client.call(Proc::SYMLINK, &args)
            }
            What::Link(from, to) => {
                let (dir, name) = self.parent(from)?;
                let file = self.look(&dir, name)?;
                let (dir, name) = self.parent(to)?;
                let args = LinkArgs { file: Fh3(&file), link: at(&dir, name) };
                self.client.call(Proc::LINK, &args)
            }
            What::Remove(place) | What::Rmdir(place) => {
                let (dir, name) = self.parent(place)?;
                let dirs = matches!(what, What::Rmdir(_));
                let proc = if dirs { Proc::RMDIR } else { Proc::REMOVE };
                self.client.call(proc, &RemoveArgs { object: at(&dir, name) })
            }
            What::Rename { from, to, .. } => {
                let (from_dir, from_name) = self.parent(from)?;
                let (to_dir, to_name) = self.parent(to)?;
                let args = RenameArgs { from: at(&from_dir, from_name), to: at(&to_dir, to_name) };
                self.client.call(Proc::RENAME, &args)
            }
            What::Copy { .. } => panic!("not over NFS: {what:?}"),
        };
        Some(done(&reply))
    }

    fn put(&mut self, place: &SharePath, data: &[u8]) -> Option<bool> {
        let (dir, name) = self.parent(place)?;
        let set = Sattr3 { size: Some(0), mode: Some(0o644), ..Sattr3::default() };
        let args = CreateArgs { where_: at(&dir, name), how: CreateHow::Unchecked(set) };
        let reply = self.client.call(Proc::CREATE, &args);
        reply.results::<CreateRes<'_>>().into_result().ok()?;
        let file = self.look(&dir, name)?;
        let (file, count, stable) = (Fh3(&file), data.len() as u32, StableHow::FILE_SYNC);
        let args = WriteArgs { file, offset: 0, count, stable, data };
        assert!(done(&self.client.call(Proc::WRITE, &args)), "{place:?} was made");
        Some(true)
    }

    /// PUTROOTFH and LOOKUPs to the directory that a place is in.
    fn to_parent(place: &SharePath) -> Vec<ArgOp<'_>> {
        let dirs = &place.path[..place.path.len() - 1];
        let names = ["export", place.share].into_iter().chain(dirs.iter().map(String::as_str));
        let lookup = |name| ArgOp::Lookup(nfs4::LookupArgs4 { objname: named(name) });
        std::iter::once(ArgOp::Putrootfh(())).chain(names.map(lookup)).collect()
    }

    /// Does it over NFSv4.0; whether it is done.
    pub fn perform4(&mut self, what: &What) -> bool {
        self.change_transport();
        fn last(place: &SharePath) -> Component4<'_> {
            named(place.path.last().expect("a name"))
        }
        let create = |place, objtype| {
            let (objname, createattrs) = (last(place), nfs4::Fattr4::NONE);
            ArgOp::Create(nfs4::CreateArgs4 { objtype, objname, createattrs })
        };
        let mut ops = Vec::new();
        match what {
            What::Mkdir(place) => {
                ops.extend(Self::to_parent(place));
                ops.push(create(place, nfs4::Createtype4::Other(nfs4::Ftype4::DIR)));
            }
            What::Symlink(place, target) => {
                ops.extend(Self::to_parent(place));
                let target = nfs4::Linktext4(target.as_bytes());
                ops.push(create(place, nfs4::Createtype4::Link(target)));
            }
            What::Link(from, to) => {
                ops.extend(Self::to_parent(from));
                ops.push(ArgOp::Lookup(nfs4::LookupArgs4 { objname: last(from) }));
                ops.push(ArgOp::Savefh(()));
                ops.extend(Self::to_parent(to));
                ops.push(ArgOp::Link(nfs4::LinkArgs4 { newname: last(to) }));
            }
            What::Remove(place) => {
                ops.extend(Self::to_parent(place));
                ops.push(ArgOp::Remove(nfs4::RemoveArgs4 { target: last(place) }));
            }
            What::Rename { from, to, .. } => {
                ops.extend(Self::to_parent(from));
                ops.push(ArgOp::Savefh(()));
                ops.extend(Self::to_parent(to));
                let (oldname, newname) = (last(from), last(to));
                ops.push(ArgOp::Rename(nfs4::RenameArgs4 { oldname, newname }));
            }
            other => panic!("not over NFSv4: {other:?}"),
        }
        let (prog, vers) = (nfs4::NFS4_PROGRAM, nfs4::NFS_V4);
        let record = self.client.record(prog, vers, COMPOUND, &Compound(&ops));
        self.client.send(&record);
        let reply = self.client.receive();
        let (_, mut results): (_, Reader<'_>) = reply.open();
        CompoundRes::decode(&mut results).expect("a head").status.is_ok()
    }
}
