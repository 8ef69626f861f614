//! What few tests need of the client: groups, ACCESS, READDIRPLUS page by page, records sent as
//! they are.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use wire::nfs3::{AccessArgs, AccessRes, Cookieverf3, Fh3, Proc, ReaddirplusArgs, ReaddirplusRes};

use super::{Client, Handle, NFS_PROGRAM, NFS_V3, Outcome, decode, ok};
use crate::nfs3::Encode;

/// One name of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its bytes.
    pub name: Vec<u8>,
    /// Inode number.
    pub fileid: u64,
    /// Where a listing continues after it.
    pub cookie: u64,
    /// Handle, if it came with it.
    pub handle: Option<Handle>,
    /// Size, if attributes came with it.
    pub size: Option<u64>,
}

/// One reply of READDIRPLUS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The names.
    pub entries: Vec<Listed>,
    /// Goes with the cookies.
    pub cookieverf: Cookieverf3,
    /// Whether it is the last one.
    pub eof: bool,
}

impl Client {
    /// Its calls carry these supplementary groups from now on.
    #[must_use]
    pub fn with_groups(mut self, gids: &[u32]) -> Self {
        gids.clone_into(&mut self.gids);
        self
    }

    /// Its calls have no credential from now on (AUTH_NONE).
    #[must_use]
    pub fn anonymous(self) -> Self {
        Self { anonymous: true, ..self }
    }

    /// ACCESS: which of the rights in `access` there are.
    ///
    /// # Errors
    /// As every call.
    pub fn access(&mut self, file: &[u8], access: u32) -> Outcome<u32> {
        let bytes = self.nfs(Proc::ACCESS, &AccessArgs { object: Fh3(file), access })?;
        ok(decode::<AccessRes>(&bytes)?).map(|done| done.access)
    }

    /// One READDIRPLUS of up to 64 KiB.
    ///
    /// # Errors
    /// As every call.
    pub fn readdirplus(
        &mut self,
        dir: &[u8],
        cookie: u64,
        cookieverf: Cookieverf3,
    ) -> Outcome<Page> {
        let dir = Fh3(dir);
        let args =
            ReaddirplusArgs { dir, cookie, cookieverf, dircount: 1 << 16, maxcount: 1 << 16 };
        let bytes = self.nfs(Proc::READDIRPLUS, &args)?;
        let done = ok(decode::<ReaddirplusRes<'_>>(&bytes)?)?;
        let entries = done.entries.iter().map(|entry| Listed {
            name: entry.name.0.to_vec(),
            fileid: entry.fileid,
            cookie: entry.cookie,
            handle: entry.name_handle.map(|handle| handle.0.to_vec()),
            size: entry.name_attributes.map(|attributes| attributes.size),
        });
        Ok(Page { entries: entries.collect(), cookieverf: done.cookieverf, eof: done.eof })
    }

    /// A call of NFS as a whole record, not sent.
    pub fn nfs_record<A: Encode>(&mut self, proc: Proc, args: &A) -> Vec<u8> {
        self.record((NFS_PROGRAM, NFS_V3), proc.0, args)
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The connection itself.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Says that nothing more will be sent, and whether the server then closes within `deadline`.
    pub fn is_closed_within(&mut self, deadline: Duration) -> bool {
        let _gone = self.stream.shutdown(Shutdown::Write);
        let _set = self.stream.set_read_timeout(Some(deadline));
        let mut rest = [0; 4096];
        loop {
            match io::Read::read(&mut self.stream, &mut rest) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(e) => return e.kind() == io::ErrorKind::ConnectionReset,
            }
        }
    }
}
