//! Before and after the load: mount, directory, files with their content, cleaning.

use super::super::target::Nfs3At;
use super::super::{ClientError, Completion, Fault, FileSet, Op};
use super::calls::{self, entry};
use super::link::Link;
use super::replies::{Replies, protocol, success};
use super::{Handle, Nfs3Client};
use crate::client::Checker;
use crate::pattern::Content;
use base::clock::Deadline;
use base::limits::LAB_SILENCE_MAX;
use std::net::IpAddr;
use std::time::Duration;
use wire::mount3::{self, Dirpath, MOUNT_PROGRAM, MOUNT_V3, MntRes};
use wire::nfs3::{
    CreateArgs, CreateHow, CreateRes, Fh3, LookupArgs, LookupRes, MkdirArgs, MkdirRes, NewResOk,
    Nfsstat3, Proc, RemoveArgs, RemoveRes, Sattr3, SetattrArgs, SetattrRes,
};
use wire::rpc::ReplyHeader;
use wire::xdr::{Decode, Encode, Reader};

/// Writes in flight while files are filled.
const FILL_SLOTS: u32 = 8;
/// Bytes of each of them.
const FILL_BYTES: u64 = 256 << 10;
/// Bytes looked at, at either end, to find out whether a file already has its content.
const PROBE_BYTES: u64 = 4096;

/// An operation and what became of it.
type Ended = (Op, Result<u32, Fault>);

/// Asks the MOUNT program for the handle of the share (RFC 1813, appendix I).
pub fn mount(at: &Nfs3At, bind: Option<IpAddr>) -> Result<Handle, ClientError> {
    let mut link = Link::open(&at.host, at.mount_port, bind)?;
    let mut out = Vec::new();
    let header = calls::header(MOUNT_PROGRAM, MOUNT_V3);
    let xid = (base::clock::wall_ns() >> 10) as u32;
    let path = Dirpath(at.path.as_bytes());
    calls::single(&mut out, &header, xid, mount3::Proc::MNT.0, &path);
    let mut replies = Replies::new(Checker::new(Content::new(0), 0));
    let record = exchange(&mut link, &out, &mut replies)?;
    let mut r = Reader::new(&record);
    let answer = ReplyHeader::decode(&mut r).map_err(protocol)?;
    success(&answer)?;
    match MntRes::decode(&mut r).map_err(protocol)? {
        MntRes::Ok(ok) => Ok(ok.fhandle.0.to_vec()),
        MntRes::Fail(status) => Err(ClientError::Refused {
            what: format!("mount {}", at.path),
            status: status.known_name().unwrap_or("an unknown status").to_owned(),
        }),
    }
}

/// Sends `out` and returns the next record.
fn exchange(link: &mut Link, out: &[u8], replies: &mut Replies) -> Result<Vec<u8>, ClientError> {
    link.set_timeout(LAB_SILENCE_MAX)?;
    let mut sent = 0;
    while let Some(rest) = out.get(sent..).filter(|rest| !rest.is_empty()) {
        let n = link.send_some(rest)?;
        sent += n;
        if n == 0 {
            link.wait_both()?;
        }
    }
    replies.whole(|space| match link.receive(space)? {
        0 => Err(ClientError::Silent("a call", LAB_SILENCE_MAX)),
        n => Ok(n),
    })
}

impl Nfs3Client {
    /// One call and its answer, when nothing else is in flight.
    fn ask<T>(
        &mut self,
        procedure: Proc,
        args: &dyn Encode,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, wire::xdr::DecodeError>,
    ) -> Result<T, ClientError> {
        let (xid, bytes) = self.calls.single(procedure, args);
        let record = exchange(&mut self.link, bytes, &mut self.replies)?;
        self.calls.single_sent();
        let mut r = Reader::new(&record);
        let header = ReplyHeader::decode(&mut r).map_err(protocol)?;
        success(&header)?;
        if header.xid != xid {
            return Err(ClientError::Protocol("a reply to another call".into()));
        }
        read(&mut r).map_err(protocol)
    }

    fn lookup(&mut self, dir: &[u8], name: &str) -> Result<Option<Handle>, ClientError> {
        let args = LookupArgs { what: entry(dir, name) };
        let found = self.ask(Proc::LOOKUP, &args, |r| {
            Ok(LookupRes::decode(r)?.into_result().map(|ok| ok.object.0.to_vec()))
        })?;
        match found {
            Ok(handle) => Ok(Some(handle)),
            Err(Nfsstat3::NOENT) => Ok(None),
            Err(status) => Err(refused(format!("look up {name}"), status)),
        }
    }

    /// The handle of a new object, looked up when the server did not send it along.
    fn made(
        &mut self,
        dir: &[u8],
        name: &str,
        made: Result<Option<Handle>, Nfsstat3>,
    ) -> Result<Handle, ClientError> {
        match made {
            Ok(Some(handle)) => Ok(handle),
            Ok(None) | Err(Nfsstat3::EXIST) => self
                .lookup(dir, name)?
                .ok_or_else(|| refused(format!("look up the new {name}"), Nfsstat3::NOENT)),
            Err(status) => Err(refused(format!("create {name}"), status)),
        }
    }

    fn directory(&mut self, name: &str) -> Result<Handle, ClientError> {
        let root = self.root.clone();
        if let Some(handle) = self.lookup(&root, name)? {
            return Ok(handle);
        }
        let attributes = Sattr3 { mode: Some(0o755), ..Default::default() };
        let args = MkdirArgs { where_: entry(&root, name), attributes };
        let made =
            self.ask(Proc::MKDIR, &args, |r| Ok(new_handle(MkdirRes::decode(r)?.into_result())))?;
        self.made(&root, name, made)
    }

    fn file(&mut self, dir: &[u8], name: &str) -> Result<Handle, ClientError> {
        if let Some(handle) = self.lookup(dir, name)? {
            return Ok(handle);
        }
        let how = CreateHow::Unchecked(Sattr3 { mode: Some(0o644), ..Default::default() });
        let args = CreateArgs { where_: entry(dir, name), how };
        let made =
            self.ask(Proc::CREATE, &args, |r| Ok(new_handle(CreateRes::decode(r)?.into_result())))?;
        self.made(dir, name, made)
    }

    pub(super) fn prepare_files(&mut self, set: &FileSet) -> Result<(), ClientError> {
        let dir = self.directory(&set.dir_name())?;
        self.replies.files.client = set.client;
        self.replies.files.dir = dir.clone();
        self.replies.files.handles.clear();
        for number in 0..set.files {
            let handle = self.file(&dir, &set.file_name(number))?;
            self.replies.files.handles.push(handle);
        }
        for number in 0..set.files {
            if !self.is_filled(number, set.size)? {
                self.fill(number, set.size)?;
            }
        }
        Ok(())
    }

    fn is_filled(&mut self, file: u32, size: u64) -> Result<bool, ClientError> {
        let len = size.min(PROBE_BYTES);
        let ends = [0, size - len].map(|offset| Op::Read { file, offset, len: len as u32 });
        for (op, outcome) in self.all(ends.into_iter())? {
            match outcome {
                Ok(_) => {}
                Err(Fault::Corrupt | Fault::Short) => return Ok(false),
                Err(fault) => return Err(failed(op, fault)),
            }
        }
        Ok(true)
    }

    fn fill(&mut self, file: u32, size: u64) -> Result<(), ClientError> {
        let blocks = size.div_ceil(FILL_BYTES);
        let write = move |n: u64| {
            let offset = n * FILL_BYTES;
            let len = FILL_BYTES.min(size - offset) as u32;
            Op::Write { file, offset, len, stable: false }
        };
        for (op, outcome) in self.all((0..blocks).map(write))? {
            outcome.map_err(|fault| failed(op, fault))?;
        }
        let handle = self.replies.files.handles.get(file as usize).cloned().unwrap_or_default();
        // An older, longer file of the same name would keep its tail.
        let new_attributes = Sattr3 { size: Some(size), ..Default::default() };
        let args = SetattrArgs { object: Fh3(&handle), new_attributes, guard: None };
        let set = self.ask(Proc::SETATTR, &args, |r| Ok(SetattrRes::decode(r)?.into_result()))?;
        set.map_err(|status| refused("set the size of a file".into(), status))?;
        for (op, outcome) in self.all([Op::Commit { file }].into_iter())? {
            outcome.map_err(|fault| failed(op, fault))?;
        }
        Ok(())
    }

    /// Runs all of `ops`, some at a time.
    fn all(&mut self, mut ops: impl Iterator<Item = Op>) -> Result<Vec<Ended>, ClientError> {
        use crate::client::Client;
        let mut running: Vec<Option<Op>> = vec![None; FILL_SLOTS as usize];
        let (mut ended, mut done) = (Vec::new(), Vec::<Completion>::new());
        let mut deadline = Deadline::after(LAB_SILENCE_MAX);
        loop {
            for (slot, place) in running.iter_mut().enumerate().filter(|(_, p)| p.is_none()) {
                let Some(op) = ops.next() else { break };
                *place = Some(op);
                self.submit(slot as u32, op)?;
            }
            if running.iter().all(Option::is_none) {
                return Ok(ended);
            }
            self.flush()?;
            self.wait(Duration::from_millis(100), &mut done)?;
            for completion in done.drain(..) {
                let place = running.get_mut(completion.slot as usize).and_then(Option::take);
                ended.extend(place.map(|op| (op, completion.outcome)));
                deadline = Deadline::after(LAB_SILENCE_MAX);
            }
            if deadline.passed() {
                return Err(ClientError::Silent("preparation", LAB_SILENCE_MAX));
            }
        }
    }

    pub(super) fn remove_files(&mut self, set: &FileSet) -> Result<(), ClientError> {
        let root = self.root.clone();
        let Some(dir) = self.lookup(&root, &set.dir_name())? else { return Ok(()) };
        for number in 0..set.files {
            self.remove(Proc::REMOVE, &dir, &set.file_name(number))?;
        }
        self.remove(Proc::RMDIR, &root, &set.dir_name())
    }

    fn remove(&mut self, procedure: Proc, dir: &[u8], name: &str) -> Result<(), ClientError> {
        let args = RemoveArgs { object: entry(dir, name) };
        let gone = self.ask(procedure, &args, |r| Ok(RemoveRes::decode(r)?.into_result()))?;
        match gone {
            // A directory with files of another job in it stays.
            Ok(_) | Err(Nfsstat3::NOENT | Nfsstat3::NOTEMPTY | Nfsstat3::EXIST) => Ok(()),
            Err(status) => Err(refused(format!("remove {name}"), status)),
        }
    }
}

fn new_handle(made: Result<NewResOk<'_>, Nfsstat3>) -> Result<Option<Handle>, Nfsstat3> {
    made.map(|ok| ok.obj.map(|fh| fh.0.to_vec()))
}

fn refused(what: String, status: Nfsstat3) -> ClientError {
    ClientError::Refused { what, status: status.name().to_owned() }
}

fn failed(op: Op, fault: Fault) -> ClientError {
    let status = match fault {
        Fault::Status(n) => Nfsstat3(n).name().to_owned(),
        other => format!("{other:?}"),
    };
    ClientError::Refused { what: format!("{op:?} while preparing"), status }
}
