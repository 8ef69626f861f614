//! Before and after the load: the way to the share, directory, files with their content, cleaning.

use super::Nfs4Client;
use super::compound::{Reply, refused};
use super::dialect::{File, mode, open_args};
use crate::client::pipe::fill::FillFiles;
use crate::client::scratch::Folder;
use crate::client::{ClientError, FileSet, Op};
use base::limits::LAB_SILENCE_MAX;
use wire::nfs4::{
    ArgOp, Attrs4, Bitmap4, Component4, CreateArgs4, Createtype4, Fattr4, Fh4, Ftype4, LookupArgs4,
    Nfsstat4, OpenDelegation4, PutfhArgs4, ReaddirArgs4, RemoveArgs4, Res4, ResOp, SetattrArgs4,
};
use wire::xdr::{Encode, Writer};

impl Nfs4Client {
    /// The handle at the end of a path from the root of the pseudo file system (§7.3).
    pub(super) fn walk(&mut self, path: &str) -> Result<Vec<u8>, ClientError> {
        let mut ops = vec![ArgOp::Putrootfh(())];
        ops.extend(path.split('/').filter(|part| !part.is_empty()).map(lookup));
        ops.push(ArgOp::Getfh(()));
        self.patient(&ops)?.handle(&format!("find {path}"))
    }

    /// A compound that begins at a file.
    pub(super) fn at(&mut self, handle: &[u8], ops: &[ArgOp<'_>]) -> Result<Reply, ClientError> {
        let put = ArgOp::Putfh(PutfhArgs4 { object: Fh4(handle) });
        let all: Vec<_> = std::iter::once(put).chain(ops.iter().cloned()).collect();
        self.patient(&all)
    }

    pub(super) fn lookup(
        &mut self,
        dir: &[u8],
        name: &str,
    ) -> Result<Option<Vec<u8>>, ClientError> {
        let reply = self.at(dir, &[lookup(name), ArgOp::Getfh(())])?;
        match reply.status {
            Nfsstat4::NOENT => Ok(None),
            _ => reply.handle(&format!("look up {name}")).map(Some),
        }
    }

    fn directory(&mut self, name: &str) -> Result<Vec<u8>, ClientError> {
        let root = self.root.clone();
        if let Some(handle) = self.lookup(&root, name)? {
            return Ok(handle);
        }
        let what = format!("create {name}");
        let reply = self.mkdir(&root, name)?;
        match reply.status {
            Nfsstat4::EXIST => {
                self.lookup(&root, name)?.ok_or_else(|| refused(what, Nfsstat4::NOENT))
            }
            _ => reply.handle(&what),
        }
    }

    pub(super) fn mkdir(&mut self, dir: &[u8], name: &str) -> Result<Reply, ClientError> {
        let mut buf = Vec::new();
        let create = ArgOp::Create(CreateArgs4 {
            objtype: Createtype4::Other(Ftype4::DIR),
            objname: Component4(name.as_bytes()),
            createattrs: mode(0o755, &mut buf),
        });
        self.at(dir, &[create, ArgOp::Getfh(())])
    }

    /// Opens a file, which is made if it is not there.
    fn open_file(&mut self, dir: &[u8], name: &str) -> Result<File, ClientError> {
        let mut buf = Vec::new();
        let open = open_args(self.session.clientid, mode(0o644, &mut buf), name.as_bytes());
        let reply = self.at(dir, &[open, ArgOp::Getfh(())])?;
        let what = format!("open {name}");
        let handle = reply.handle(&what)?;
        let stateid = reply.done(&what)?.into_iter().find_map(|result| match result {
            // Asked not to delegate, a server may still do so; this client could not be recalled.
            ResOp::Open(Res4::Ok(ok)) => match ok.delegation {
                OpenDelegation4::None(()) | OpenDelegation4::NoneExt(_) => Some(ok.stateid),
                _ => None,
            },
            _ => None,
        });
        match stateid {
            Some(stateid) => Ok(File::new(&handle, name, stateid)),
            None => Err(ClientError::Protocol("OPEN with a delegation, or no result".into())),
        }
    }

    pub(super) fn prepare_files(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.close_files(LAB_SILENCE_MAX)?;
        let dir = self.directory(&set.dir_name())?;
        self.pipe.set_client(set.client);
        self.pipe.dialect.set_dir(&dir);
        for number in 0..set.files {
            let file = self.open_file(&dir, &set.file_name(number))?;
            self.pipe.dialect.files.push(file);
        }
        for number in 0..set.files {
            if !self.pipe.is_filled(number, set.size, name)? {
                self.fill(number, set.size)?;
            }
        }
        Ok(())
    }

    fn fill(&mut self, number: u32, size: u64) -> Result<(), ClientError> {
        self.pipe.write_content(number, size, name)?;
        let Some(file) = self.pipe.dialect.files.get(number as usize) else { return Ok(()) };
        let (handle, stateid) = (file.handle.clone(), file.stateid);
        // An older, longer file of the same name would keep its tail.
        let mut buf = Vec::new();
        let obj_attributes = length(size, &mut buf);
        let set = ArgOp::Setattr(SetattrArgs4 { stateid, obj_attributes });
        self.at(&handle, &[set])?.done("set the size of a file")?;
        self.pipe.succeed([Op::Commit { file: number }].into_iter(), name)
    }

    pub(super) fn remove_files(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.close_files(LAB_SILENCE_MAX)?;
        let root = self.root.clone();
        let Some(dir) = self.lookup(&root, &set.dir_name())? else { return Ok(()) };
        for number in 0..set.files {
            self.remove(&dir, &set.file_name(number), false)?;
        }
        let reply = self.gone(&root, &set.dir_name())?;
        match reply.status {
            // A directory with files of another job in it stays.
            Nfsstat4::NOENT | Nfsstat4::NOTEMPTY | Nfsstat4::EXIST => Ok(()),
            _ => reply.done(&format!("remove {}", set.dir_name())).map(drop),
        }
    }

    pub(super) fn gone(&mut self, dir: &[u8], name: &str) -> Result<Reply, ClientError> {
        let target = Component4(name.as_bytes());
        self.at(dir, &[ArgOp::Remove(RemoveArgs4 { target })])
    }
}

impl Folder for Nfs4Client {
    fn root(&self) -> Vec<u8> {
        self.root.clone()
    }

    fn make(&mut self, dir: &[u8], name: &str) -> Result<(), ClientError> {
        self.mkdir(dir, name)?.done(&format!("create {name}")).map(drop)
    }

    fn find(&mut self, dir: &[u8], name: &str) -> Result<Option<Vec<u8>>, ClientError> {
        self.lookup(dir, name)
    }

    fn names(&mut self, dir: &[u8]) -> Result<Vec<String>, ClientError> {
        let readdir = ArgOp::Readdir(ReaddirArgs4 {
            cookie: 0,
            cookieverf: [0; 8],
            dircount: LIST_BYTES,
            maxcount: LIST_BYTES,
            attr_request: Bitmap4::default(),
        });
        let reply = self.at(dir, &[readdir])?;
        let mut names = Vec::new();
        for result in reply.done("list a folder")? {
            let ResOp::Readdir(Res4::Ok(list)) = result else { continue };
            for entry in list.entries.iter() {
                names.push(String::from_utf8_lossy(entry.name.0).into_owned());
            }
        }
        Ok(names)
    }

    fn remove(&mut self, dir: &[u8], name: &str, _folder: bool) -> Result<(), ClientError> {
        let reply = self.gone(dir, name)?;
        match reply.status {
            Nfsstat4::NOENT => Ok(()),
            _ => reply.done(&format!("remove {name}")).map(drop),
        }
    }
}

/// Bytes of one answer to READDIR: well within what a session carries.
const LIST_BYTES: u32 = 32 << 10;

pub(super) fn lookup(name: &str) -> ArgOp<'_> {
    ArgOp::Lookup(LookupArgs4 { objname: Component4(name.as_bytes()) })
}

pub(super) fn length(size: u64, buf: &mut Vec<u8>) -> Fattr4<'_> {
    Attrs4 { size: Some(size), ..Default::default() }.encode(&mut Writer::new(buf));
    // What was encoded just now can be decoded.
    wire::xdr::decode_all(buf).unwrap_or(Fattr4::NONE)
}

fn name(status: u32) -> String {
    Nfsstat4(status).name().to_owned()
}
