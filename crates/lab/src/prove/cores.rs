//! One core less for a server of this machine, for a time. A guard, which is a process, takes the
//! core and gives it back when its standard input ends: that happens also if this program is
//! killed.
//!
//! Each thread gets back what it had. Threads and processes that the server has started meanwhile
//! have what their creator had, and get back what that gets.

use crate::conduct::agents::lab_command;
use host::Root;
use host::observe::family::{self, Member};
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Word of the command line that makes a process a guard.
pub const GUARD: &str = "restrict-cores";
/// Line that a guard prints once the server has one core less.
const READY: &str = "ready";
/// How often all threads are looked at: those that start meanwhile are found the next time.
const PASSES: usize = 16;

/// A server that has one core less, as long as this value lives.
#[derive(Debug)]
pub struct Restricted {
    guard: Child,
}

impl Restricted {
    /// Takes a core from the server with this process.
    ///
    /// # Errors
    /// Why it has as many as before.
    pub fn new(pid: u32) -> Result<Self, String> {
        let command = lab_command(GUARD);
        let (program, words) = command.split_first().ok_or("there is no program to start")?;
        let guard = Command::new(program)
            .args(words)
            .arg(pid.to_string())
            // What ends this program from the terminal must not end the guard.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start {program}: {e}"))?;
        let mut restricted = Self { guard };
        let mut line = String::new();
        let read =
            restricted.guard.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        match read {
            Some(Ok(_)) if line.trim_end() == READY => Ok(restricted),
            _ => Err(restricted.end().err().unwrap_or_else(|| "the guard has ended".to_owned())),
        }
    }

    /// Gives the core back.
    ///
    /// # Errors
    /// Why the server does not have it.
    pub fn end(mut self) -> Result<(), String> {
        drop(self.guard.stdin.take());
        let mut why = String::new();
        if let Some(errors) = &mut self.guard.stderr {
            let _unreadable = errors.read_to_string(&mut why);
        }
        match self.guard.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) if why.trim().is_empty() => Err(format!("its guard ended: {status}")),
            Ok(_) => Err(why.trim().to_owned()),
            Err(e) => Err(format!("cannot wait for its guard: {e}")),
        }
    }
}

impl Drop for Restricted {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _reaped = self.guard.wait();
    }
}

/// Runs as guard of the server with this process until standard input ends.
///
/// # Errors
/// The core cannot be taken, or not given back.
pub fn guard(pid: u32) -> Result<(), String> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: ignores a signal, without a handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let less = Less::take(pid)?;
    // Without a reader the end of standard input follows.
    let mut out = io::stdout();
    let _gone = writeln!(out, "{READY}").and_then(|()| out.flush());
    let _ended = io::copy(&mut io::stdin(), &mut io::sink());
    less.give_back()
}

/// Cores that a thread may use.
#[derive(Clone, Copy)]
struct Cores(libc::cpu_set_t);

impl PartialEq for Cores {
    fn eq(&self, other: &Self) -> bool {
        // SAFETY: reads two sets of cores.
        unsafe { libc::CPU_EQUAL(&self.0, &other.0) }
    }
}

impl Cores {
    fn of(thread: u32) -> io::Result<Self> {
        // SAFETY: a set of cores is plain numbers.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: writes at most the size given to a set of that size.
        let code =
            unsafe { libc::sched_getaffinity(thread as libc::pid_t, size_of_val(&set), &mut set) };
        if code == 0 { Ok(Self(set)) } else { Err(io::Error::last_os_error()) }
    }

    fn set(&self, thread: u32) -> io::Result<()> {
        // SAFETY: reads a set of the size given.
        let code = unsafe {
            libc::sched_setaffinity(thread as libc::pid_t, size_of_val(&self.0), &self.0)
        };
        let error = io::Error::last_os_error();
        // A thread may have ended meanwhile.
        if code == 0 || error.raw_os_error() == Some(libc::ESRCH) { Ok(()) } else { Err(error) }
    }

    fn list(&self) -> Vec<usize> {
        // SAFETY: the index is below the number of bits of a set.
        let has = |core: &usize| unsafe { libc::CPU_ISSET(*core, &self.0) };
        (0..libc::CPU_SETSIZE as usize).filter(has).collect()
    }

    fn without(mut self, core: usize) -> Self {
        // SAFETY: the index is one of the set.
        unsafe { libc::CPU_CLR(core, &mut self.0) };
        self
    }
}

/// A thread by its number and start.
type Thread = (u32, u64);

/// What a thread had and what it got.
#[derive(Clone, Copy)]
struct Change {
    before: Cores,
    after: Cores,
}

/// A server that has one core less.
struct Less {
    root: Root,
    pid: u32,
    started: u64,
    changes: HashMap<Thread, Change>,
}

impl Less {
    fn take(pid: u32) -> Result<Self, String> {
        let root = Root::default();
        let started = family::read(&root, pid).ok_or("the server has ended")?.started;
        let all = Cores::of(pid).map_err(|e| format!("cannot read its cores: {e}"))?;
        let cores = all.list();
        let (Some(last), true) = (cores.last(), cores.len() > 1) else {
            return Err("the server has one core".to_owned());
        };
        let mut less = Self { root, pid, started, changes: HashMap::new() };
        let taken = less.restrict(*last, all.without(*last));
        if let Err(e) = taken {
            less.give_back()?;
            return Err(format!("cannot restrict it to fewer cores: {e}"));
        }
        Ok(less)
    }

    /// Takes a core from all threads; those that have no other get `rest`.
    fn restrict(&mut self, core: usize, rest: Cores) -> io::Result<()> {
        for _ in 0..PASSES {
            let mut changed = false;
            for thread in threads(&self.root, self.pid) {
                let Ok(before) = Cores::of(thread.0) else { continue };
                if !before.list().contains(&core) {
                    continue;
                }
                let after = before.without(core);
                let after = if after.list().is_empty() { rest } else { after };
                after.set(thread.0)?;
                self.changes.insert(thread, Change { before, after });
                changed = true;
            }
            if !changed {
                break;
            }
        }
        Ok(())
    }

    /// Gives all threads what they had, as far as no one else has changed it since.
    fn give_back(&self) -> Result<(), String> {
        for _ in 0..PASSES {
            let mut changed = false;
            if family::read(&self.root, self.pid).is_none_or(|m| m.started != self.started) {
                // A server that has ended has no cores to get back.
                return Ok(());
            }
            for (thread, before) in self.restricted() {
                before.set(thread).map_err(|e| {
                    format!("cannot give the server with process {} its cores back: {e}", self.pid)
                })?;
                changed = true;
            }
            if !changed {
                break;
            }
        }
        Ok(())
    }

    /// Threads that still have fewer cores, with what they had.
    fn restricted(&self) -> Vec<(u32, Cores)> {
        let family = descendants(&self.root, self.pid);
        let all = family.into_iter().flat_map(|pid| threads(&self.root, pid));
        let before = |thread: Thread| {
            let now = Cores::of(thread.0).ok()?;
            let own = self.changes.get(&thread);
            let change = match own {
                Some(change) => Some(change).filter(|change| change.after == now),
                // One that was started meanwhile has what its creator had.
                None => self.changes.values().find(|change| change.after == now),
            };
            Some((thread.0, change?.before))
        };
        all.filter_map(before).collect()
    }
}

/// The threads of a process.
fn threads(root: &Root, pid: u32) -> Vec<Thread> {
    let ids = root.list(&format!("proc/{pid}/task"));
    let thread = |id: &String| {
        let stat = root.read(&format!("proc/{pid}/task/{id}/stat")).ok()?;
        let id = id.parse().ok()?;
        Some((id, Member::parse(id, &stat)?.started))
    };
    ids.iter().filter_map(thread).collect()
}

/// A process and all that it has started.
fn descendants(root: &Root, pid: u32) -> Vec<u32> {
    family::descendants(&family::processes(root), &[pid], None).into_keys().collect()
}

#[cfg(test)]
mod tests;
