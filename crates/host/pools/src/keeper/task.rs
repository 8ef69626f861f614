//! Tasks of a pool: one at a time, each in a thread of its own. What is left of a repair is in the
//! record of the pool, so that it continues after a restart, also on another machine.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::clock::{Clock, NS_PER_S, SystemClock};

use super::look::{copies, without_copies};
use super::{DAY_MS, HISTORY_MAX, Keeper, disks, lock, now_ms, now_s, tried, wrong};
use crate::btrfs::{Scrubbed, Volume};
use crate::chunks::Chunks;
use crate::pool::Failure;
use crate::profile::Profile;
use crate::record::{Record, Repair};
use crate::request::{Ended, Kind, Phase, TaskStatus};
use crate::state::Member;

/// Thousandths of a task that its first phase has, if a conversion follows.
const FIRST: u64 = 800;
/// Conversions until all chunks have their copies: writes of clients may make further ones while
/// the first runs.
const CONVERSIONS: usize = 3;
/// How often a replacement or a conversion is looked at that the kernel continues after a mount.
const FOLLOW: Duration = Duration::from_millis(300);
/// A replacement makes each chunk read-only in turn, for which other chunks must have the free
/// space of that one, or a new one must fit; a conversion or a removal moves extents, each of which
/// needs contiguous space. Where the kernel finds no room for that, chunks of data are freed that
/// are used to less than these percentages, one after the other.
const ROOM: [u64; 4] = [0, 10, 50, 75];
/// Why a task fails in a pool that is full, as what it lacks room for. The pool is as before.
const NO_ROOM: &str = "which needs free chunks: remove files or snapshots, or add a disk";
/// A repair that failed is not begun again before this time, which doubles with each further one:
/// a scrub of a disk that fails loads the others.
const AGAIN: Duration = Duration::from_secs(60);
/// Most doublings: about an hour.
const DOUBLINGS_MAX: usize = 6;

/// A task that runs.
pub(super) struct Task {
    kind: Kind,
    started_s: u64,
    /// Phase, when it began (monotonic), and what is measured against: bytes, or thousandths.
    phase: Mutex<(Phase, u64, u64)>,
    thousandths: AtomicU64,
    stopped: AtomicBool,
    /// What the scrub of disks that are finished has done.
    finished: Mutex<Scrubbed>,
    at: std::path::PathBuf,
    /// The device that is removed.
    devid: u64,
    /// Chunks on a device that is replaced, and its size.
    chunks: Option<(Chunks, u64)>,
}

impl Task {
    fn new(kind: Kind, phase: Phase, at: &std::path::Path, devid: u64) -> Self {
        Self {
            kind,
            started_s: now_s(),
            phase: Mutex::new((phase, SystemClock.monotonic_ns(), 0)),
            thousandths: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            finished: Mutex::default(),
            at: at.to_owned(),
            devid,
            chunks: None,
        }
    }

    fn begin(&self, phase: Phase, whole: u64) {
        *lock(&self.phase) = (phase, SystemClock.monotonic_ns(), whole);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether it would hold up the end of the process.
    pub(super) fn is_scrubbing(&self) -> bool {
        lock(&self.phase).0 == Phase::Scrub
    }

    /// Has it end soon.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        let Ok(volume) = Volume::open(&self.at) else { return };
        let (phase, ..) = *lock(&self.phase);
        // It fails if the phase has just ended; the next one sees that the task is stopped.
        let _ = match phase {
            Phase::Scrub => volume.cancel_scrub(),
            Phase::Replace => volume.cancel_replace(),
            Phase::Convert => volume.cancel_convert(),
            Phase::Remove => volume.cancel_remove(),
            // Of ZFS, which has no thread here.
            Phase::Resilver => Ok(()),
        };
    }

    /// What the scrub of this task has done, all disks together.
    pub(super) fn scrubbed(&self, volume: &Volume) -> Scrubbed {
        // Before the lock of what is finished: a disk that ends between the two is missing for a
        // moment, and never there twice.
        let runs: Vec<Scrubbed> = match volume.members() {
            Ok(members) if self.is_scrubbing() => {
                let parts = members.iter();
                parts.filter_map(|one| volume.scrub_progress(one.devid).ok().flatten()).collect()
            }
            _ => Vec::new(),
        };
        runs.into_iter().fold(*lock(&self.finished), Scrubbed::and)
    }

    /// Done and all of the phase.
    fn progress(&self, volume: &Volume, phase: Phase, whole: u64) -> Option<(u64, u64)> {
        match phase {
            Phase::Scrub => Some((self.scrubbed(volume).bytes, whole)),
            Phase::Replace => {
                let done = volume.replace_progress().ok()??;
                // The place is that of a chunk; within one, what was read of the device counts.
                let read = volume.scrub_progress(self.devid).ok().flatten();
                let read = read.map_or(0, |read| read.bytes);
                let of = |(chunks, size): &(Chunks, u64)| {
                    let (passed, all) = chunks.before(size / 1_000 * done);
                    (passed.max(read).min(all), all)
                };
                Some(self.chunks.as_ref().map_or((done, 1_000), of))
            }
            Phase::Convert => volume.convert_progress().ok()?,
            Phase::Resilver => None,
            Phase::Remove => {
                let left = volume.members().ok()?;
                let left = left.iter().find(|member| member.devid == self.devid)?.allocated;
                Some((whole.saturating_sub(left), whole))
            }
        }
    }

    pub(super) fn status(&self, volume: &Volume) -> TaskStatus {
        let (phase, began, whole) = *lock(&self.phase);
        let (done, all) = self.progress(volume, phase, whole).unwrap_or((0, 1));
        let part = done.saturating_mul(1_000).checked_div(all).unwrap_or(0).min(1_000);
        let converts = matches!(self.kind, Kind::Replace | Kind::Repair);
        let of_task = match (converts, phase) {
            (true, Phase::Convert) => FIRST + part * (1_000 - FIRST) / 1_000,
            (true, _) => part * FIRST / 1_000,
            (false, _) => part,
        };
        let before = self.thousandths.fetch_max(of_task, Ordering::Relaxed);
        let took = SystemClock.monotonic_ns().saturating_sub(began) as f64 / NS_PER_S as f64;
        let left = took * (all as f64 / done.max(1) as f64 - 1.0).max(0.0);
        TaskStatus {
            kind: self.kind,
            phase,
            thousandths: before.max(of_task),
            seconds_left: (part > 0).then_some(left.ceil() as u64),
            started_s: self.started_s,
        }
    }
}

/// The result of a task: a sentence if all of it was done.
type Outcome = Result<String, Failure>;

impl Keeper {
    /// Begins a task in a thread; `changing` is held.
    fn begin(
        &self,
        name: &str,
        task: Task,
        work: impl FnOnce(&Self, &Task) -> Outcome + Send + 'static,
    ) -> Result<(), Failure> {
        let task = Arc::new(task);
        self.is_idle(name)?;
        self.inner().tasks.insert(name.to_owned(), task.clone());
        let (keeper, own) = (self.own.clone(), name.to_owned());
        let run = move || {
            let Some(keeper) = keeper.upgrade() else { return };
            let result = work(&keeper, &task);
            keeper.end(&own, &task, result);
        };
        let thread = std::thread::Builder::new().name("pool-task".to_owned()).spawn(run);
        if thread.is_err() {
            self.inner().tasks.remove(name);
        }
        tried(thread.map(drop), "start a thread")
    }

    /// Refuses what cannot be done while a task runs.
    fn is_idle(&self, name: &str) -> Result<(), Failure> {
        match self.inner().tasks.get(name) {
            Some(task) => wrong(format!("a {} of the pool {name} runs", task.kind.name())),
            None => Ok(()),
        }
    }

    fn end(&self, name: &str, task: &Task, result: Outcome) {
        let complete = result.is_ok();
        let result = match result {
            Ok(sentence) => sentence,
            Err(_) if task.is_stopped() => "It was stopped.".to_owned(),
            Err(failure) => failure.to_string(),
        };
        base::info!("host", "{} of the pool {name}: {result}", task.kind.name());
        let (kind, started_s) = (task.kind, task.started_s);
        let ended = Ended { kind, started_s, ended_s: now_s(), complete, result };
        if let Ok(volume) = self.volume(name) {
            let _ = self.see(name, &volume);
        }
        let kept = self.remember(name, |known| {
            known.history.push(ended);
            let excess = known.history.len().saturating_sub(HISTORY_MAX);
            known.history.drain(..excess);
        });
        if let Err(failure) = kept {
            base::error!("host", "{failure}");
        }
        let scrubbed = *lock(&task.finished);
        let mut inner = self.inner();
        let sum = inner.scrubbed.entry(name.to_owned()).or_default();
        *sum = sum.and(scrubbed);
        // Last: after it a request may begin the next one.
        inner.tasks.remove(name);
    }

    pub(super) fn stop(&self, name: &str) -> Result<String, Failure> {
        self.known(name)?;
        let task = self.inner().tasks.get(name).cloned();
        let Some(task) = task else { return wrong(format!("no task of the pool {name} runs")) };
        task.stop();
        Ok(format!("The {} of the pool {name} is stopped.", task.kind.name()))
    }

    pub(super) fn scrub(&self, name: &str) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        let volume = self.volume(name)?;
        let task = Task::new(Kind::Scrub, Phase::Scrub, volume.path(), 0);
        self.begin(name, task, move |keeper, task| {
            let scrubbed = scrub(&volume, task)?;
            keeper.update(&volume, |record| record.scrubbed_ms = Some(now_ms()))?;
            Ok(in_words(&scrubbed))
        })?;
        Ok(format!("A scrub of the pool {name} has begun."))
    }

    pub(super) fn replace(&self, name: &str, member: &str, disk: &str) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        // Before anything is written: the record is the running task's, too.
        self.is_idle(name)?;
        let volume = self.volume(name)?;
        let known = self.known(name)?;
        let status = self.look(name, &known);
        let old = disks::member(&status.members, member)?.clone();
        if old.member.missing {
            self.wipe_returned(name, (&known.uuid, old.member.devid), disk)?;
        }
        let new = self.exclusive(disk)?;
        if new.size < old.member.size {
            let (new_mib, old_mib) = (new.size >> 20, old.member.size >> 20);
            return wrong(format!(
                "{disk} has {new_mib} MiB, less than the {old_mib} MiB it is to replace"
            ));
        }
        let profile = self.update(&volume, |record| record.needs(Repair::Convert))?.profile;
        let (devid, path) = (old.member.devid, new.path());
        let mut task = Task::new(Kind::Replace, Phase::Replace, volume.path(), devid);
        // Without them progress is by the place on the disk.
        task.chunks = Chunks::of(&volume, devid).ok().map(|chunks| (chunks, old.member.size));
        let title = old.identity.title();
        let new_name = new.name.clone();
        self.begin(name, task, move |keeper, task| {
            with_free_chunks(&volume, task, "replace the disk", || volume.replace(devid, &path))?;
            if task.is_stopped() {
                return wrong("it was stopped");
            }
            // A larger disk is used as a whole.
            tried(volume.grow(devid), "use all of the disk")?;
            keeper.convert(&volume, profile, task)?;
            Ok(format!("The disk {title} is replaced by {new_name}; all data has its copies."))
        })?;
        Ok(format!("The replacement of the disk {} has begun.", old.identity.title()))
    }

    pub(super) fn remove(&self, name: &str, member: &str) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        let volume = self.volume(name)?;
        let status = self.look(name, &self.known(name)?);
        let old = disks::member(&status.members, member)?.clone();
        let least = status.profile.unwrap_or(Profile::Mirror).disks_min();
        if status.members.len() <= least {
            return wrong(format!("the profile needs {least} disks: replace the disk instead"));
        }
        self.is_idle(name)?;
        let devid = old.member.devid;
        let task = Task::new(Kind::Remove, Phase::Remove, volume.path(), devid);
        task.begin(Phase::Remove, old.member.allocated);
        let title = old.identity.title();
        self.begin(name, task, move |_, task| {
            with_free_chunks(&volume, task, "remove the disk", || volume.remove(devid))?;
            Ok(format!("The disk {title} is removed from the pool."))
        })?;
        Ok(format!("The removal of the disk {} has begun.", old.identity.title()))
    }

    /// Gives all chunks their copies, and proves it: only then the repair is entered as complete.
    fn convert(&self, volume: &Volume, profile: Profile, task: &Task) -> Result<(), Failure> {
        task.begin(Phase::Convert, 0);
        for _ in 0..CONVERSIONS {
            // The kernel continues one after a mount.
            while let Ok(Some(_)) = volume.convert_progress() {
                std::thread::sleep(FOLLOW);
            }
            if task.is_stopped() {
                return wrong("it was stopped");
            }
            let spaces = tried(volume.spaces(), "read the space of the pool")?;
            if without_copies(profile, &spaces) > 0 {
                with_free_chunks(volume, task, "convert the pool", || volume.convert(profile))?;
            }
            let spaces = tried(volume.spaces(), "read the space of the pool")?;
            if without_copies(profile, &spaces) == 0 {
                let members = tried(volume.members(), "list the disks of the pool")?;
                if members.iter().any(|member| member.missing) {
                    return wrong("another disk of the pool is missing");
                }
                tried(volume.sync(), "write back the pool")?;
                self.update(volume, Record::has_copies)?;
                return Ok(());
            }
        }
        wrong("chunks with fewer copies than the profile are left")
    }

    /// Begins repairs, and scrubs by schedule.
    pub(super) fn begin_what_is_due(&self) {
        let _one = lock(&self.changing);
        let names: Vec<String> = self.inner().known.keys().cloned().collect();
        for name in names {
            if self.inner().tasks.contains_key(&name) || self.stuck(&name).is_some() {
                continue;
            }
            if self.is_zfs(&name) {
                if let Err(failure) = self.follow_zfs(&name) {
                    base::warning!("host", "the pool {name}: {failure}");
                }
                continue;
            }
            let Ok(volume) = self.volume(&name) else { continue };
            let (Ok(Some(record)), Ok(members)) = (Record::read(volume.path()), volume.members())
            else {
                continue;
            };
            let record = self.enter_failures(&name, &volume, record, &members);
            let done = record.and_then(|record| self.begin_due(&name, volume, &record, &members));
            if let Err(failure) = done {
                base::error!("host", "{failure}");
            }
        }
    }

    /// Enters a repair after commands to a disk have failed: it may lack what was written. Only
    /// where another disk has a copy.
    fn enter_failures(
        &self,
        name: &str,
        volume: &Volume,
        record: Record,
        members: &[Member],
    ) -> Result<Record, Failure> {
        let has_copies = record.profile.tolerance() > 0;
        let is_entered = record.repair == Some(Repair::Scrub);
        if self.failing(name, members.iter()).is_none() || is_entered || !has_copies {
            return Ok(record);
        }
        self.update(volume, |record| record.needs(Repair::Scrub))
    }

    fn begin_due(
        &self,
        name: &str,
        volume: Volume,
        record: &Record,
        members: &[Member],
    ) -> Result<(), Failure> {
        let has_all = members.iter().all(|member| !member.missing);
        let known = self.known(name)?;
        let waits = waits(&known.history, now_s());
        let lost = match volume.spaces() {
            Ok(spaces) => without_copies(record.profile, &spaces) > 0,
            Err(_) => false,
        };
        if has_all && !waits && (record.repair.is_some() || lost) {
            let repair = record.repair.unwrap_or(Repair::Convert);
            return self.repair(name, volume, record.profile, repair);
        }
        if is_due(record, known.history.as_slice(), now_ms()) && has_all {
            let task = Task::new(Kind::Scrub, Phase::Scrub, volume.path(), 0);
            return self.begin(name, task, move |keeper, task| {
                let scrubbed = scrub(&volume, task)?;
                keeper.update(&volume, |record| record.scrubbed_ms = Some(now_ms()))?;
                Ok(in_words(&scrubbed))
            });
        }
        Ok(())
    }

    fn repair(
        &self,
        name: &str,
        volume: Volume,
        profile: Profile,
        repair: Repair,
    ) -> Result<(), Failure> {
        let first = match (repair, volume.replace_progress()) {
            (_, Ok(Some(_))) => Phase::Replace,
            (Repair::Scrub, _) => Phase::Scrub,
            (Repair::Convert, _) => Phase::Convert,
        };
        let task = Task::new(Kind::Repair, first, volume.path(), 0);
        let own = name.to_owned();
        self.begin(name, task, move |keeper, task| {
            // The kernel continues a replacement after a mount.
            while let Ok(Some(_)) = volume.replace_progress() {
                std::thread::sleep(FOLLOW);
            }
            let mut result = String::new();
            if repair == Repair::Scrub {
                let members = tried(volume.members(), "list the disks of the pool")?;
                keeper.settle(&own, &members);
                // A scrub does not see what is in no complete transaction yet.
                tried(volume.sync(), "write back the pool")?;
                result = format!("{} ", in_words(&scrub(&volume, task)?));
                let members = tried(volume.members(), "list the disks of the pool")?;
                if let Some((devid, count)) = keeper.failing(&own, members.iter()) {
                    return wrong(format!(
                        "{result}{count} commands to the disk number {devid} have failed."
                    ));
                }
                keeper.update(&volume, |record| {
                    record.scrubbed_ms = Some(now_ms());
                    record.repair = Some(Repair::Convert);
                })?;
            }
            keeper.convert(&volume, profile, task)?;
            Ok(format!("{result}All data has its copies."))
        })
    }
}

/// Makes an attempt that may lack room in a volume, after each lack with more of its chunks free.
fn with_free_chunks(
    volume: &Volume,
    task: &Task,
    what: &str,
    attempt: impl FnMut() -> io::Result<()>,
) -> Result<(), Failure> {
    let make_room = |percent| match task.is_stopped() {
        true => Err(io::ErrorKind::Interrupted.into()),
        // A complete transaction frees what was removed.
        false => volume.sync().and_then(|()| volume.compact(percent)),
    };
    let done = with_room(attempt, make_room);
    if done.as_ref().is_err_and(is_full) {
        return wrong(format!("the pool has no room to {what}, {NO_ROOM}"));
    }
    tried(done, what)
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::StorageFull
}

/// Repeats what fails for lack of room, each time after `make_room` with the next one of [`ROOM`].
fn with_room(
    mut attempt: impl FnMut() -> io::Result<()>,
    mut make_room: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<()> {
    for percent in ROOM {
        match attempt() {
            Err(e) if is_full(&e) => make_room(percent)?,
            done => return done,
        }
    }
    attempt()
}

/// Whether a repair is not begun again yet.
fn waits(history: &[Ended], now_s: u64) -> bool {
    let is_failed = |one: &&Ended| one.kind == Kind::Repair && !one.complete;
    let failed = history.iter().rev().take_while(is_failed).count();
    let pause = AGAIN.as_secs() << failed.saturating_sub(1).min(DOUBLINGS_MAX);
    // An end in the future is one by a clock that was ahead and was set back.
    let is_soon_after = |last: &Ended| (last.ended_s..last.ended_s + pause).contains(&now_s);
    failed > 0 && history.last().is_some_and(is_soon_after)
}

/// Whether a scrub is due by the schedule of a pool.
fn is_due(record: &Record, history: &[Ended], now_ms: u64) -> bool {
    let Some(days) = record.scrub_every_days else { return false };
    // One that was stopped or failed is not begun again at once.
    let tried =
        history.iter().rev().find(|one| one.kind == Kind::Scrub).map(|one| one.ended_s * 1_000);
    let last = record.scrubbed_ms.max(tried).unwrap_or(0);
    now_ms.saturating_sub(last) >= u64::from(days) * DAY_MS
}

/// Scrubs all devices at the same time.
fn scrub(volume: &Volume, task: &Task) -> Result<Scrubbed, Failure> {
    let members = tried(volume.members(), "list the disks of the pool")?;
    let spaces = tried(volume.spaces(), "read the space of the pool")?;
    let whole = spaces.iter().map(|space| space.used.saturating_mul(copies(space.flags))).sum();
    task.begin(Phase::Scrub, whole);
    if task.is_stopped() {
        return wrong("it was stopped");
    }
    let results: Vec<io::Result<Scrubbed>> = std::thread::scope(|scope| {
        let present = members.iter().filter(|member| !member.missing);
        let one = |member: &Member| {
            let devid = member.devid;
            scope.spawn(move || {
                let scrubbed = volume.scrub(devid)?;
                let mut finished = lock(&task.finished);
                *finished = finished.and(scrubbed);
                Ok(scrubbed)
            })
        };
        let threads: Vec<_> = present.map(one).collect();
        let lost = || Err(io::Error::other("the thread has ended"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| lost())).collect()
    });
    let mut sum = Scrubbed::default();
    for result in results {
        sum = sum.and(tried(result, "scrub a disk")?);
    }
    if sum.uncorrectable > 0 {
        return wrong(in_words(&sum));
    }
    Ok(sum)
}

/// The result of a scrub in a sentence.
fn in_words(scrubbed: &Scrubbed) -> String {
    let Scrubbed { bytes, wrong, read_errors, corrected, uncorrectable } = scrubbed;
    let mib = bytes >> 20;
    if wrong + read_errors + uncorrectable == 0 {
        return format!("{mib} MiB were read without an error.");
    }
    format!(
        "{mib} MiB were read: {wrong} wrong blocks, {read_errors} read errors, {corrected} \
         corrected, {uncorrectable} without a right copy."
    )
}

#[cfg(test)]
mod tests;
