//! Operations of workloads over a service that transfers files.
//!
//! Files are read and written as these protocols are made for: from start to end, each slot its
//! own file ([`Client::streams`]). Parts at random places go where the protocol has ranges. What a
//! protocol has no operation for is refused before anything is measured.

use super::at::{Scheme, ServiceAt};
use super::{Failure, Session};
use crate::client::threads::{Threads, Worker};
use crate::client::{
    Checker, Client, ClientError, Completion, Fault, FileSet, Op, operations_through,
};
use crate::workload::{Kind, Shape};
use base::limits::LAB_STREAM_BUFFER;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Client of a service.
pub struct ServiceClient {
    at: ServiceAt,
    bind: Option<IpAddr>,
    checker: Checker,
    work: Arc<RwLock<Option<Work>>>,
    threads: Threads,
}

/// What the slots work on.
#[derive(Clone)]
struct Work {
    set: FileSet,
    kind: Kind,
    /// Bytes of a file that is written: whole blocks.
    written: u64,
}

impl ServiceClient {
    /// A client of `at`; each slot signs in when it is first used.
    ///
    /// # Errors
    /// Signing in fails.
    pub fn open(
        at: &ServiceAt,
        checker: Checker,
        bind: Option<IpAddr>,
    ) -> Result<Self, ClientError> {
        super::open(at, bind)?.null()?;
        let work: Arc<RwLock<Option<Work>>> = Arc::default();
        let (place, shared, check) = (at.clone(), Arc::clone(&work), checker.clone());
        let threads = Threads::new(Box::new(move || {
            let work = shared.read().unwrap_or_else(PoisonError::into_inner).clone();
            let work = work.ok_or_else(|| ClientError::Protocol("not prepared".into()))?;
            let session = super::open(&place, bind)?;
            let dir = format!("{}/{}", place.path, work.set.dir_name());
            let checker = check.clone();
            let (open, buffer) = (Open::Nothing, Vec::new());
            Ok(Box::new(Slot { session, dir, work, checker, open, buffer }))
        }));
        Ok(Self { at: at.clone(), bind, checker, work, threads })
    }

    fn dir(&self, set: &FileSet) -> String {
        format!("{}/{}", self.at.path, set.dir_name())
    }
}

/// Why `scheme` has no `kind`, if so.
pub fn refusal(scheme: Scheme, kind: Kind) -> Option<&'static str> {
    let ftp = matches!(scheme, Scheme::Ftp | Scheme::Ftps);
    match kind {
        Kind::RandRead if ftp => {
            Some("FTP has no randread, because it sends files to their end; use seqread")
        }
        Kind::SyncWrite => {
            Some("this protocol has no syncwrite, because it commits whole files; use seqwrite")
        }
        _ => None,
    }
}

impl Client for ServiceClient {
    fn begin(&mut self, shape: &Shape) -> Result<(), ClientError> {
        if let Some(why) = refusal(self.at.scheme, shape.kind) {
            return Err(ClientError::Target(self.at.to_string(), why));
        }
        let block = u64::from(shape.block.max(1));
        let written = shape.file_size / block * block;
        let set = FileSet { client: 0, files: 0, size: 0 };
        let mut work = self.work.write().unwrap_or_else(PoisonError::into_inner);
        *work = Some(Work { set, kind: shape.kind, written });
        Ok(())
    }

    fn streams(&self) -> bool {
        true
    }

    fn prepare(&mut self, set: &FileSet) -> Result<(), ClientError> {
        let mut session = super::open(&self.at, self.bind)?;
        let dir = self.dir(set);
        session.make_folder(&dir, false)?;
        for file in 0..set.files {
            make_file(&mut *session, &dir, set, file, &self.checker)?;
        }
        self.threads.end();
        let mut work = self.work.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(work) = work.as_mut() {
            work.set = set.clone();
        }
        Ok(())
    }

    fn clean(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.threads.end();
        let mut session = super::open(&self.at, self.bind)?;
        let dir = self.dir(set);
        for file in 0..set.files {
            session.remove(&format!("{dir}/{}", set.file_name(file)), false)?;
        }
        match session.remove(&dir, true) {
            // A folder with files of another job in it stays.
            Ok(()) | Err(Failure::Answer { .. }) => Ok(()),
            Err(broken) => Err(broken.into()),
        }
    }

    operations_through!(threads);
}

/// Makes a file have its expected content; one of the right size that begins right is left alone.
fn make_file(
    session: &mut dyn Session,
    dir: &str,
    set: &FileSet,
    file: u32,
    checker: &Checker,
) -> Result<(), Failure> {
    let path = format!("{dir}/{}", set.file_name(file));
    if session.size(&path)? == Some(set.size) && begins_right(session, &path, set, file, checker)? {
        return Ok(());
    }
    let mut block = vec![0; LAB_STREAM_BUFFER];
    session.open_write(&path, set.size)?;
    let mut at = 0;
    while at < set.size {
        let len = (set.size - at).min(LAB_STREAM_BUFFER as u64) as usize;
        checker.content.fill(set.content_key(file), at, &mut block[..len]);
        session.write(&block[..len])?;
        at += len as u64;
    }
    session.close_write()
}

fn begins_right(
    session: &mut dyn Session,
    path: &str,
    set: &FileSet,
    file: u32,
    checker: &Checker,
) -> Result<bool, Failure> {
    let mut block = vec![0; set.size.min(4096) as usize];
    session.open_read(path, 0, Some(block.len() as u64))?;
    let got = read_full(session, &mut block)?;
    session.close_read()?;
    let same = || checker.content.mismatch(set.content_key(file), 0, &block).is_none();
    Ok(got == block.len() && same())
}

/// Reads until `into` is full or the end; how much.
///
/// # Errors
/// [`Failure`]
pub fn read_full(session: &mut dyn Session, into: &mut [u8]) -> Result<usize, Failure> {
    let mut at = 0;
    while at < into.len() {
        match session.read(&mut into[at..])? {
            0 => break,
            n => at += n,
        }
    }
    Ok(at)
}

/// The file that a slot has open, and how far it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Reading(u32, u64),
    Writing(u32, u64),
}

/// One thread's part.
struct Slot {
    session: Box<dyn Session>,
    dir: String,
    work: Work,
    checker: Checker,
    open: Open,
    buffer: Vec<u8>,
}

impl Worker for Slot {
    fn run(&mut self, op: Op) -> Result<Result<u32, Fault>, ClientError> {
        match self.perform(op) {
            Ok(outcome) => Ok(outcome),
            Err(failure) => {
                self.open = Open::Nothing;
                failure.outcome()
            }
        }
    }
}

impl Slot {
    fn path(&self, file: u32) -> String {
        format!("{}/{}", self.dir, self.work.set.file_name(file))
    }

    fn perform(&mut self, op: Op) -> Result<Result<u32, Fault>, Failure> {
        if !matches!(op, Op::Read { .. } | Op::Write { .. } | Op::Commit { .. }) {
            self.close()?;
        }
        match op {
            Op::Null => self.session.null()?,
            Op::Getattr { file } | Op::Lookup { file } => {
                let size = self.session.size(&self.path(file))?;
                if size.is_none() {
                    return Ok(Err(Fault::Status(libc::ENOENT as u32)));
                }
            }
            Op::Read { file, offset, len } => return self.read(file, offset, len),
            Op::Write { file, offset, len, .. } => return self.write(file, offset, len),
            Op::Commit { file } => {
                if let Open::Writing(_, at) = self.open {
                    self.open = Open::Nothing;
                    self.session.close_write()?;
                    debug_assert_eq!(at, self.work.written, "file {file}");
                }
            }
            Op::Create { name } => {
                let path = format!("{}/{}", self.dir, FileSet::made_name(name));
                self.session.open_write(&path, 0)?;
                self.session.close_write()?;
            }
            Op::Remove { name } => {
                let path = format!("{}/{}", self.dir, FileSet::made_name(name));
                self.session.remove(&path, false)?;
            }
        }
        Ok(Ok(0))
    }

    fn read(&mut self, file: u32, offset: u64, len: u32) -> Result<Result<u32, Fault>, Failure> {
        let onward = self.work.kind != Kind::RandRead;
        if self.open != Open::Reading(file, offset) {
            self.close()?;
            let part = (!onward).then_some(u64::from(len));
            self.session.open_read(&self.path(file), offset, part)?;
        }
        self.open = Open::Reading(file, offset + u64::from(len));
        self.buffer.resize(len as usize, 0);
        let got = read_full(&mut *self.session, &mut self.buffer)?;
        if !onward || offset + u64::from(len) >= self.work.set.size {
            self.close()?;
        }
        let key = self.work.set.content_key(file);
        if got < len as usize {
            return Ok(Err(Fault::Short));
        }
        let right = self.checker.is_right(key, offset, u64::from(len), 0, &self.buffer);
        Ok(if right { Ok(len) } else { Err(Fault::Corrupt) })
    }

    fn write(&mut self, file: u32, offset: u64, len: u32) -> Result<Result<u32, Fault>, Failure> {
        if self.open != Open::Writing(file, offset) {
            self.close()?;
            self.session.open_write(&self.path(file), self.work.written)?;
        }
        self.open = Open::Writing(file, offset + u64::from(len));
        self.buffer.resize(len as usize, 0);
        self.checker.content.fill(self.work.set.content_key(file), offset, &mut self.buffer);
        self.session.write(&self.buffer)?;
        Ok(Ok(len))
    }

    fn close(&mut self) -> Result<(), Failure> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => Ok(()),
            Open::Reading(..) => self.session.close_read(),
            Open::Writing(..) => self.session.close_write(),
        }
    }
}
