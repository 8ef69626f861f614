//! One thread in its program: which call or wait is next, and what follows from how it ended.
//!
//! A cursor has a generator of its own, seeded by the number of its instance: what it chooses
//! depends on nothing but its own past, unless a set is common ([`Sharing::Common`]).

mod files;

use crate::limits::{FDS_MAX, IO_MAX, SEQUENCE_MAX};
use crate::members::Rotor;
use crate::program::{Act, Members, Op, Plan, Sharing, Step};
use crate::seed_of;
use base::random::{Random, SeededRandom};
use std::sync::Arc;

/// A call to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Call {
    /// The act that it is part of.
    pub act: u32,
    /// What is asked for: [`Op::Append`] for both kinds of appending.
    pub op: Op,
    /// Number of the set.
    pub set: u32,
    /// Number of the file, leaf directory or, for [`Op::List`], directory.
    pub entry: u64,
    /// Where the file is open; `u32::MAX` if the call names it by its path.
    pub fd: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Bytes of each piece of a whole file.
    pub piece: u64,
    /// Stable before the call ends.
    pub dsync: bool,
    /// Without the cache of this machine.
    pub direct: bool,
    /// A file opened because another act needs it: not counted as an act.
    pub hidden: bool,
}

/// No file is open for the call: it names one.
pub const BY_PATH: u32 = u32::MAX;

/// What a thread does that is not a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wait {
    /// The act.
    pub act: u32,
    /// One that is not [`Op::is_call`], or [`Op::AppendRandom`] of no bytes.
    pub op: Op,
    /// Its argument.
    pub value: u64,
}

/// What a thread does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Next {
    /// A call.
    Call(Call),
    /// Something else.
    Wait(Wait),
    /// The thread cannot continue.
    Ended {
        /// The act that cannot be done.
        act: u32,
        /// Why not.
        why: End,
    },
}

/// Why a thread cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum End {
    /// No file of the set exists that is not open.
    #[error("no existing file is left")]
    NoneExists,
    /// All files of the set exist.
    #[error("all files exist already")]
    AllExist,
    /// The act needs an open file.
    #[error("no file is open where the act works, and it names no set")]
    NotOpen,
    /// The act opens a file where one is open.
    #[error("a file is open there already")]
    StillOpen,
    /// Random access with more bytes than the file has.
    #[error("the file is smaller than one operation")]
    Small,
    /// A read or write is too large.
    #[error("one operation has more than 64 MiB")]
    Large,
    /// There are no directories to list.
    #[error("the set has no directories")]
    NoDirectories,
    /// No act of the thread does anything.
    #[error("the thread has nothing to do")]
    Nothing,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Bytes of files moved, or of names listed.
    pub bytes: u64,
    /// Size of the file after it was opened, if the target has one.
    pub size: Option<u64>,
}

/// A file that is open, or was.
#[derive(Debug, Clone, Copy)]
struct File {
    set: u32,
    entry: u64,
    open: bool,
    size: u64,
    position: u64,
}

/// Which files of a set a thread chooses among, and where it is in them.
#[derive(Debug)]
struct View {
    own: Option<Members>,
    fixed: Option<Arc<Members>>,
    /// Files, leaf directories.
    rotors: [Rotor; 2],
    directory: u64,
}

/// One thread in its program.
#[derive(Debug)]
pub struct Cursor {
    plan: Arc<Plan>,
    thread: usize,
    random: SeededRandom,
    at: usize,
    loops: Vec<u64>,
    /// How often the act in progress is still to be done; none if it is not begun.
    left: Option<u64>,
    flight: Option<Call>,
    /// Where a flush of several files continues.
    flushed: u32,
    fds: Vec<Option<File>>,
    rotating: u32,
    views: Vec<View>,
}

/// Steps without anything to do before the thread counts as one without acts: repeats may be drawn
/// as 0 several times in a row.
const IDLE_MAX: u32 = 100_000;

/// What [`seed_of`] is asked for.
const THREAD: u64 = 10;

impl Cursor {
    /// The n-th instance of all threads of a plan.
    pub fn new(plan: &Arc<Plan>, instance: u64) -> Option<Self> {
        let (thread, number) = plan.program.instance(instance)?;
        let all = plan.program.threads[thread].instances;
        let used = files::used(&plan.program, thread);
        let view = |(pool, used): (&crate::program::Pool, bool)| {
            let own = (used && pool.sharing == Sharing::Divided)
                .then(|| files::members(&pool.tree, number, all));
            let fixed = pool.fixed.clone();
            let rotors = [false, true].map(|leaf_dirs| {
                let fixed = fixed.as_ref().map(|members| members.of(leaf_dirs).rotor(number, all));
                fixed.unwrap_or_default()
            });
            let directory = pool.tree.directories() * number / all.max(1);
            View { own, fixed, rotors, directory }
        };
        let views = plan.pools.iter().zip(used).map(view).collect();
        Some(Self {
            plan: Arc::clone(plan),
            thread,
            random: SeededRandom::new(seed_of(plan.seed, THREAD, instance)),
            at: 0,
            loops: Vec::new(),
            left: None,
            flight: None,
            flushed: 0,
            fds: vec![None; FDS_MAX],
            rotating: FDS_MAX as u32,
            views,
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// What the thread does next. After a call, [`Cursor::done`] or [`Cursor::failed`] comes first.
    pub fn next_act(&mut self) -> Next {
        let plan = Arc::clone(&self.plan);
        let steps = &plan.program.threads[self.thread].steps;
        for _ in 0..IDLE_MAX {
            let Some(step) = steps.get(self.at) else {
                self.at = 0;
                continue;
            };
            match step {
                Step::Begin { times, end } => match times.sample(&mut self.random) {
                    0 => self.at = end + 1,
                    times => {
                        self.loops.push(times);
                        self.at += 1;
                    }
                },
                Step::End { begin } => match self.loops.last_mut() {
                    Some(left) if *left > 1 => {
                        *left -= 1;
                        self.at = begin + 1;
                    }
                    _ => {
                        self.loops.pop();
                        self.at += 1;
                    }
                },
                Step::Act(number) => {
                    let act = &plan.program.acts[*number as usize];
                    if let Some(next) = self.act(*number, act) {
                        return next;
                    }
                }
            }
        }
        Next::Ended { act: 0, why: End::Nothing }
    }

    /// The call in flight has succeeded.
    pub fn done(&mut self, done: Done) {
        let Some(call) = self.flight.take() else { return };
        self.succeeded(&call, done);
        if !call.hidden && call.op != Op::Sync {
            self.advance();
        } else if call.op == Op::Sync {
            self.flush_done(&call);
        }
    }

    /// The call in flight has failed. The thread closes its files and starts its program again.
    /// Returns what it had open, for the target to close.
    pub fn failed(&mut self) -> Vec<u32> {
        if let Some(call) = self.flight.take() {
            self.release(&call);
        }
        let mut open = Vec::new();
        for fd in 0..self.fds.len() {
            if let Some(file) = self.fds[fd].take_if(|file| file.open) {
                self.free(file.set, false, file.entry);
                open.push(fd as u32);
            }
        }
        (self.at, self.left, self.flushed) = (0, None, 0);
        self.loops.clear();
        open
    }

    /// One time of the act in progress has ended.
    fn advance(&mut self) {
        self.left = self.left.map(|left| left.saturating_sub(1));
        if self.left == Some(0) {
            self.left = None;
            self.at += 1;
        }
    }

    fn flush_done(&mut self, call: &Call) {
        let acts = &self.plan.program.acts;
        if acts[call.act as usize].op == Op::SyncSet {
            self.flushed = call.fd + 1;
        } else {
            self.advance();
        }
    }

    /// The next part of an act; none when it has nothing to do any more.
    fn act(&mut self, number: u32, act: &Act) -> Option<Next> {
        let left = match self.left {
            Some(left) => left,
            None => act.repeat.sample(&mut self.random),
        };
        if left == 0 {
            self.left = None;
            self.at += 1;
            return None;
        }
        self.left = Some(left);
        if !act.op.is_call() {
            let value = act.value.sample(&mut self.random);
            self.advance();
            return Some(Next::Wait(Wait { act: number, op: act.op, value }));
        }
        let next = self.call(number, act);
        match next {
            Some(Next::Call(call)) => self.flight = Some(call),
            Some(Next::Wait(_)) | None => self.advance(),
            Some(Next::Ended { .. }) => {}
        }
        next
    }

    fn call(&mut self, number: u32, act: &Act) -> Option<Next> {
        let ended = |why| Some(Next::Ended { act: number, why });
        match self.make_call(number, act) {
            Ok(next) => next,
            Err(why) => ended(why),
        }
    }

    fn make_call(&mut self, number: u32, act: &Act) -> Result<Option<Next>, End> {
        let call = Call {
            act: number,
            op: act.op,
            set: act.set.unwrap_or(0),
            entry: 0,
            fd: BY_PATH,
            offset: 0,
            len: 0,
            piece: 0,
            dsync: act.dsync,
            direct: act.direct,
            hidden: false,
        };
        let call = match act.op {
            Op::Open | Op::Create => {
                let fd = self.fd(act);
                if self.open_file(fd).is_some() {
                    return Err(End::StillOpen);
                }
                Call { entry: self.pick(act, act.op == Op::Create)?, fd, ..call }
            }
            Op::Close => self.at_file(call, act.fd)?,
            Op::Remove => self.remove(call, act)?,
            Op::Stat => match self.open_file(act.fd).filter(|_| act.fd > 0) {
                Some(_) => self.at_file(call, act.fd)?,
                None => Call { entry: self.pick(act, false)?, ..call },
            },
            Op::Sync => self.at_file(call, act.fd)?,
            Op::SyncSet => match self.next_flush(act.set) {
                Some(fd) => Call { op: Op::Sync, ..self.at_file(call, fd)? },
                None => {
                    self.flushed = 0;
                    return Ok(None);
                }
            },
            Op::MakeDir | Op::RemoveDir => {
                Call { entry: self.pick(act, act.op == Op::MakeDir)?, ..call }
            }
            Op::List => Call { entry: self.next_directory(call.set)?, ..call },
            _ => return self.transfer(call, act).map(Some),
        };
        Ok(Some(Next::Call(call)))
    }

    /// Reads and writes, which open their file first if they name a set.
    fn transfer(&mut self, call: Call, act: &Act) -> Result<Next, End> {
        let mut size = act.size.sample(&mut self.random);
        if size > IO_MAX {
            return Err(End::Large);
        }
        if act.op == Op::AppendRandom {
            size = self.random.below(size);
            if size == 0 {
                return Ok(Next::Wait(Wait { act: call.act, op: act.op, value: 0 }));
            }
        }
        let fd = self.fd(act);
        if self.open_file(fd).is_none() {
            if act.set.is_none() {
                return Err(End::NotOpen);
            }
            let entry = self.pick(act, false)?;
            // The same descriptor is used once the file is open.
            self.rotating += u32::from(act.rotate && act.fd == 0);
            return Ok(Next::Call(Call { op: Op::Open, entry, fd, hidden: true, ..call }));
        }
        let call = self.at_file(call, fd)?;
        self.range(call, act, size).map(Next::Call)
    }

    /// Offset and length.
    fn range(&mut self, call: Call, act: &Act, size: u64) -> Result<Call, End> {
        let file = self.open_file(call.fd).ok_or(End::NotOpen)?;
        let whole = |len: u64| if size == 0 { len.clamp(1, IO_MAX) } else { size };
        Ok(match act.op {
            Op::ReadFile => Call { len: file.size, piece: whole(file.size), ..call },
            Op::WriteFile => {
                let source = self.fds.get(act.source as usize).copied().flatten();
                let source = source.filter(|_| act.source > 0).unwrap_or(file);
                let len = self.plan.pools[source.set as usize].tree.size(source.entry);
                Call { len, piece: whole(len), ..call }
            }
            Op::Append | Op::AppendRandom => {
                Call { op: Op::Append, offset: file.size, len: size, piece: size, ..call }
            }
            _ if act.random => {
                let within = match act.working_set {
                    0 => file.size,
                    bytes => bytes.min(file.size),
                };
                let size = if size == 0 { within.min(IO_MAX) } else { size };
                if size > within || size == 0 {
                    return Err(End::Small);
                }
                let offset = self.random.below(within);
                let offset = (offset - offset % size).min(within - size);
                Call { offset, len: size, piece: size, ..call }
            }
            Op::Read => {
                let at = if file.position >= file.size { 0 } else { file.position };
                let len = whole(file.size).min(file.size - at);
                Call { offset: at, len, piece: len, ..call }
            }
            _ => {
                let end = file.size.max(SEQUENCE_MAX);
                let at = if file.position >= end { 0 } else { file.position };
                let len = whole(file.size);
                Call { offset: at, len, piece: len, ..call }
            }
        })
    }
}

#[cfg(test)]
mod tests;
