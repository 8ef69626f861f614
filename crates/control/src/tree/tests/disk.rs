//! A disk in memory that records every operation and can produce each state that a power cut before
//! any of them may leave.
//!
//! What was not flushed may be there in part or not at all: of a file's content since its last
//! flush any beginning, of a folder's new names any beginning of their order.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use base::random::Random;

use crate::tree::store::Disk;

#[derive(Debug, Clone)]
pub enum Op {
    Write(String, Vec<u8>),
    Append(String, Vec<u8>),
    Flush(String),
    Rename(String, String),
    Remove(String),
    FlushNames(String),
}

/// What happens at an operation, once.
type Then = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Inner {
    files: BTreeMap<String, Vec<u8>>,
    log: Vec<Op>,
    fail: Option<&'static str>,
    then: Option<(&'static str, Then)>,
}

/// Clones are the same disk.
#[derive(Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<Inner>>);

impl MemoryDisk {
    pub fn log(&self) -> Vec<Op> {
        self.0.lock().unwrap().log.clone()
    }

    pub fn file(&self, name: &str) -> Option<String> {
        let bytes = self.0.lock().unwrap().files.get(name).cloned()?;
        Some(String::from_utf8(bytes).unwrap())
    }

    pub fn replace(&self, name: &str, content: &str) {
        self.0.lock().unwrap().files.insert(name.to_owned(), content.as_bytes().to_vec());
    }

    /// Operations on files of which the name has this in it fail from now on.
    pub fn fail(&self, name: Option<&'static str>) {
        self.0.lock().unwrap().fail = name;
    }

    /// Does something once, when this file is appended to next.
    pub fn at_append(&self, name: &'static str, then: impl FnOnce() + Send + 'static) {
        self.0.lock().unwrap().then = Some((name, Box::new(then)));
    }

    fn of(files: BTreeMap<String, Vec<u8>>) -> Self {
        Self(Arc::new(Mutex::new(Inner { files, ..Inner::default() })))
    }

    fn change(&self, op: Op) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        let name = match &op {
            Op::Write(name, _) | Op::Append(name, _) | Op::Flush(name) => name,
            Op::Rename(_, name) | Op::Remove(name) | Op::FlushNames(name) => name,
        };
        if inner.fail.is_some_and(|fail| name.contains(fail)) && !matches!(op, Op::Remove(_)) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left"));
        }
        match &op {
            Op::Write(name, content) => {
                inner.files.insert(name.clone(), content.clone());
            }
            Op::Append(name, content) => {
                inner.files.entry(name.clone()).or_default().extend(content);
            }
            Op::Rename(from, to) => {
                let file = inner.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
                inner.files.insert(to.clone(), file);
            }
            Op::Remove(name) => {
                inner.files.remove(name);
            }
            Op::Flush(_) | Op::FlushNames(_) => {}
        }
        inner.log.push(op);
        Ok(())
    }
}

impl Disk for MemoryDisk {
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let inner = self.0.lock().unwrap();
        let inside =
            |name: &String| name.strip_prefix(folder)?.strip_prefix('/').map(str::to_owned);
        Ok(inner.files.keys().filter_map(inside).collect())
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().files.get(name).cloned())
    }

    fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.change(Op::Write(name.to_owned(), content.to_vec()))
    }

    fn append(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let due = self.0.lock().unwrap().then.take_if(|(file, _)| *file == name);
        if let Some((_, then)) = due {
            then();
        }
        self.change(Op::Append(name.to_owned(), content.to_vec()))
    }

    fn flush(&self, name: &str) -> io::Result<()> {
        self.change(Op::Flush(name.to_owned()))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change(Op::Rename(from.to_owned(), to.to_owned()))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change(Op::Remove(name.to_owned()))
    }

    fn flush_names(&self, name: &str) -> io::Result<()> {
        self.change(Op::FlushNames(name.to_owned()))
    }

    fn make_folder(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn point(&self, _name: &str, _to: &str) -> io::Result<()> {
        Ok(())
    }
}

fn folder(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A file: what it holds, and what of it is on disk.
#[derive(Default, Clone)]
struct Inode {
    content: Vec<u8>,
    flushed: Vec<u8>,
}

/// A change of a name: the name, and the number of its file, if it has one then.
type Naming = Vec<(String, Option<usize>)>;

/// What may be left after the first `cut` operations.
pub fn left(log: &[Op], cut: usize, random: &mut dyn Random) -> MemoryDisk {
    let mut inodes: Vec<Inode> = Vec::new();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut durable: BTreeMap<String, usize> = BTreeMap::new();
    let mut pending: Vec<Naming> = Vec::new();
    for op in &log[..cut] {
        match op {
            Op::Write(name, content) => {
                inodes.push(Inode { content: content.clone(), flushed: Vec::new() });
                names.insert(name.clone(), inodes.len() - 1);
                pending.push(vec![(name.clone(), Some(inodes.len() - 1))]);
            }
            Op::Append(name, content) => {
                if !names.contains_key(name) {
                    inodes.push(Inode::default());
                    names.insert(name.clone(), inodes.len() - 1);
                    pending.push(vec![(name.clone(), Some(inodes.len() - 1))]);
                }
                inodes[names[name]].content.extend(content);
            }
            Op::Flush(name) => {
                let inode = &mut inodes[names[name]];
                inode.flushed.clone_from(&inode.content);
            }
            Op::Rename(from, to) => {
                let inode = names.remove(from).unwrap();
                names.insert(to.clone(), inode);
                pending.push(vec![(from.clone(), None), (to.clone(), Some(inode))]);
            }
            Op::Remove(name) => {
                names.remove(name);
                pending.push(vec![(name.clone(), None)]);
            }
            Op::FlushNames(name) => {
                let here = |naming: &Naming| folder(&naming[0].0) == folder(name);
                pending.iter().filter(|naming| here(naming)).for_each(|n| take(&mut durable, n));
                pending.retain(|naming| !here(naming));
            }
        }
    }
    let kept = random.below(pending.len() as u64 + 1) as usize;
    pending[..kept].iter().for_each(|naming| take(&mut durable, naming));
    let content = |inode: &Inode| {
        let more = inode.content.len().saturating_sub(inode.flushed.len());
        let mut left = inode.flushed.clone();
        let kept = random.below(more as u64 + 1) as usize;
        left.extend(&inode.content[inode.flushed.len()..][..kept]);
        left
    };
    let mut content = content;
    MemoryDisk::of(durable.into_iter().map(|(name, at)| (name, content(&inodes[at]))).collect())
}

fn take(names: &mut BTreeMap<String, usize>, naming: &Naming) {
    for (name, inode) in naming {
        match inode {
            Some(inode) => names.insert(name.clone(), *inode),
            None => names.remove(name),
        };
    }
}
