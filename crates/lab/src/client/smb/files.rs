//! Before and after the load: directories, files with their content, cleaning.

use super::SmbClient;
use super::outstanding::{Reply, refused, status_name};
use super::session::OpenRequest;
use super::setup::broken;
use crate::client::fill;
use crate::client::scratch::Folder;
use crate::client::{Client, ClientError, Fault, FileSet, Op};
use wire::smb::class::file_class;
use wire::smb::create::{Disposition, FileId, Response as Created, access, options};
use wire::smb::dir::{Level, Request as QueryDirectory, entries, output};
use wire::smb::header::Command;
use wire::smb::info::{SetRequest, info_type};
use wire::smb::status::NtStatus;
use wire::smb::utf16;

/// Bytes of one answer to QUERY_DIRECTORY: what one credit pays for.
const LIST_BYTES: u32 = 64 << 10;
/// What a directory is opened with.
pub(super) const DIRECTORY: OpenRequest = OpenRequest {
    access: access::GENERIC_READ,
    disposition: Disposition::Open,
    options: options::DIRECTORY,
};
/// What a file of the load is opened with.
const FILE: OpenRequest = OpenRequest {
    access: access::GENERIC_READ | access::GENERIC_WRITE,
    disposition: Disposition::OpenIf,
    options: options::NON_DIRECTORY,
};

/// Whether there is nothing of this name.
pub(super) fn is_missing(status: NtStatus) -> bool {
    matches!(status, NtStatus::OBJECT_NAME_NOT_FOUND | NtStatus::OBJECT_PATH_NOT_FOUND)
}

pub(super) fn opened(reply: &Reply, what: &str) -> Result<FileId, ClientError> {
    Ok(Created::decode(reply.done(what)?).map_err(broken)?.file)
}

impl SmbClient {
    /// A path in the share, below the folder of the target.
    pub(super) fn path(&self, name: &str) -> String {
        match self.root.as_str() {
            "" => name.to_owned(),
            root => format!("{root}\\{name}"),
        }
    }

    /// Opens something and closes it again; how the opening ended.
    fn touch(&mut self, path: &str, open: OpenRequest) -> Result<NtStatus, ClientError> {
        let reply = self.session.create(path, open)?;
        if reply.status() == NtStatus::SUCCESS {
            let file = opened(&reply, path)?;
            self.session.close(file)?.done(&format!("close {path}"))?;
        }
        Ok(reply.status())
    }

    pub(super) fn succeed(
        &mut self,
        path: &str,
        open: OpenRequest,
        what: &str,
    ) -> Result<(), ClientError> {
        match self.touch(path, open)? {
            NtStatus::SUCCESS => Ok(()),
            status => Err(refused(&format!("{what} {path}"), status)),
        }
    }

    pub(super) fn prepare_files(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.close_files()?;
        let dir = self.path(&set.dir_name());
        let open = OpenRequest { disposition: Disposition::OpenIf, ..DIRECTORY };
        self.succeed(&dir, open, "create")?;
        self.session.dir = format!("{dir}\\");
        let outstanding = &mut self.session.outstanding;
        (outstanding.client, outstanding.set) = (set.client, set.clone());
        for number in 0..set.files {
            let path = format!("{dir}\\{}", set.file_name(number));
            let reply = self.session.create(&path, FILE)?;
            let file = opened(&reply, &format!("open {path}"))?;
            self.session.files.push(file);
        }
        for number in 0..set.files {
            if !self.is_filled(number, set.size)? {
                self.fill(number, set.size)?;
            }
        }
        Ok(())
    }

    /// Whether a file has its content at both ends.
    fn is_filled(&mut self, file: u32, size: u64) -> Result<bool, ClientError> {
        for (op, outcome) in fill::all(self as &mut dyn Client, fill::ends(file, size))? {
            match outcome {
                Ok(_) => {}
                Err(Fault::Corrupt | Fault::Short) => return Ok(false),
                Err(fault) => return Err(fill::failed(op, fault, name)),
            }
        }
        Ok(true)
    }

    fn fill(&mut self, file: u32, size: u64) -> Result<(), ClientError> {
        fill::succeed(self as &mut dyn Client, fill::writes(file, size), name)?;
        // An older, longer file of the same name would keep its tail.
        let number = self.session.files.get(file as usize).copied().unwrap_or(FileId::RELATED);
        let request = SetRequest {
            info_type: info_type::FILE,
            class: file_class::END_OF_FILE,
            additional: 0,
            file: number,
            data: &size.to_le_bytes(),
        };
        let reply = self.session.exchange(Command::SET_INFO, |out, _| request.put(out))?;
        reply.done("set the size of a file")?;
        fill::succeed(self as &mut dyn Client, std::iter::once(Op::Commit { file }), name)
    }

    fn close_files(&mut self) -> Result<(), ClientError> {
        for file in std::mem::take(&mut self.session.files) {
            self.session.close(file)?.done("close a file")?;
        }
        Ok(())
    }

    pub(super) fn remove_files(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.close_files()?;
        let dir = self.path(&set.dir_name());
        for number in 0..set.files {
            self.gone(&format!("{dir}\\{}", set.file_name(number)), false)?;
        }
        match self.touch(&dir, OpenRequest { options: OWN_DIRECTORY, ..OpenRequest::GONE })? {
            // A directory with files of another job in it stays.
            NtStatus::SUCCESS | NtStatus::DIRECTORY_NOT_EMPTY => Ok(()),
            status if is_missing(status) => Ok(()),
            status => Err(refused(&format!("remove {dir}"), status)),
        }
    }

    /// Removes an existing entry of this name.
    fn gone(&mut self, path: &str, folder: bool) -> Result<(), ClientError> {
        let options = if folder { OWN_DIRECTORY } else { OpenRequest::GONE.options };
        match self.touch(path, OpenRequest { options, ..OpenRequest::GONE })? {
            NtStatus::SUCCESS => Ok(()),
            status if is_missing(status) => Ok(()),
            status => Err(refused(&format!("remove {path}"), status)),
        }
    }

    pub(super) fn list(&mut self, file: FileId) -> Result<Vec<String>, ClientError> {
        let pattern = utf16::encode("*");
        let mut names = Vec::new();
        loop {
            let request = QueryDirectory {
                level: Level::Names as u8,
                flags: 0,
                file,
                pattern: &pattern,
                output_max: LIST_BYTES,
            };
            let put = |out: &mut Vec<u8>, _| request.put(out);
            let reply = self.session.exchange(Command::QUERY_DIRECTORY, put)?;
            if reply.status() == NtStatus::NO_MORE_FILES {
                return Ok(names);
            }
            let list = output(reply.done("list a folder")?).map_err(broken)?;
            for entry in entries(Level::Names, list).map_err(broken)? {
                let name = utf16::decode(&entry.name).map_err(broken)?;
                names.extend(Some(name).filter(|name| name != "." && name != ".."));
            }
        }
    }
}

/// Options with which an empty directory is removed.
pub(super) const OWN_DIRECTORY: u32 = options::DELETE_ON_CLOSE | options::DIRECTORY;

/// Handles are paths in the share.
impl Folder for SmbClient {
    fn root(&self) -> Vec<u8> {
        self.root.clone().into_bytes()
    }

    fn make(&mut self, dir: &[u8], name: &str) -> Result<(), ClientError> {
        let open = OpenRequest { disposition: Disposition::Create, ..DIRECTORY };
        self.succeed(&below(dir, name), open, "create")
    }

    fn find(&mut self, dir: &[u8], name: &str) -> Result<Option<Vec<u8>>, ClientError> {
        let path = below(dir, name);
        match self.touch(&path, DIRECTORY)? {
            NtStatus::SUCCESS => Ok(Some(path.into_bytes())),
            status if is_missing(status) => Ok(None),
            status => Err(refused(&format!("look up {path}"), status)),
        }
    }

    fn names(&mut self, dir: &[u8]) -> Result<Vec<String>, ClientError> {
        let reply = self.session.create(&String::from_utf8_lossy(dir), DIRECTORY)?;
        let file = opened(&reply, "open a folder")?;
        let names = self.list(file);
        self.session.close(file)?.done("close a folder")?;
        names
    }

    fn remove(&mut self, dir: &[u8], name: &str, folder: bool) -> Result<(), ClientError> {
        self.gone(&below(dir, name), folder)
    }
}

fn below(dir: &[u8], name: &str) -> String {
    match dir {
        [] => name.to_owned(),
        dir => format!("{}\\{name}", String::from_utf8_lossy(dir)),
    }
}

fn name(status: u32) -> String {
    status_name(NtStatus(status))
}
