//! [`Remote`] over NFSv4.2: a session, and an open for each file that is written.

use std::collections::HashMap;
use std::net::SocketAddr;

use wire::nfs3::{Nfsstat3, Nfstime3, StableHow, Writeverf3};
use wire::nfs4::{
    ArgOp, Attrs4, Bitmap4, CloseArgs4, CommitArgs4, Component4, CreateArgs4, Createhow4,
    Createtype4, Ftype4, GetattrArgs4, LinkArgs4, Linktext4, Opaque4, OpenArgs4, OpenClaim4,
    Openflag4, ReadArgs4, ReaddirArgs4, RemoveArgs4, RenameArgs4, Res4, ResOp, SetattrArgs4,
    StateOwner4, Stateid4, WriteArgs4, attr4, share4,
};

use super::remote::{FileAttributes, Made, Outcome, Remote, Wrote};
use crate::nfs3::{Failure, Handle};
use crate::nfs4::{self, Client, Reply, fattr, handle, putfh};

/// Bytes of one READ.
const READ_MAX: u32 = 1 << 20;
/// Attributes that [`FileAttributes`] needs.
const SEEN: [u32; 4] = [attr4::TYPE, attr4::FILEID, attr4::MODE, attr4::TIME_METADATA];

impl From<nfs4::Failure> for Failure {
    fn from(failure: nfs4::Failure) -> Self {
        match failure {
            nfs4::Failure::Status(status) => Self::Status(Nfsstat3(status.0)),
            nfs4::Failure::Broken(what) => Self::Broken(what),
        }
    }
}

/// A client of NFSv4.2.
pub struct Over4 {
    client: Client,
    opens: HashMap<Handle, Stateid4>,
}

impl Over4 {
    /// Connects under this name, and sends RECLAIM_COMPLETE.
    ///
    /// # Errors
    /// No connection, or what the server refuses.
    pub fn connect(server: SocketAddr, user: u32, name: &str) -> Result<Self, String> {
        let verifier = base::clock::wall_ns();
        let client = Client::connect(server, (user, user), name, verifier);
        let mut client = client.map_err(|e| format!("a session: {e:?}"))?;
        client.reclaim_complete().map_err(|e| format!("RECLAIM_COMPLETE: {e:?}"))?;
        Ok(Self { client, opens: HashMap::new() })
    }

    fn do_open(&mut self, at: &[u8], claim: OpenClaim4<'_>, bits: Option<u32>) -> Outcome<Made> {
        let mut buf = Vec::new();
        let attrs = fattr(&Attrs4 { mode: bits, ..Default::default() }, &mut buf);
        let open = ArgOp::Open(OpenArgs4 {
            seqid: 0,
            share_access: share4::ACCESS_BOTH | share4::WANT_NO_DELEG,
            share_deny: share4::DENY_NONE,
            owner: StateOwner4 { clientid: self.client.id, owner: Opaque4(b"worker") },
            openhow: match bits {
                Some(_) => Openflag4::Create(Createhow4::Guarded(attrs)),
                None => Openflag4::Nocreate(()),
            },
            claim,
        });
        let reply = self.client.at(at, &[open, getattr(), ArgOp::Getfh(())])?;
        let (handle, mut found) = (handle(&reply)?, None);
        for result in reply.results()? {
            if let ResOp::Open(Res4::Ok(ok)) = result {
                found = Some(ok.stateid);
            }
        }
        let stateid = found.ok_or_else(|| Failure::Broken("no stateid".to_owned()))?;
        self.opens.insert(handle.clone(), stateid);
        Ok(Made { handle, seen: seen(&reply)? })
    }

    /// By which a file is written; opens it when it is not open yet.
    fn stateid(&mut self, file: &[u8]) -> Outcome<Stateid4> {
        if let Some(stateid) = self.opens.get(file) {
            return Ok(*stateid);
        }
        self.do_open(file, OpenClaim4::Fh(()), None)?;
        Ok(self.opens.get(file).copied().unwrap_or(Stateid4::ANONYMOUS))
    }

    fn make(&mut self, dir: &[u8], name: &str, kind: Createtype4<'_>, bits: u32) -> Outcome<Made> {
        let mut buf = Vec::new();
        let create = ArgOp::Create(CreateArgs4 {
            objtype: kind,
            objname: Component4(name.as_bytes()),
            createattrs: fattr(&Attrs4 { mode: Some(bits), ..Default::default() }, &mut buf),
        });
        let reply = self.client.at(dir, &[create, getattr(), ArgOp::Getfh(())])?;
        Ok(Made { handle: handle(&reply)?, seen: seen(&reply)? })
    }

    fn set(&mut self, file: &[u8], attrs: &Attrs4<'_>) -> Outcome<Option<FileAttributes>> {
        let mut buf = Vec::new();
        let stateid = match attrs.size {
            Some(_) => self.stateid(file)?,
            None => Stateid4::ANONYMOUS,
        };
        let args = SetattrArgs4 { stateid, obj_attributes: fattr(attrs, &mut buf) };
        seen(&self.client.at(file, &[ArgOp::Setattr(args), getattr()])?)
    }
}

fn getattr() -> ArgOp<'static> {
    ArgOp::Getattr(GetattrArgs4 { attr_request: Bitmap4::of(&SEEN) })
}

/// The attributes in the last GETATTR result of a compound.
fn seen(reply: &Reply) -> Outcome<Option<FileAttributes>> {
    let mut last = None;
    for result in reply.results()? {
        if let ResOp::Getattr(Res4::Ok(ok)) = result {
            let attrs = ok.obj_attributes.values().map_err(|e| Failure::Broken(e.to_string()))?;
            last = Some(FileAttributes {
                fileid: attrs.fileid.unwrap_or_default(),
                mode: attrs.mode.unwrap_or_default() & 0o7777,
                is_fifo: attrs.kind == Some(Ftype4::FIFO),
                ctime: attrs.time_metadata.map_or_else(Nfstime3::default, |at| Nfstime3 {
                    seconds: at.seconds as u32,
                    nseconds: at.nseconds,
                }),
            });
        }
    }
    Ok(last)
}

fn unexpected(result: &ResOp<'_>) -> Failure {
    Failure::Broken(format!("{result:?}"))
}

fn component(name: &str) -> Component4<'_> {
    Component4(name.as_bytes())
}

impl Remote for Over4 {
    fn root(&mut self, export: &str) -> Outcome<Handle> {
        Ok(self.client.walk(export)?)
    }

    fn getattr(&mut self, file: &[u8]) -> Outcome<FileAttributes> {
        let reply = self.client.at(file, &[getattr()])?;
        seen(&reply)?.ok_or_else(|| Failure::Broken("no attributes".to_owned()))
    }

    fn chmod(&mut self, file: &[u8], bits: u32) -> Outcome<Option<FileAttributes>> {
        self.set(file, &Attrs4 { mode: Some(bits), ..Default::default() })
    }

    fn truncate(&mut self, file: &[u8], size: u64) -> Outcome<()> {
        self.set(file, &Attrs4 { size: Some(size), ..Default::default() }).map(|_| ())
    }

    fn lookup(&mut self, dir: &[u8], name: &str) -> Outcome<Handle> {
        Ok(self.client.lookup(dir, name)?)
    }

    fn read_all(&mut self, file: &[u8]) -> Outcome<Vec<u8>> {
        let (mut all, stateid) = (Vec::new(), self.stateid(file)?);
        loop {
            let args = ReadArgs4 { stateid, offset: all.len() as u64, count: READ_MAX };
            let reply = self.client.at(file, &[ArgOp::Read(args)])?;
            match reply.last()? {
                ResOp::Read(Res4::Ok(ok)) => {
                    all.extend_from_slice(ok.data);
                    if ok.eof || ok.data.is_empty() {
                        return Ok(all);
                    }
                }
                other => return Err(unexpected(&other)),
            }
        }
    }

    fn write(&mut self, file: &[u8], offset: u64, data: &[u8], how: StableHow) -> Outcome<Wrote> {
        let args = WriteArgs4 { stateid: self.stateid(file)?, offset, stable: how, data };
        let reply = self.client.at(file, &[ArgOp::Write(args), getattr()])?;
        let results = reply.results()?;
        let wrote = results.iter().find_map(|result| match result {
            ResOp::Write(Res4::Ok(ok)) => Some(*ok),
            _ => None,
        });
        let wrote = wrote.ok_or_else(|| Failure::Broken("no WRITE".to_owned()))?;
        Ok(Wrote {
            count: wrote.count,
            committed: wrote.committed,
            verifier: wrote.writeverf,
            seen: seen(&reply)?,
        })
    }

    fn commit(&mut self, file: &[u8]) -> Outcome<Writeverf3> {
        let commit = ArgOp::Commit(CommitArgs4 { offset: 0, count: 0 });
        match self.client.at(file, &[commit])?.last()? {
            ResOp::Commit(Res4::Ok(ok)) => Ok(ok.writeverf),
            other => Err(unexpected(&other)),
        }
    }

    fn create(&mut self, dir: &[u8], name: &str, bits: u32) -> Outcome<Made> {
        self.do_open(dir, OpenClaim4::Null(component(name)), Some(bits))
    }

    fn close(&mut self, file: &[u8]) -> Outcome<()> {
        let Some(open_stateid) = self.opens.remove(file) else { return Ok(()) };
        self.client.at(file, &[ArgOp::Close(CloseArgs4 { seqid: 0, open_stateid })])?;
        Ok(())
    }

    fn mkdir(&mut self, dir: &[u8], name: &str, bits: u32) -> Outcome<Made> {
        self.make(dir, name, Createtype4::Other(Ftype4::DIR), bits)
    }

    fn symlink(&mut self, dir: &[u8], name: &str, target: &str) -> Outcome<Made> {
        self.make(dir, name, Createtype4::Link(Linktext4(target.as_bytes())), 0o777)
    }

    fn mkfifo(&mut self, dir: &[u8], name: &str, bits: u32) -> Outcome<Made> {
        self.make(dir, name, Createtype4::Other(Ftype4::FIFO), bits)
    }

    fn readlink(&mut self, link: &[u8]) -> Outcome<Vec<u8>> {
        match self.client.at(link, &[ArgOp::Readlink(())])?.last()? {
            ResOp::Readlink(Res4::Ok(ok)) => Ok(ok.link.0.to_vec()),
            other => Err(unexpected(&other)),
        }
    }

    fn remove(&mut self, dir: &[u8], name: &str, _directory: bool) -> Outcome<()> {
        let remove = ArgOp::Remove(RemoveArgs4 { target: component(name) });
        self.client.at(dir, &[remove])?;
        Ok(())
    }

    fn rename(&mut self, from: (&[u8], &str), to: (&[u8], &str)) -> Outcome<()> {
        let names = RenameArgs4 { oldname: component(from.1), newname: component(to.1) };
        let ops = [ArgOp::Savefh(()), putfh(to.0), ArgOp::Rename(names)];
        self.client.at(from.0, &ops)?;
        Ok(())
    }

    fn link(&mut self, file: &[u8], dir: &[u8], name: &str) -> Outcome<Option<FileAttributes>> {
        let link = ArgOp::Link(LinkArgs4 { newname: component(name) });
        let ops = [ArgOp::Savefh(()), putfh(dir), link, ArgOp::Restorefh(()), getattr()];
        seen(&self.client.at(file, &ops)?)
    }

    fn names(&mut self, dir: &[u8]) -> Outcome<Vec<String>> {
        let (mut cookie, mut cookieverf, mut names) = (0, [0; 8], Vec::new());
        loop {
            let attr_request = Bitmap4::of(&[attr4::FILEID]);
            let readdir =
                ReaddirArgs4 { cookie, cookieverf, dircount: 0, maxcount: 8192, attr_request };
            let reply = self.client.at(dir, &[ArgOp::Readdir(readdir)])?;
            let ResOp::Readdir(Res4::Ok(ok)) = reply.last()? else {
                return Err(Failure::Broken("no listing".to_owned()));
            };
            let before = cookie;
            for entry in ok.entries.iter() {
                cookie = entry.cookie;
                names.push(String::from_utf8_lossy(entry.name.0).into_owned());
            }
            if ok.eof || cookie == before {
                return Ok(names);
            }
            cookieverf = ok.cookieverf;
        }
    }
}
