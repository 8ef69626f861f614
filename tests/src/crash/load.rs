//! One worker: seeded operations in a directory of its own, each noted before it is sent and
//! settled when it is acknowledged.

use base::random::{Random, SeededRandom};
use wire::nfs3::{Nfsstat3, StableHow, Writeverf3};

use super::Moment;
use super::model::{Dir, File, Node, UNIT, UNITS, content};
use super::remote::{Made, Remote};
use crate::nfs3::Failure;

/// Files of a worker at most; beyond that it works on those it has.
const FILES_MAX: usize = 24;
/// Directories of a worker at most, its own included.
const DIRS_MAX: usize = 6;
/// Units of one write at most.
const WRITE_MAX: u64 = 8;

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// WRITE, FILE_SYNC.
    WriteFileSync,
    /// WRITE, DATA_SYNC.
    WriteDataSync,
    /// WRITE, UNSTABLE.
    WriteUnstable,
    /// COMMIT.
    Commit,
    /// CREATE.
    Create,
    /// MKDIR.
    Mkdir,
    /// RMDIR of an empty directory.
    Rmdir,
    /// SYMLINK.
    Symlink,
    /// MKNOD of a named pipe.
    Mknod,
    /// REMOVE.
    Remove,
    /// RENAME within a directory.
    Rename,
    /// RENAME to another directory.
    RenameAcross,
    /// LINK, usually in another directory.
    Link,
    /// SETATTR of the mode.
    Chmod,
    /// SETATTR of the size.
    Truncate,
}

/// The mix: frequent operations stand in it more than once.
const MIX: [Op; 22] = [
    Op::WriteFileSync,
    Op::WriteFileSync,
    Op::WriteFileSync,
    Op::WriteDataSync,
    Op::WriteUnstable,
    Op::WriteUnstable,
    Op::WriteUnstable,
    Op::Commit,
    Op::Create,
    Op::Create,
    Op::Create,
    Op::Mkdir,
    Op::Rmdir,
    Op::Symlink,
    Op::Mknod,
    Op::Remove,
    Op::Remove,
    Op::Rename,
    Op::RenameAcross,
    Op::Link,
    Op::Chmod,
    Op::Truncate,
];

/// A worker with everything that it may expect.
pub struct Worker {
    /// Name of its directory.
    pub name: String,
    /// Its directories; the first is its own.
    pub dirs: Vec<Dir>,
    /// Its files, those without a name included.
    pub files: Vec<File>,
    /// The write verifier before the crash.
    pub verifier: Option<Writeverf3>,
    /// What it did to names, in order, for the message when something is lost.
    pub history: Vec<String>,
    random: SeededRandom,
    focus: Vec<Op>,
    next_name: u32,
}

/// How an operation ended.
type Done = Result<(), Failure>;

impl Worker {
    /// A worker that does `focus` half of the time and everything else otherwise.
    pub fn new(name: String, seed: u64, focus: Vec<Op>) -> Self {
        let random = SeededRandom::new(seed);
        Self {
            name,
            dirs: Vec::new(),
            files: Vec::new(),
            verifier: None,
            history: Vec::new(),
            random,
            focus,
            next_name: 0,
        }
    }

    /// Works until the connection ends.
    ///
    /// # Errors
    /// An answer that nothing explains, such as an error status for a correct call.
    pub fn run(
        mut self,
        mut client: Box<dyn Remote>,
        export: &str,
        moment: &Moment,
    ) -> Result<Self, String> {
        let mut step = Op::Mkdir;
        let mut done = self.begin(&mut *client, export);
        loop {
            match done {
                Ok(()) => moment.acknowledged(),
                Err(Failure::Broken(_)) => {
                    // If the server has crashed on its own, nothing else would report it.
                    moment.now();
                    return Ok(self);
                }
                // Come again: it may be busy.
                Err(Failure::Status(Nfsstat3::JUKEBOX)) => {}
                Err(Failure::Status(status)) => {
                    moment.now();
                    return Err(format!("{}: {step:?}: {status}", self.name));
                }
            }
            step = self.choose();
            done = self.step(step, &mut *client);
        }
    }

    fn begin(&mut self, client: &mut dyn Remote, export: &str) -> Done {
        let root = client.root(export)?;
        let made = client.mkdir(&root, &self.name, 0o751)?;
        self.dirs.push(Dir::new(made.handle, 0o751));
        Ok(())
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn choose(&mut self) -> Op {
        if !self.focus.is_empty() && self.below(2) == 0 {
            let n = self.below(self.focus.len());
            return self.focus[n];
        }
        MIX[self.below(MIX.len())]
    }

    fn step(&mut self, op: Op, client: &mut dyn Remote) -> Done {
        match op {
            Op::WriteFileSync => self.write(client, StableHow::FILE_SYNC),
            Op::WriteDataSync => self.write(client, StableHow::DATA_SYNC),
            Op::WriteUnstable => self.write(client, StableHow::UNSTABLE),
            Op::Commit => self.commit(client),
            Op::Create => self.create(client),
            Op::Mkdir => self.mkdir(client),
            Op::Rmdir => self.rmdir(client),
            Op::Symlink => self.symlink(client),
            Op::Mknod => self.mknod(client),
            Op::Remove => self.remove(client),
            Op::Rename => self.rename(client, false),
            Op::RenameAcross => self.rename(client, true),
            Op::Link => self.link(client),
            Op::Chmod => self.chmod(client),
            Op::Truncate => self.truncate(client),
        }
    }

    /// A name that was never used.
    fn fresh(&mut self) -> String {
        self.next_name += 1;
        format!("n{}", self.next_name)
    }

    /// An existing directory.
    fn some_dir(&mut self) -> usize {
        let there: Vec<usize> = (0..self.dirs.len()).filter(|d| !self.dirs[*d].gone).collect();
        let n = self.below(there.len());
        there[n]
    }

    /// A file that has a name; makes one if there is none.
    fn some_file(&mut self, client: &mut dyn Remote) -> Result<usize, Failure> {
        let mut there: Vec<usize> =
            (0..self.files.len()).filter(|f| self.files[*f].names > 0).collect();
        if there.is_empty() {
            self.create(client)?;
            there.push(self.files.len() - 1);
        }
        let n = self.below(there.len());
        Ok(there[n])
    }

    /// A name that fits, and where it is.
    fn some_name(&mut self, fits: impl Fn(&Node) -> bool) -> Option<(usize, String, Node)> {
        let mut all = Vec::new();
        for (d, dir) in self.dirs.iter().enumerate().filter(|(_, dir)| !dir.gone) {
            let names = dir.names.iter().filter(|(_, node)| fits(node));
            all.extend(names.map(|(name, node)| (d, name.clone(), node.clone())));
        }
        if all.is_empty() {
            return None;
        }
        let n = self.below(all.len());
        Some(all.swap_remove(n))
    }

    fn doubt(&mut self, dir: usize, name: &str) {
        self.history.push(format!("directory {dir}: {name} changes"));
        self.dirs[dir].doubtful.insert(name.to_owned());
    }

    fn settle(&mut self, dir: usize, name: &str, node: Option<Node>) {
        self.history.push(match &node {
            Some(node) => format!("directory {dir}: {name} is {node:?}"),
            None => format!("directory {dir}: {name} is gone"),
        });
        let dir = &mut self.dirs[dir];
        dir.doubtful.remove(name);
        match node {
            Some(node) => dir.names.insert(name.to_owned(), node),
            None => dir.names.remove(name),
        };
    }

    fn write(&mut self, client: &mut dyn Remote, how: StableHow) -> Done {
        let f = self.some_file(client)?;
        let count = 1 + self.random.below(WRITE_MAX) as usize;
        let first = self.below(UNITS - count);
        let versions: Vec<u64> = (0..count).map(|_| self.random.next_u64() | 1).collect();
        let data: Vec<u8> = versions.iter().flat_map(|v| content(*v)).collect();
        let file = &mut self.files[f];
        file.writing(first, &versions);
        let wrote = client.write(&file.handle, (first * UNIT) as u64, &data, how)?;
        if wrote.count as usize != data.len() || wrote.committed.0 < how.0 {
            return Err(Failure::Status(Nfsstat3::SERVERFAULT));
        }
        file.written(first, &versions, how != StableHow::UNSTABLE);
        if let (StableHow::FILE_SYNC, Some(seen)) = (how, wrote.seen) {
            file.ctime = file.ctime.max(seen.ctime);
        }
        self.verifier = Some(wrote.verifier);
        Ok(())
    }

    fn commit(&mut self, client: &mut dyn Remote) -> Done {
        let f = self.some_file(client)?;
        let verifier = client.commit(&self.files[f].handle)?;
        self.files[f].committed();
        self.verifier = Some(verifier);
        Ok(())
    }

    fn create(&mut self, client: &mut dyn Remote) -> Done {
        if self.files.iter().filter(|f| f.names > 0).count() >= FILES_MAX {
            return self.remove(client);
        }
        let (d, name) = (self.some_dir(), self.fresh());
        let bits = 0o640 | (self.random.below(8) as u32);
        self.doubt(d, &name);
        let made = client.create(&self.dirs[d].handle, &name, bits)?;
        self.files.push(File::new(made.handle.clone(), bits, ctime(&made)));
        self.settle(d, &name, Some(Node::File(self.files.len() - 1)));
        Ok(())
    }

    fn mkdir(&mut self, client: &mut dyn Remote) -> Done {
        if self.dirs.iter().filter(|d| !d.gone).count() >= DIRS_MAX {
            return self.rmdir(client);
        }
        let (d, name) = (self.some_dir(), self.fresh());
        self.doubt(d, &name);
        let made = client.mkdir(&self.dirs[d].handle, &name, 0o751)?;
        self.dirs.push(Dir::new(made.handle, 0o751));
        self.settle(d, &name, Some(Node::Dir(self.dirs.len() - 1)));
        Ok(())
    }

    fn rmdir(&mut self, client: &mut dyn Remote) -> Done {
        let empty: Vec<bool> = self.dirs.iter().map(|d| d.names.is_empty()).collect();
        let found = self.some_name(|node| matches!(node, Node::Dir(d) if empty[*d]));
        let Some((d, name, Node::Dir(gone))) = found else {
            // There is nothing to remove yet; what is made now may be removed later.
            return if self.dirs.len() < DIRS_MAX { self.mkdir(client) } else { Ok(()) };
        };
        self.doubt(d, &name);
        self.dirs[gone].gone = true;
        client.remove(&self.dirs[d].handle, &name, true)?;
        self.settle(d, &name, None);
        Ok(())
    }

    fn symlink(&mut self, client: &mut dyn Remote) -> Done {
        let (d, name) = (self.some_dir(), self.fresh());
        let target = format!("target-{:x}", self.random.next_u64());
        self.doubt(d, &name);
        client.symlink(&self.dirs[d].handle, &name, &target)?;
        self.settle(d, &name, Some(Node::Link(target)));
        Ok(())
    }

    fn mknod(&mut self, client: &mut dyn Remote) -> Done {
        let (d, name) = (self.some_dir(), self.fresh());
        self.doubt(d, &name);
        client.mkfifo(&self.dirs[d].handle, &name, 0o620)?;
        self.settle(d, &name, Some(Node::Fifo(0o620)));
        Ok(())
    }

    fn remove(&mut self, client: &mut dyn Remote) -> Done {
        let Some((d, name, node)) = self.some_name(|node| !matches!(node, Node::Dir(_))) else {
            return self.create(client);
        };
        self.doubt(d, &name);
        let last = matches!(node, Node::File(f) if self.files[f].names == 1);
        if let Node::File(f) = node {
            self.files[f].doubtful |= last;
        }
        client.remove(&self.dirs[d].handle, &name, false)?;
        if let Node::File(f) = node {
            self.files[f].names -= 1;
        }
        self.settle(d, &name, None);
        Ok(())
    }

    fn rename(&mut self, client: &mut dyn Remote, across: bool) -> Done {
        // Directories are renamed where they are: they must not get below themselves.
        let found = self.some_name(|node| !across || !matches!(node, Node::Dir(_)));
        let Some((from, old, node)) = found else { return self.create(client) };
        let to = if across { self.some_dir() } else { from };
        let new = self.fresh();
        self.doubt(from, &old);
        self.doubt(to, &new);
        let (a, b) = (&self.dirs[from].handle, &self.dirs[to].handle);
        client.rename((a, &old), (b, &new))?;
        self.settle(from, &old, None);
        self.settle(to, &new, Some(node));
        Ok(())
    }

    fn link(&mut self, client: &mut dyn Remote) -> Done {
        let (f, d, name) = (self.some_file(client)?, self.some_dir(), self.fresh());
        self.doubt(d, &name);
        let seen = client.link(&self.files[f].handle, &self.dirs[d].handle, &name)?;
        self.files[f].names += 1;
        if let Some(seen) = seen {
            self.files[f].ctime = self.files[f].ctime.max(seen.ctime);
        }
        self.settle(d, &name, Some(Node::File(f)));
        Ok(())
    }

    fn chmod(&mut self, client: &mut dyn Remote) -> Done {
        let f = self.some_file(client)?;
        let bits = 0o600 | (self.random.below(64) as u32);
        self.files[f].mode = None;
        let seen = client.chmod(&self.files[f].handle, bits)?;
        let file = &mut self.files[f];
        file.mode = Some(bits);
        file.ctime = seen.map_or(file.ctime, |seen| file.ctime.max(seen.ctime));
        Ok(())
    }

    fn truncate(&mut self, client: &mut dyn Remote) -> Done {
        let (f, units) = (self.some_file(client)?, self.below(UNITS));
        self.files[f].truncating(units);
        client.truncate(&self.files[f].handle, (units * UNIT) as u64)?;
        self.files[f].truncated(units);
        Ok(())
    }
}

fn ctime(made: &Made) -> wire::nfs3::Nfstime3 {
    made.seen.map_or_else(Default::default, |seen| seen.ctime)
}
