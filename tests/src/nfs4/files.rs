//! Files through [`Client`]: opening, data, what NFSv4.2 adds, extended attributes and lists.

use wire::nfs4::{
    Acl4, AllocateArgs4, ArgOp, Attrs4, CloneArgs4, CloseArgs4, Component4, CopyArgs4, CopyRes4,
    Createhow4, GetxattrArgs4, Nfsace4, Opaque4, OpenArgs4, OpenClaim4, Openflag4, ReadArgs4,
    RemovexattrArgs4, Res4, ResOp, SetattrArgs4, SetxattrArgs4, StableHow4, StateOwner4, Stateid4,
    WriteArgs4, attr4, share4,
};
use wire::xdr::Seq;

use super::{Client, Failure, Handle, Outcome, broken, fattr, putfh};

/// A file that is open.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Its handle.
    pub handle: Handle,
    /// By which it is read and written.
    pub stateid: Stateid4,
}

impl Client {
    /// Opens a file for reading and writing as `owner`; makes it with mode 0644 if `create`.
    ///
    /// # Errors
    /// As every call.
    pub fn open(&mut self, dir: &[u8], name: &str, owner: &str, create: bool) -> Outcome<Opened> {
        let mut buf = Vec::new();
        let mode = fattr(&Attrs4 { mode: Some(0o644), ..Default::default() }, &mut buf);
        let openhow = match create {
            true => Openflag4::Create(Createhow4::Guarded(mode)),
            false => Openflag4::Nocreate(()),
        };
        let open = ArgOp::Open(OpenArgs4 {
            seqid: 0,
            share_access: share4::ACCESS_BOTH | share4::WANT_NO_DELEG,
            share_deny: share4::DENY_NONE,
            owner: StateOwner4 { clientid: self.id, owner: Opaque4(owner.as_bytes()) },
            openhow,
            claim: OpenClaim4::Null(Component4(name.as_bytes())),
        });
        let reply = self.at(dir, &[open, ArgOp::Getfh(())])?;
        let results = reply.results()?;
        let stateid = results.iter().find_map(|result| match result {
            ResOp::Open(Res4::Ok(ok)) => Some(ok.stateid),
            _ => None,
        });
        let stateid = stateid.ok_or_else(|| broken("no result of OPEN"))?;
        Ok(Opened { handle: super::handle(&reply)?, stateid })
    }

    /// CLOSE.
    ///
    /// # Errors
    /// As every call.
    pub fn close(&mut self, file: &Opened) -> Outcome<()> {
        let close = CloseArgs4 { seqid: 0, open_stateid: file.stateid };
        self.at(&file.handle, &[ArgOp::Close(close)]).map(|_| ())
    }

    /// WRITE with FILE_SYNC of all of `data`.
    ///
    /// # Errors
    /// As every call; less was written, or not as stable.
    pub fn write(&mut self, file: &Opened, offset: u64, data: &[u8]) -> Outcome<()> {
        let (stateid, stable) = (file.stateid, StableHow4::FILE_SYNC);
        let reply =
            self.at(&file.handle, &[ArgOp::Write(WriteArgs4 { stateid, offset, stable, data })])?;
        match reply.last()? {
            ResOp::Write(Res4::Ok(ok)) if ok.count as usize == data.len() => match ok.committed {
                StableHow4::FILE_SYNC => Ok(()),
                other => Err(broken(format!("only {other:?}"))),
            },
            other => Err(broken(format!("{other:?}"))),
        }
    }

    /// READ: at most `count` bytes.
    ///
    /// # Errors
    /// As every call.
    pub fn read(&mut self, file: &Opened, offset: u64, count: u32) -> Outcome<Vec<u8>> {
        let args = ReadArgs4 { stateid: file.stateid, offset, count };
        let reply = self.at(&file.handle, &[ArgOp::Read(args)])?;
        match reply.last()? {
            ResOp::Read(Res4::Ok(ok)) => Ok(ok.data.to_vec()),
            other => Err(broken(format!("{other:?}"))),
        }
    }

    /// ALLOCATE.
    ///
    /// # Errors
    /// As every call.
    pub fn allocate(&mut self, file: &Opened, offset: u64, length: u64) -> Outcome<()> {
        let args = AllocateArgs4 { stateid: file.stateid, offset, length };
        self.at(&file.handle, &[ArgOp::Allocate(args)]).map(|_| ())
    }

    /// DEALLOCATE.
    ///
    /// # Errors
    /// As every call.
    pub fn deallocate(&mut self, file: &Opened, offset: u64, length: u64) -> Outcome<()> {
        let args = AllocateArgs4 { stateid: file.stateid, offset, length };
        self.at(&file.handle, &[ArgOp::Deallocate(args)]).map(|_| ())
    }

    /// COPY of the first `count` bytes of one file to the start of another: how many were copied.
    ///
    /// # Errors
    /// As every call; or it is not stable.
    pub fn copy(&mut self, from: &Opened, to: &Opened, count: u64) -> Outcome<u64> {
        let copy = ArgOp::Copy(CopyArgs4 {
            src_stateid: from.stateid,
            dst_stateid: to.stateid,
            src_offset: 0,
            dst_offset: 0,
            count,
            consecutive: true,
            synchronous: true,
            source_server: Seq(Vec::new()),
        });
        let ops = [putfh(&from.handle), ArgOp::Savefh(()), putfh(&to.handle), copy];
        let reply = self.compound(&ops)?;
        match reply.last()? {
            ResOp::Copy(CopyRes4::Ok(ok)) if ok.response.committed == StableHow4::FILE_SYNC => {
                Ok(ok.response.count)
            }
            other => Err(broken(format!("{other:?}"))),
        }
    }

    /// CLONE of the whole of one file over the start of another.
    ///
    /// # Errors
    /// As every call.
    pub fn clone_file(&mut self, from: &Opened, to: &Opened) -> Outcome<()> {
        let clone = ArgOp::Clone(CloneArgs4 {
            src_stateid: from.stateid,
            dst_stateid: to.stateid,
            src_offset: 0,
            dst_offset: 0,
            count: 0,
        });
        let ops = [putfh(&from.handle), ArgOp::Savefh(()), putfh(&to.handle), clone];
        self.compound(&ops)?.last().map(|_| ())
    }

    /// SETXATTR, new or not.
    ///
    /// # Errors
    /// As every call.
    pub fn setxattr(&mut self, file: &[u8], key: &str, value: &[u8]) -> Outcome<()> {
        let key = Component4(key.as_bytes());
        let args = SetxattrArgs4 { option: wire::nfs4::setxattr4::EITHER, key, value };
        self.at(file, &[ArgOp::Setxattr(args)]).map(|_| ())
    }

    /// GETXATTR; `None` if there is no such attribute.
    ///
    /// # Errors
    /// As every call.
    pub fn getxattr(&mut self, file: &[u8], key: &str) -> Outcome<Option<Vec<u8>>> {
        let args = GetxattrArgs4 { name: Component4(key.as_bytes()) };
        match self.at(file, &[ArgOp::Getxattr(args)]) {
            Ok(reply) => match reply.last()? {
                ResOp::Getxattr(Res4::Ok(ok)) => Ok(Some(ok.value.to_vec())),
                other => Err(broken(format!("{other:?}"))),
            },
            Err(Failure::Status(wire::nfs4::Nfsstat4::NOXATTR)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// REMOVEXATTR.
    ///
    /// # Errors
    /// As every call.
    pub fn removexattr(&mut self, file: &[u8], key: &str) -> Outcome<()> {
        let args = RemovexattrArgs4 { name: Component4(key.as_bytes()) };
        self.at(file, &[ArgOp::Removexattr(args)]).map(|_| ())
    }

    /// SETATTR of the size, without having the file open.
    ///
    /// # Errors
    /// As every call.
    pub fn set_size(&mut self, file: &[u8], size: u64) -> Outcome<()> {
        let mut buf = Vec::new();
        let attrs = fattr(&Attrs4 { size: Some(size), ..Default::default() }, &mut buf);
        let args = SetattrArgs4 { stateid: Stateid4::ANONYMOUS, obj_attributes: attrs };
        self.at(file, &[ArgOp::Setattr(args)]).map(|_| ())
    }

    /// SETATTR of the access control list.
    ///
    /// # Errors
    /// As every call.
    pub fn set_acl(&mut self, file: &[u8], aces: Vec<Nfsace4<'_>>) -> Outcome<()> {
        let mut buf = Vec::new();
        let attrs =
            fattr(&Attrs4 { acl: Some(Seq(aces) as Acl4<'_>), ..Default::default() }, &mut buf);
        let args = SetattrArgs4 { stateid: Stateid4::ANONYMOUS, obj_attributes: attrs };
        self.at(file, &[ArgOp::Setattr(args)]).map(|_| ())
    }

    /// The `who` of the access control list, entry by entry.
    ///
    /// # Errors
    /// As every call.
    pub fn acl(&mut self, file: &[u8]) -> Outcome<Vec<String>> {
        self.getattr(file, &[attr4::ACL], |attrs| {
            let entries = attrs.acl.iter().flat_map(|acl| acl.0.iter());
            entries.map(|e| String::from_utf8_lossy(e.who.0).into_owned()).collect()
        })
    }
}
