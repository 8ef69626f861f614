//! A program: threads, the acts of each, and the file sets that these use.

use crate::dist::Dist;
use crate::limits::FDS_MAX;
use crate::members::{Rotor, Slice};
use crate::tree::{SetSpec, Tree, TreeError};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What an act does. The first group are calls to the target, the second is done by the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Read a part of an open file.
    Read,
    /// Write a part of an open file.
    Write,
    /// Read an open file from start to end.
    ReadFile,
    /// Write a file from its start, as many bytes as its nominal size.
    WriteFile,
    /// Write at the end of an open file.
    Append,
    /// Write at the end of an open file, at random up to a size.
    AppendRandom,
    /// Open an existing file.
    Open,
    /// Create a file that does not exist and leave it open.
    Create,
    /// Close an open file.
    Close,
    /// Remove a file.
    Remove,
    /// Read the attributes of a file.
    Stat,
    /// Flush an open file.
    Sync,
    /// Flush all open files of a set.
    SyncSet,
    /// Make a leaf directory.
    MakeDir,
    /// Remove a leaf directory.
    RemoveDir,
    /// List a directory.
    List,
    /// Wait for writes that were started; these have ended already.
    Join,
    /// Sleep for seconds.
    Delay,
    /// Write bytes of memory.
    Burn,
    /// Wait to be woken.
    Block,
    /// Wake what is blocked at the targets.
    Wake,
    /// Take from a counter, after what was posted.
    Take,
    /// Add to the counters of the targets.
    Post,
    /// Wait for one event of the generator.
    LimitEvents,
    /// Wait until the generator had as many events as there were acts.
    LimitActs,
    /// The same for reads and writes.
    LimitTransfers,
    /// The same for MiB.
    LimitBytes,
    /// End the run after a number of acts.
    FinishCount,
    /// End the run after a number of bytes.
    FinishBytes,
}

impl Op {
    /// Whether the target is asked for something.
    pub fn is_call(self) -> bool {
        use Op::{Append, AppendRandom, Close, Create, List, MakeDir, Open, Read, ReadFile};
        use Op::{Remove, RemoveDir, Stat, Sync, SyncSet, Write, WriteFile};
        matches!(
            self,
            Read | Write | ReadFile | WriteFile | Append | AppendRandom | Open | Create | Close
        ) || matches!(self, Remove | Stat | Sync | SyncSet | MakeDir | RemoveDir | List)
    }

    /// Whether bytes of files are moved.
    pub fn is_transfer(self) -> bool {
        self.is_read() || self.is_write()
    }

    /// Whether bytes of files are read.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::ReadFile)
    }

    /// Whether bytes of files are written.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::WriteFile | Self::Append | Self::AppendRandom)
    }

    /// Whether it changes what exists in its set.
    pub fn changes_set(self) -> bool {
        matches!(self, Self::Create | Self::Remove | Self::MakeDir | Self::RemoveDir)
    }

    /// Whether it waits for what other threads do.
    pub fn waits_for_others(self) -> bool {
        matches!(self, Self::Block | Self::Wake | Self::Take | Self::Post)
    }

    /// The name in results.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(op, _)| *op == self).map_or("?", |(_, name)| name)
    }
}

/// Names in results, which are those of Filebench.
const NAMES: &[(Op, &str)] = &[
    (Op::Read, "read"),
    (Op::Write, "write"),
    (Op::ReadFile, "readwholefile"),
    (Op::WriteFile, "writewholefile"),
    (Op::Append, "appendfile"),
    (Op::AppendRandom, "appendfilerand"),
    (Op::Open, "openfile"),
    (Op::Create, "createfile"),
    (Op::Close, "closefile"),
    (Op::Remove, "deletefile"),
    (Op::Stat, "statfile"),
    (Op::Sync, "fsync"),
    (Op::SyncSet, "fsyncset"),
    (Op::MakeDir, "makedir"),
    (Op::RemoveDir, "removedir"),
    (Op::List, "listdir"),
    (Op::Join, "aiowait"),
    (Op::Delay, "delay"),
    (Op::Burn, "hog"),
    (Op::Block, "block"),
    (Op::Wake, "wakeup"),
    (Op::Take, "semblock"),
    (Op::Post, "sempost"),
    (Op::LimitEvents, "eventlimit"),
    (Op::LimitActs, "opslimit"),
    (Op::LimitTransfers, "iopslimit"),
    (Op::LimitBytes, "bwlimit"),
    (Op::FinishCount, "finishoncount"),
    (Op::FinishBytes, "finishonbytes"),
];

/// One act of a thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Act {
    /// Its name, unique enough for the user that wrote it.
    pub name: String,
    /// What it does.
    pub op: Op,
    /// Number of its set, if it names one.
    pub set: Option<u32>,
    /// Where the thread has its file open; 0 if nothing else is stated.
    pub fd: u32,
    /// Open file that gives the size of a written file; 0 for none.
    pub source: u32,
    /// A file in turn for each time, each left open.
    pub rotate: bool,
    /// Which of the existing files, instead of the next one.
    pub indexed: Option<Dist>,
    /// Bytes of each read or write; 0 for a whole file at once.
    pub size: Dist,
    /// At random, instead of in sequence.
    pub random: bool,
    /// Bytes at the start of the file that random access is limited to; 0 for all.
    pub working_set: u64,
    /// Each write is stable before the next act.
    pub dsync: bool,
    /// Without the cache of this machine.
    pub direct: bool,
    /// How many times in a row.
    pub repeat: Dist,
    /// Seconds, bytes, counts: the argument of acts that are not calls.
    pub value: Dist,
    /// How much may be posted before it is taken; 0 for no bound.
    pub high_water: u64,
    /// Posting waits while there is more.
    pub blocking: bool,
    /// Acts that it refers to; none for all acts.
    pub targets: Vec<u32>,
}

impl Act {
    /// An act with defaults.
    pub fn new(name: &str, op: Op) -> Self {
        Self {
            name: name.to_owned(),
            op,
            set: None,
            fd: 0,
            source: 0,
            rotate: false,
            indexed: None,
            size: Dist::fixed(0),
            random: false,
            working_set: 0,
            dsync: false,
            direct: false,
            repeat: Dist::fixed(1),
            value: Dist::fixed(0),
            high_water: 0,
            blocking: false,
            targets: Vec::new(),
        }
    }
}

/// One step of a thread's program.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// An act, by its number.
    Act(u32),
    /// Start of steps that are repeated; `end` is the step that ends them.
    Begin {
        /// How many times.
        times: Dist,
        /// Where they end.
        end: usize,
    },
    /// End of repeated steps that start at `begin`.
    End {
        /// Where they start.
        begin: usize,
    },
}

/// Threads with the same steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    /// Names of process and thread.
    pub name: String,
    /// How many, on all agents together.
    pub instances: u64,
    /// What each repeats until the run ends.
    pub steps: Vec<Step>,
}

/// When a run ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quit {
    /// With a warning when a thread finds no file; as intended when an act finishes it.
    #[default]
    Timeout,
    /// When all threads have ended.
    AllDone,
    /// When the first thread has ended.
    FirstDone,
}

/// What a user should know of a program before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Line in the text; 0 if it has none.
    pub line: u32,
    /// The sentence.
    pub text: String,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// Its file sets.
    pub sets: Vec<SetSpec>,
    /// All acts of all threads.
    pub acts: Vec<Act>,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Events of the generator in a second, all agents together.
    pub rate: Option<u64>,
    /// When it ends before its time.
    pub quit: Quit,
    /// Seconds, if the text states them.
    pub seconds: Option<u64>,
    /// What has no effect.
    pub notes: Vec<Note>,
    /// Texts that it prints.
    pub messages: Vec<String>,
}

/// How threads share a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Nothing is created or removed: all use all of it.
    Fixed,
    /// Each instance of one thread has files of its own.
    Divided,
    /// Threads that do different things share it: their order decides which files they get.
    Common,
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed => "fixed",
            Self::Divided => "divided",
            Self::Common => "common",
        })
    }
}

impl Program {
    /// Threads, all instances together.
    pub fn instances(&self) -> u64 {
        self.threads.iter().map(|thread| thread.instances).sum()
    }

    /// Which thread the n-th instance runs, and its number among those.
    pub fn instance(&self, n: u64) -> Option<(usize, u64)> {
        let mut left = n;
        for (number, thread) in self.threads.iter().enumerate() {
            if left < thread.instances {
                return Some((number, left));
            }
            left -= thread.instances;
        }
        None
    }

    /// Acts of a thread.
    pub fn acts_of(&self, thread: usize) -> impl Iterator<Item = &Act> {
        self.threads[thread].steps.iter().filter_map(|step| match step {
            Step::Act(act) => self.acts.get(*act as usize),
            _ => None,
        })
    }

    /// Sets that an act of a thread works on: the one it names, or those of acts that open files
    /// where it works.
    pub fn sets_of(&self, thread: usize, act: &Act) -> Vec<u32> {
        match act.set {
            Some(set) => vec![set],
            None => {
                let same = self.acts_of(thread).filter(|other| other.fd == act.fd);
                same.filter_map(|other| other.set).collect()
            }
        }
    }

    /// How threads share the set.
    pub fn sharing(&self, set: usize) -> Sharing {
        let mut users = Vec::new();
        let mut changed = false;
        for thread in 0..self.threads.len() {
            for act in self.acts_of(thread) {
                if self.sets_of(thread, act).contains(&(set as u32)) {
                    changed |= act.op.changes_set();
                    users.push(thread);
                }
            }
        }
        users.dedup();
        let spec = &self.sets[set];
        let entries = spec.entries.max(spec.leaf_dirs);
        match users.as_slice() {
            _ if !changed => Sharing::Fixed,
            [one] if self.threads[*one].instances <= entries => Sharing::Divided,
            _ => Sharing::Common,
        }
    }

    /// Whether the same seed gives the same calls whatever the speed of threads is: no set is
    /// common, and no thread waits for another one.
    pub fn is_repeatable(&self) -> bool {
        let alone = |act: &Act| !act.op.waits_for_others();
        self.acts.iter().all(alone)
            && (0..self.sets.len()).all(|set| self.sharing(set) != Sharing::Common)
    }
}

/// Existing files and leaf directories of a set, as some threads see them.
#[derive(Debug, Clone)]
pub struct Members {
    /// Files.
    pub files: Slice,
    /// Leaf directories.
    pub leaf_dirs: Slice,
}

impl Members {
    fn new(tree: &Tree, first: u64, step: u64) -> Self {
        let slice = |entries| Slice::new(entries, first, step, |entry| tree.exists(entry));
        Self { files: slice(tree.files()), leaf_dirs: slice(tree.leaf_dirs()) }
    }

    /// Files or leaf directories.
    pub fn of(&self, leaf_dirs: bool) -> &Slice {
        if leaf_dirs { &self.leaf_dirs } else { &self.files }
    }

    /// The same, to change.
    pub fn of_mut(&mut self, leaf_dirs: bool) -> &mut Slice {
        if leaf_dirs { &mut self.leaf_dirs } else { &mut self.files }
    }
}

/// A set that threads of an agent share with each other.
#[derive(Debug)]
pub struct Common {
    pub(crate) members: Members,
    pub(crate) rotors: [Rotor; 2],
    /// Files and leaf directories that a call in flight works on, or that are open.
    pub(crate) busy: Vec<(bool, u64)>,
}

/// What an agent has of each set.
#[derive(Debug)]
pub struct Pool {
    /// The tree.
    pub tree: Tree,
    /// How it is shared.
    pub sharing: Sharing,
    pub(crate) fixed: Option<Arc<Members>>,
    pub(crate) common: Option<Mutex<Common>>,
}

impl Pool {
    /// The common state; a thread that panicked leaves plain numbers behind.
    pub(crate) fn common(&self) -> Option<MutexGuard<'_, Common>> {
        Some(self.common.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A program with its files, as one agent has it.
#[derive(Debug)]
pub struct Plan {
    /// The program.
    pub program: Program,
    /// Seed of everything.
    pub seed: u64,
    /// Number of this agent, and of all.
    pub agent: (u64, u64),
    /// Its sets.
    pub pools: Vec<Pool>,
}

impl Plan {
    /// Files that the threads of this agent may have open at once: those that the text numbers, and
    /// all numbers of a thread where an act takes the next one each time.
    pub fn open_files_max(&self) -> u64 {
        let of = |n| {
            let (thread, _) = self.program.instance(n)?;
            let each = |act: &Act| match act.rotate && act.fd == 0 {
                true => FDS_MAX as u64,
                false => u64::from(act.fd) + 1,
            };
            self.program.acts_of(thread).map(each).max()
        };
        self.instances().filter_map(of).sum()
    }

    /// Grows the sets of a program for one of several agents.
    ///
    /// # Errors
    /// The name of the set that is too large, and why.
    pub fn new(
        program: Program,
        seed: u64,
        agent: u64,
        agents: u64,
    ) -> Result<Self, (String, TreeError)> {
        let agents = agents.max(1);
        let mut pools = Vec::with_capacity(program.sets.len());
        for (number, spec) in program.sets.iter().enumerate() {
            let seed = crate::seed_of(seed, 0x5e7, number as u64);
            let tree = Tree::new(spec.clone(), seed).map_err(|error| (spec.name.clone(), error))?;
            let sharing = program.sharing(number);
            let fixed = (sharing == Sharing::Fixed).then(|| Arc::new(Members::new(&tree, 0, 1)));
            let common = (sharing == Sharing::Common).then(|| {
                let members = Members::new(&tree, agent, agents);
                Mutex::new(Common { members, rotors: [Rotor::default(); 2], busy: Vec::new() })
            });
            pools.push(Pool { tree, sharing, fixed, common });
        }
        Ok(Self { program, seed, agent: (agent, agents), pools })
    }

    /// Numbers of the instances that this agent runs: each agent takes every so-many-th.
    pub fn instances(&self) -> impl Iterator<Item = u64> + use<> {
        (self.agent.0..self.program.instances()).step_by(self.agent.1 as usize)
    }
}

#[cfg(test)]
mod tests;
