//! Clients of NFSv3 and NFSv4.0, which follow links themselves.

use std::net::SocketAddr;

use wire::nfs3::*;
use wire::nfs4::{self, ArgOp, Component4, CompoundRes, Nfsstat4, Res4, ResOp};
use wire::xdr::{Decode, Encode, Reader};

use super::{Opened, Path};
use crate::nfs::stream::Stream;
use crate::nfs::{Client, PATIENCE, Reply};
use crate::nfs_calls::{COMPOUND, Compound};

/// Bytes of a reply.
const COUNT: u32 = 4096;

/// A client of version 3.
pub struct Nfs3 {
    client: Client,
    root: Vec<u8>,
}

fn at<'a>(dir: &'a [u8], name: &'a [u8]) -> DiropArgs<'a> {
    DiropArgs { dir: Fh3(dir), name: Filename3(name) }
}

impl Nfs3 {
    pub fn connect(addr: SocketAddr, share: &str) -> Self {
        let mut client = Client::over(Stream::connect_tcp(addr, PATIENCE));
        let root = client.mount(&format!("/export/{share}"));
        Self { client, root }
    }

    fn status(&mut self, proc: Proc, args: &impl Encode) -> u32 {
        let reply = self.client.call(proc, args);
        let (_, mut results) = reply.open();
        results.u32("status").expect("a status")
    }

    fn look(&mut self, path: &[Vec<u8>]) -> (Vec<u8>, Ftype3) {
        let mut found = (self.root.clone(), Ftype3::DIR);
        for name in path {
            let reply = self.client.call(Proc::LOOKUP, &LookupArgs { what: at(&found.0, name) });
            let ok = reply.results::<LookupRes<'_>>().into_result().expect("an entry");
            let attr = ok.obj_attributes.expect("attributes");
            found = (ok.object.0.to_vec(), attr.ftype);
        }
        found
    }

    fn parent<'p>(&mut self, path: &'p Path) -> (Vec<u8>, &'p [u8]) {
        let (name, dirs) = path.split_last().expect("a name");
        (self.look(dirs).0, name)
    }
}

impl super::Client for Nfs3 {
    const FOLLOWS: bool = false;

    fn list(&mut self, dir: &Path) -> Vec<Vec<u8>> {
        let (dir, _) = self.look(dir);
        let (mut names, mut cookie, mut cookieverf) = (Vec::new(), 0, [0; 8]);
        loop {
            let (dircount, maxcount) = (COUNT, COUNT);
            let args = ReaddirplusArgs { dir: Fh3(&dir), cookie, cookieverf, dircount, maxcount };
            let reply = self.client.call(Proc::READDIRPLUS, &args);
            let ok = reply.results::<ReaddirplusRes<'_>>().into_result().expect("a listing");
            cookieverf = ok.cookieverf;
            for entry in ok.entries.iter() {
                cookie = entry.cookie;
                names.push(entry.name.0.to_vec());
            }
            if ok.eof {
                names.retain(|name| !matches!(name.as_slice(), b"." | b".."));
                return names;
            }
        }
    }

    fn open(&mut self, path: &Path) -> Opened {
        let (file, kind) = self.look(path);
        let link = self.client.call(Proc::READLINK, &ReadlinkArgs { symlink: Fh3(&file) });
        let read = ReadArgs { file: Fh3(&file), offset: 0, count: COUNT };
        let data = self.client.call(Proc::READ, &read);
        let link = link.results::<ReadlinkRes<'_>>().into_result();
        let data = data.results::<ReadRes<'_>>().into_result();
        assert_eq!(link.is_ok(), kind == Ftype3::LNK);
        assert_eq!(data.is_ok(), kind == Ftype3::REG);
        match (link, data) {
            (Ok(link), _) => Opened::Link(link.data.0.to_vec()),
            (_, Ok(data)) => Opened::Data(data.data.to_vec()),
            _ if kind == Ftype3::DIR => Opened::Directory,
            _ => Opened::Nothing,
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) -> bool {
        let ((from_dir, from), (to_dir, to)) = (self.parent(from), self.parent(to));
        let args = RenameArgs { from: at(&from_dir, from), to: at(&to_dir, to) };
        self.status(Proc::RENAME, &args) == 0
    }

    fn remove(&mut self, path: &Path, is_dir: bool) -> bool {
        let (dir, name) = self.parent(path);
        let proc = if is_dir { Proc::RMDIR } else { Proc::REMOVE };
        self.status(proc, &RemoveArgs { object: at(&dir, name) }) == 0
    }
}

/// A client of version 4.0 without state.
pub struct Nfs4 {
    client: Client,
    share: Vec<u8>,
}

/// The results of a compound that went well, or the status at which it ended.
fn results(reply: &Reply) -> Result<Vec<ResOp<'_>>, Nfsstat4> {
    let (_, mut r): (_, Reader<'_>) = reply.open();
    let head = CompoundRes::decode(&mut r).expect("a head");
    let all = (0..head.count).map(|_| ResOp::decode(&mut r).expect("a result")).collect();
    if head.status.is_ok() { Ok(all) } else { Err(head.status) }
}

impl Nfs4 {
    pub fn connect(addr: SocketAddr, share: &str) -> Self {
        let client = Client::over(Stream::connect_tcp(addr, PATIENCE));
        Self { client, share: share.as_bytes().to_vec() }
    }

    /// Does something where a path leads.
    fn at(&mut self, path: &[Vec<u8>], last: &[ArgOp<'_>]) -> Reply {
        let mut ops = lookups(&self.share, path);
        ops.extend_from_slice(last);
        call(&mut self.client, &ops)
    }
}

fn call(client: &mut Client, ops: &[ArgOp<'_>]) -> Reply {
    let (prog, vers) = (nfs4::NFS4_PROGRAM, nfs4::NFS_V4);
    let record = client.record(prog, vers, COMPOUND, &Compound(ops));
    client.send(&record);
    client.receive()
}

fn lookups<'p>(share: &'p [u8], path: &'p [Vec<u8>]) -> Vec<ArgOp<'p>> {
    let names = [&b"export"[..], share].into_iter().chain(path.iter().map(Vec::as_slice));
    let lookup = |name| ArgOp::Lookup(nfs4::LookupArgs4 { objname: Component4(name) });
    std::iter::once(ArgOp::Putrootfh(())).chain(names.map(lookup)).collect()
}

impl super::Client for Nfs4 {
    const FOLLOWS: bool = false;

    fn list(&mut self, dir: &Path) -> Vec<Vec<u8>> {
        let (mut names, mut cookie, mut cookieverf) = (Vec::new(), 0, [0; 8]);
        loop {
            let attr_request = nfs4::Bitmap4::of(&[]);
            let (dircount, maxcount) = (COUNT, COUNT);
            let args = nfs4::ReaddirArgs4 { cookie, cookieverf, dircount, maxcount, attr_request };
            let reply = self.at(dir, &[ArgOp::Readdir(args)]);
            let ok = match results(&reply).expect("a listing").pop() {
                Some(ResOp::Readdir(Res4::Ok(ok))) => ok,
                other => panic!("{other:?}"),
            };
            cookieverf = ok.cookieverf;
            for entry in ok.entries.iter() {
                cookie = entry.cookie;
                names.push(entry.name.0.to_vec());
            }
            if ok.eof {
                return names;
            }
        }
    }

    fn open(&mut self, path: &Path) -> Opened {
        let (stateid, offset, count) = (nfs4::Stateid4::ANONYMOUS, 0, COUNT);
        let read = nfs4::ReadArgs4 { stateid, offset, count };
        let (link, data) =
            (self.at(path, &[ArgOp::Readlink(())]), self.at(path, &[ArgOp::Read(read)]));
        let data_status = results(&data).map(drop);
        match (results(&link), results(&data)) {
            (Ok(mut link), Err(Nfsstat4::INVAL | Nfsstat4::SYMLINK)) => match link.pop() {
                Some(ResOp::Readlink(Res4::Ok(ok))) => Opened::Link(ok.link.0.to_vec()),
                other => panic!("{other:?}"),
            },
            (Err(_), Ok(mut data)) => match data.pop() {
                Some(ResOp::Read(Res4::Ok(ok))) => Opened::Data(ok.data.to_vec()),
                other => panic!("{other:?}"),
            },
            (Err(_), Err(Nfsstat4::ISDIR)) => Opened::Directory,
            (Err(_), Err(_)) => Opened::Nothing,
            (Ok(_), _) => panic!("a link that is read: {data_status:?}"),
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) -> bool {
        let (from, from_dir) = from.split_last().expect("a name");
        let (to, to_dir) = to.split_last().expect("a name");
        let mut ops = lookups(&self.share, from_dir);
        ops.push(ArgOp::Savefh(()));
        ops.extend(lookups(&self.share, to_dir));
        let (oldname, newname) = (Component4(from), Component4(to));
        ops.push(ArgOp::Rename(nfs4::RenameArgs4 { oldname, newname }));
        results(&call(&mut self.client, &ops)).is_ok()
    }

    fn remove(&mut self, path: &Path, _: bool) -> bool {
        let (name, dir) = path.split_last().expect("a name");
        let remove = ArgOp::Remove(nfs4::RemoveArgs4 { target: Component4(name) });
        results(&self.at(dir, &[remove])).is_ok()
    }
}
