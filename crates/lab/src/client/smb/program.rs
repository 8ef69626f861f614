//! Files of programs over SMB: a request for each call; what names a file is CREATE and CLOSE.

use super::SmbClient;
use super::files::{DIRECTORY, OWN_DIRECTORY, is_missing, opened};
use super::session::{OpenRequest, charge};
use super::setup::broken;
use crate::client::ClientError;
use crate::client::files::{Entry, Files, OpenHow, not_open};
use wire::smb::class::{attributes, file_class};
use wire::smb::create::{Disposition, FileId, Response as Created, access, options};
use wire::smb::dir::output;
use wire::smb::header::Command;
use wire::smb::info::{QueryRequest, SetRequest, info_type};
use wire::smb::io::{
    FlushRequest, ReadRequest, WRITE_THROUGH, WriteRequest, WriteResponse, read_data,
};
use wire::smb::status::NtStatus;

/// Bytes of FileStandardInformation, and where the size is in it.
const STANDARD: (u32, usize) = (24, 8);

/// Files of a share.
pub struct SmbFiles {
    client: SmbClient,
    open: Vec<Option<FileId>>,
}

/// What a file is opened with.
fn request(how: OpenHow) -> OpenRequest {
    let (access, disposition) = match how {
        OpenHow::Read => (access::GENERIC_READ, Disposition::Open),
        OpenHow::Write => (access::GENERIC_WRITE | access::READ_ATTRIBUTES, Disposition::Open),
        OpenHow::Both => (access::GENERIC_READ | access::GENERIC_WRITE, Disposition::Open),
        OpenHow::New => (access::GENERIC_READ | access::GENERIC_WRITE, Disposition::Create),
    };
    OpenRequest { access, disposition, options: options::NON_DIRECTORY }
}

impl SmbFiles {
    /// By the connection of a client.
    pub fn new(client: SmbClient) -> Self {
        Self { client, open: Vec::new() }
    }

    fn path(&self, path: &str) -> String {
        self.client.path(&path.replace('/', "\\"))
    }

    fn at(&self, fd: usize) -> Result<FileId, ClientError> {
        self.open.get(fd).copied().flatten().ok_or_else(not_open)
    }

    /// As many bytes as the server takes in one request, and the connection has credits for.
    fn piece(&self, len: usize, most: u32) -> u32 {
        let paid = self.client.session.outstanding.credits.max(1) << 16;
        (len as u32).min(most).min(paid)
    }

    fn touch(&mut self, path: &str, open: OpenRequest, what: &str) -> Result<(), ClientError> {
        let path = self.path(path);
        self.client.succeed(&path, open, what)
    }
}

impl Files for SmbFiles {
    fn open(&mut self, fd: usize, path: &str, how: OpenHow) -> Result<u64, ClientError> {
        let path = self.path(path);
        let reply = self.client.session.create(&path, request(how))?;
        let created = Created::decode(reply.done(&format!("open {path}"))?).map_err(broken)?;
        if self.open.len() <= fd {
            self.open.resize(fd + 1, None);
        }
        self.open[fd] = Some(created.file);
        Ok(created.facts.size)
    }

    fn close(&mut self, fd: usize) -> Result<(), ClientError> {
        let file = self.at(fd)?;
        self.open[fd] = None;
        self.client.session.close(file)?.done("close").map(drop)
    }

    fn read(&mut self, fd: usize, offset: u64, out: &mut [u8]) -> Result<usize, ClientError> {
        let file = self.at(fd)?;
        let length = self.piece(out.len(), self.client.io_max.0);
        let request = ReadRequest { length, offset, file, minimum: 0 };
        let reply = self
            .client
            .session
            .exchange_charged((Command::READ, charge(length)), |message, _| request.put(message))?;
        if reply.status() == NtStatus::END_OF_FILE {
            return Ok(0);
        }
        let data = read_data(reply.done("read")?).map_err(broken)?;
        let len = data.len().min(out.len());
        out[..len].copy_from_slice(&data[..len]);
        Ok(len)
    }

    fn write(
        &mut self,
        fd: usize,
        offset: u64,
        data: &[u8],
        stable: bool,
    ) -> Result<usize, ClientError> {
        let file = self.at(fd)?;
        let length = self.piece(data.len(), self.client.io_max.1);
        let flags = if stable { WRITE_THROUGH } else { 0 };
        let data = &data[..length as usize];
        let request = WriteRequest { offset, file, flags, data };
        let reply = self
            .client
            .session
            .exchange_charged((Command::WRITE, charge(length)), |message, _| {
                request.put(message)
            })?;
        let done = WriteResponse::decode(reply.done("write")?).map_err(broken)?;
        Ok(done.count as usize)
    }

    fn flush(&mut self, fd: usize) -> Result<(), ClientError> {
        let request = FlushRequest { reserved: [0; 6], file: self.at(fd)? };
        let put = |message: &mut Vec<u8>, _| request.put_body(message);
        self.client.session.exchange(Command::FLUSH, put)?.done("flush").map(drop)
    }

    fn size(&mut self, fd: usize) -> Result<u64, ClientError> {
        let request = QueryRequest {
            info_type: info_type::FILE,
            class: file_class::STANDARD,
            output_max: STANDARD.0,
            additional: 0,
            flags: 0,
            file: self.at(fd)?,
            input: &[],
        };
        let put = |message: &mut Vec<u8>, _| request.put(message);
        let reply = self.client.session.exchange(Command::QUERY_INFO, put)?;
        let facts = output(reply.done("read attributes")?).map_err(broken)?;
        let size = facts.get(STANDARD.1..STANDARD.1 + 8).and_then(|b| b.first_chunk::<8>());
        let missing = || ClientError::Protocol("attributes without a size".into());
        size.map(|bytes| u64::from_le_bytes(*bytes)).ok_or_else(missing)
    }

    fn truncate(&mut self, fd: usize, size: u64) -> Result<(), ClientError> {
        let request = SetRequest {
            info_type: info_type::FILE,
            class: file_class::END_OF_FILE,
            additional: 0,
            file: self.at(fd)?,
            data: &size.to_le_bytes(),
        };
        let put = |message: &mut Vec<u8>, _| request.put(message);
        self.client.session.exchange(Command::SET_INFO, put)?.done("set the size").map(drop)
    }

    fn look(&mut self, path: &str) -> Result<Option<Entry>, ClientError> {
        let path = self.path(path);
        let reply = self.client.session.create(&path, OpenRequest::LOOK)?;
        if is_missing(reply.status()) {
            return Ok(None);
        }
        let what = format!("look up {path}");
        let created = Created::decode(reply.done(&what)?).map_err(broken)?;
        let directory = created.facts.attributes & attributes::DIRECTORY != 0;
        let entry = Entry { directory, size: created.facts.size };
        self.client.session.close(created.file)?.done(&what)?;
        Ok(Some(entry))
    }

    fn remove(&mut self, path: &str) -> Result<(), ClientError> {
        self.touch(path, OpenRequest::GONE, "remove")
    }

    fn make_directory(&mut self, path: &str) -> Result<(), ClientError> {
        let open = OpenRequest { disposition: Disposition::Create, ..DIRECTORY };
        self.touch(path, open, "create")
    }

    fn remove_directory(&mut self, path: &str) -> Result<(), ClientError> {
        self.touch(path, OpenRequest { options: OWN_DIRECTORY, ..OpenRequest::GONE }, "remove")
    }

    fn list(&mut self, path: &str, each: &mut dyn FnMut(&str)) -> Result<(), ClientError> {
        let path = self.path(path);
        let reply = self.client.session.create(&path, DIRECTORY)?;
        let file = opened(&reply, &format!("open {path}"))?;
        let names = self.client.list(file);
        self.client.session.close(file)?.done("close a directory")?;
        names?.iter().for_each(|name| each(name));
        Ok(())
    }

    fn leave(&mut self) -> Result<(), ClientError> {
        for fd in 0..self.open.len() {
            if self.open[fd].is_some() {
                self.close(fd)?;
            }
        }
        Ok(())
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        self.client.session.by_name.iter().map(|(name, calls)| (*name, *calls)).collect()
    }
}
