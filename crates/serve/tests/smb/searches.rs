//! Directories as clients list them: QUERY_DIRECTORY to the end, and what is asked to make them.

// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]

use std::sync::Arc;

use e2e::smb::{Ask, Smb};
use vfs::attr::SetAttr;
use vfs::cred::Cred;
use vfs::fs::{Context, CreateHow, FileSystem};
use vfs::handle::Handle;
use wire::smb::create::{FileId, access};
use wire::smb::dir::{self, Level, query_flags};
use wire::smb::header::Command;
use wire::smb::status::NtStatus;
use wire::smb::utf16;

use crate::planted::Planted;

/// What makes files without a client.
pub struct Maker(pub Arc<Planted>);

impl Maker {
    fn with<T>(&self, make: impl FnOnce(&dyn FileSystem, Context<'_>) -> T) -> T {
        let cred = Cred::root();
        make(&*self.0, Context { cred: &cred, may_block: true })
    }

    /// A directory below another one.
    pub fn dir(&self, at: &Handle, name: &str) -> Handle {
        let made = self.with(|fs, cx| fs.mkdir(cx, at, name.as_bytes(), &SetAttr::default()));
        made.expect("a directory").value.handle
    }

    /// A file.
    pub fn file(&self, at: &Handle, name: &str) {
        let how = CreateHow::Guarded(SetAttr::default());
        self.with(|fs, cx| fs.create(cx, at, name.as_bytes(), how)).expect("a file");
    }

    /// A symbolic link.
    pub fn link(&self, at: &Handle, name: &str, target: &str) {
        let (name, target) = (name.as_bytes(), target.as_bytes());
        self.with(|fs, cx| fs.symlink(cx, at, name, target, &SetAttr::default())).expect("a link");
    }
}

/// A request for entries.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    pub file: FileId,
    pub pattern: &'a str,
    pub flags: u8,
    pub output_max: u32,
}

impl Search<'_> {
    pub fn of(file: FileId) -> Self {
        Self { file, pattern: "*", flags: 0, output_max: 64 << 10 }
    }

    pub fn put(&self, out: &mut Vec<u8>) {
        let pattern = utf16::encode(self.pattern);
        let Self { file, flags, output_max, .. } = *self;
        let level = Level::IdBoth as u8;
        dir::Request { level, flags, file, pattern: &pattern, output_max }.put(out);
    }

    /// The names that one response has.
    pub fn next(&self, smb: &mut Smb) -> Result<Vec<String>, NtStatus> {
        let size = self.output_max as usize;
        let answer = smb.call(Command::QUERY_DIRECTORY, size, &|out| self.put(out));
        let answer = answer.expect("an answer");
        if answer.status() != NtStatus::SUCCESS {
            return Err(answer.status());
        }
        let output = dir::output(&answer.message).expect("entries");
        let entries = dir::entries(Level::IdBoth, output).expect("entries");
        Ok(entries.iter().map(|entry| utf16::decode(&entry.name).expect("a name")).collect())
    }

    /// All names, in order, and how many responses had them.
    pub fn all(&self, smb: &mut Smb) -> (Vec<String>, usize) {
        let (mut names, mut responses) = (Vec::new(), 0);
        loop {
            match self.next(smb) {
                Ok(more) => names.extend(more),
                Err(NtStatus::NO_MORE_FILES | NtStatus::NO_SUCH_FILE) => break,
                Err(status) => panic!("{status:?}"),
            }
            responses += 1;
        }
        names.sort();
        (names, responses)
    }
}

/// Opens a directory to list it.
pub fn open_dir(smb: &mut Smb, path: &str) -> FileId {
    let ask = Ask { access: access::READ, ..Ask::open(path) }.dir();
    smb.create(&ask).expect("an answer").expect("a directory")
}

/// A request for one entry.
pub const SINGLE: u8 = query_flags::SINGLE;
