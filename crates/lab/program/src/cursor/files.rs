//! Which file a thread works on: open ones by their number, others chosen from its sets.

use super::{Call, Cursor, Done, End, File};
use crate::limits::FDS_MAX;
use crate::program::{Act, Members, Op, Program};
use crate::tree::Tree;

/// Which sets a thread uses.
pub fn used(program: &Program, thread: usize) -> Vec<bool> {
    let mut used = vec![false; program.sets.len()];
    for act in program.acts_of(thread) {
        for set in program.sets_of(thread, act) {
            used[set as usize] = true;
        }
    }
    used
}

/// The files of the n-th of `all` threads.
pub fn members(tree: &Tree, n: u64, all: u64) -> Members {
    Members {
        files: crate::members::Slice::new(tree.files(), n, all, |entry| tree.exists(entry)),
        leaf_dirs: crate::members::Slice::new(tree.leaf_dirs(), n, all, |entry| tree.exists(entry)),
    }
}

impl Cursor {
    /// The file that is open at `fd`.
    pub(super) fn open_file(&self, fd: u32) -> Option<File> {
        self.fds.get(fd as usize).copied().flatten().filter(|file| file.open)
    }

    /// Where the act works; each time another one if it rotates.
    pub(super) fn fd(&mut self, act: &Act) -> u32 {
        if act.fd > 0 || !act.rotate {
            return act.fd;
        }
        if self.rotating == 0 {
            self.rotating = FDS_MAX as u32;
        }
        self.rotating -= 1;
        self.rotating
    }

    /// A call on the file that is open at `fd`.
    pub(super) fn at_file(&self, call: Call, fd: u32) -> Result<Call, End> {
        let file = self.open_file(fd).ok_or(End::NotOpen)?;
        Ok(Call { set: file.set, entry: file.entry, fd, ..call })
    }

    /// Removing the file at a descriptor, open or closed, or any other one.
    pub(super) fn remove(&mut self, call: Call, act: &Act) -> Result<Call, End> {
        let at = self.fds.get(act.fd as usize).copied().flatten().filter(|_| act.fd > 0);
        match at {
            Some(file) => Ok(Call { set: file.set, entry: file.entry, ..call }),
            None if act.set.is_none() => Err(End::NotOpen),
            None => Ok(Call { entry: self.pick(act, false)?, ..call }),
        }
    }

    /// The next open file of a set that is to be flushed.
    pub(super) fn next_flush(&self, set: Option<u32>) -> Option<u32> {
        let of_set = |fd: &u32| {
            self.open_file(*fd).is_some_and(|file| set.is_none_or(|set| set == file.set))
        };
        (self.flushed..FDS_MAX as u32).find(of_set)
    }

    /// The next directory of a set in rotation.
    pub(super) fn next_directory(&mut self, set: u32) -> Result<u64, End> {
        let all = self.plan.pools[set as usize].tree.directories();
        let view = &mut self.views[set as usize];
        let at = view.directory;
        view.directory += 1;
        at.checked_rem(all).ok_or(End::NoDirectories)
    }

    /// A file of the act's set, or a leaf directory: an existing one, or a missing one.
    pub(super) fn pick(&mut self, act: &Act, missing: bool) -> Result<u64, End> {
        let Some(set) = act.set else { return Err(End::NotOpen) };
        let leaf_dirs = matches!(act.op, Op::MakeDir | Op::RemoveDir);
        let index = act.indexed.as_ref().map(|dist| dist.sample(&mut self.random));
        let none = if missing { End::AllExist } else { End::NoneExists };
        let plan = std::sync::Arc::clone(&self.plan);
        if let Some(mut common) = plan.pools[set as usize].common() {
            let common = &mut *common;
            let busy = |entry| common.busy.contains(&(leaf_dirs, entry));
            let rotor = &mut common.rotors[usize::from(leaf_dirs)];
            let slice = common.members.of(leaf_dirs);
            let entry = choose(slice, rotor, index, missing, busy).ok_or(none)?;
            common.busy.push((leaf_dirs, entry));
            return Ok(entry);
        }
        let Self { views, fds, .. } = self;
        let view = &mut views[set as usize];
        let changes = act.op.changes_set();
        // What nothing changes may be open any number of times.
        let busy = |entry| {
            let same = |file: &File| file.open && (file.set, file.entry) == (set, entry);
            changes && !leaf_dirs && fds.iter().flatten().any(same)
        };
        let rotor = &mut view.rotors[usize::from(leaf_dirs)];
        let members = view.own.as_ref().or(view.fixed.as_deref()).ok_or(none)?;
        choose(members.of(leaf_dirs), rotor, index, missing, busy).ok_or(none)
    }

    /// What a successful call changes.
    pub(super) fn succeeded(&mut self, call: &Call, done: Done) {
        let fd = call.fd as usize;
        match call.op {
            Op::Open | Op::Create => {
                let size = match call.op {
                    Op::Create => 0,
                    _ => {
                        let tree = &self.plan.pools[call.set as usize].tree;
                        done.size.unwrap_or_else(|| tree.size(call.entry))
                    }
                };
                let (set, entry) = (call.set, call.entry);
                self.fds[fd] = Some(File { set, entry, open: true, size, position: 0 });
                if call.op == Op::Create {
                    self.set_exists(call.set, false, call.entry, true);
                }
            }
            Op::Close => {
                if let Some(file) = &mut self.fds[fd] {
                    file.open = false;
                }
                self.free(call.set, false, call.entry);
            }
            Op::Remove => {
                self.set_exists(call.set, false, call.entry, false);
                let same = |file: &mut File| (file.set, file.entry) == (call.set, call.entry);
                for file in &mut self.fds {
                    file.take_if(|file| !file.open && same(file));
                }
                self.free(call.set, false, call.entry);
            }
            Op::MakeDir | Op::RemoveDir => {
                self.set_exists(call.set, true, call.entry, call.op == Op::MakeDir);
                self.free(call.set, true, call.entry);
            }
            Op::Stat if call.fd == super::BY_PATH => self.free(call.set, false, call.entry),
            Op::Read | Op::Write | Op::WriteFile | Op::Append | Op::ReadFile => {
                if let Some(file) = &mut self.fds[fd] {
                    let end = call.offset + call.len;
                    file.position = end;
                    if call.op.is_write() {
                        file.size = file.size.max(end);
                    }
                }
            }
            _ => {}
        }
    }

    /// A call that failed leaves what it chose.
    pub(super) fn release(&mut self, call: &Call) {
        let leaf_dirs = matches!(call.op, Op::MakeDir | Op::RemoveDir);
        let chosen = matches!(call.op, Op::Open | Op::Create | Op::Remove) || leaf_dirs;
        if chosen || call.op == Op::Stat && call.fd == super::BY_PATH {
            self.free(call.set, leaf_dirs, call.entry);
        }
    }

    /// A file that is shared with other threads may be chosen again.
    pub(super) fn free(&mut self, set: u32, leaf_dirs: bool, entry: u64) {
        if let Some(mut common) = self.plan.pools[set as usize].common() {
            let at = common.busy.iter().position(|busy| *busy == (leaf_dirs, entry));
            if let Some(at) = at {
                common.busy.swap_remove(at);
            }
        }
    }

    fn set_exists(&mut self, set: u32, leaf_dirs: bool, entry: u64, exists: bool) {
        if let Some(mut common) = self.plan.pools[set as usize].common() {
            common.members.of_mut(leaf_dirs).set(entry, exists);
        }
        if let Some(own) = &mut self.views[set as usize].own {
            own.of_mut(leaf_dirs).set(entry, exists);
        }
    }
}

fn choose(
    slice: &crate::members::Slice,
    rotor: &mut crate::members::Rotor,
    index: Option<u64>,
    missing: bool,
    busy: impl Fn(u64) -> bool,
) -> Option<u64> {
    let count = if missing { slice.len() - slice.existing() } else { slice.existing() };
    if let Some(index) = index.filter(|_| count > 0) {
        let nth = index % count;
        let entry = if missing { slice.nth_missing(nth) } else { slice.nth_existing(nth) }?;
        if !busy(entry) {
            return Some(entry);
        }
    }
    if missing { slice.next_missing(rotor, busy) } else { slice.next_existing(rotor, busy) }
}
