//! Statistics on disk: folders `second`, `minute` and `hour` of segments named by their start.
//!
//! Opening lists names and reads the newest segment of each folder; a year of history costs no more
//! than a day. Minutes and hours are added up as seconds come in, and made up for after a crash.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use base::limits::{KEEP_HOURS_S, KEEP_MINUTES_S, KEEP_SECONDS_S, STORE_BYTES_MAX};

use crate::model::{Frame, Sum};

mod codec;
mod inspect;
mod packing;
mod sealer;
mod segment;
mod shared;

pub use codec::{Damage, Part, PartSelector, everything};
pub use inspect::inspect;
pub use segment::{Header, SegmentError};

use sealer::Sealer;
use segment::Writer;

/// How often the newest seconds are brought to the disk, in seconds of data.
const SYNC_EVERY: u64 = 10;

/// A length of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fidelity {
    /// A frame each second.
    Second,
    /// A frame each minute.
    Minute,
    /// A frame each hour.
    Hour,
}

impl Fidelity {
    /// From the finest.
    pub const ALL: [Self; 3] = [Self::Second, Self::Minute, Self::Hour];

    /// Seconds in a frame.
    pub const fn span(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3600,
        }
    }

    /// Name of its folder.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
        }
    }

    /// Seconds in a segment: an hour, a day, 32 days.
    pub(crate) const fn segment(self) -> u64 {
        match self {
            Self::Second => 3600,
            Self::Minute => 86_400,
            Self::Hour => 32 * 86_400,
        }
    }

    /// Frames in a packed block: what a reader unpacks at least.
    const fn pack(self) -> usize {
        match self {
            Self::Second => 600,
            Self::Minute => 240,
            Self::Hour => 192,
        }
    }
}

/// How long what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Seconds of time that frames of a second, a minute, an hour are kept.
    pub keep: [u64; 3],
    /// Maximum total size on disk.
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { keep: [KEEP_SECONDS_S, KEEP_MINUTES_S, KEEP_HOURS_S], bytes: STORE_BYTES_MAX }
    }
}

/// Why the store cannot perform an operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file of the store.
    #[error("{}: {source}", path.display())]
    Segment {
        /// Which.
        path: PathBuf,
        /// What happened.
        source: SegmentError,
    },
}

fn failed<E: Into<SegmentError>>(path: &Path) -> impl FnOnce(E) -> StoreError {
    let path = path.to_owned();
    |source| StoreError::Segment { path, source: source.into() }
}

/// One folder of segments.
struct Folder {
    fidelity: Fidelity,
    dir: PathBuf,
    /// Starts of its segments, sealed and live.
    starts: BTreeSet<u64>,
    writer: Option<Writer>,
    sealer: Sealer,
}

impl Folder {
    fn open(dir: &Path, fidelity: Fidelity) -> Result<Self, StoreError> {
        let dir = dir.join(fidelity.name());
        fs::create_dir_all(&dir).map_err(failed(&dir))?;
        // After a power cut a name without its inode could be a folder that we may not open.
        fs::File::open(&dir).and_then(|dir| dir.sync_all()).map_err(failed(&dir))?;
        let mut folder = Self {
            fidelity,
            dir,
            starts: BTreeSet::new(),
            writer: None,
            sealer: Sealer::default(),
        };
        for entry in fs::read_dir(&folder.dir).map_err(failed(&folder.dir))? {
            let name = entry.map_err(failed(&folder.dir))?.file_name();
            let path = Path::new(&name);
            let start = path.file_stem().and_then(|s| s.to_str()).and_then(|s| s.parse().ok());
            match (start, path.extension().and_then(|e| e.to_str())) {
                (Some(start), Some("live" | "seg")) => drop(folder.starts.insert(start)),
                // What a crash has left of a sealing.
                (Some(_), Some("tmp")) => drop(fs::remove_file(folder.dir.join(path))),
                _ => {}
            }
        }
        Ok(folder)
    }

    fn path(&self, start: u64, extension: &str) -> PathBuf {
        self.dir.join(format!("{start:012}.{extension}"))
    }

    /// Where to look for a segment: a live one may be sealed meanwhile.
    fn names(&self, start: u64) -> [PathBuf; 3] {
        ["seg", "live", "seg"].map(|extension| self.path(start, extension))
    }

    /// The live segment for `time`; those before are sealed, off this thread.
    fn writer(&mut self, time: u64) -> Result<&mut Writer, StoreError> {
        let start = time - time % self.fidelity.segment();
        if self.writer.as_ref().is_none_or(|w| w.header.start != start) {
            self.writer = None;
            self.seal_before(start);
            let header = Header { sealed: false, span: self.fidelity.span() as u32, start };
            self.starts.insert(start);
            self.writer = Some(self.open_live(header)?);
        }
        match &mut self.writer {
            Some(writer) => Ok(writer),
            None => unreachable!("the writer was opened above"),
        }
    }

    /// Opens the live segment. One that cannot be read is set aside.
    fn open_live(&self, header: Header) -> Result<Writer, StoreError> {
        let live = self.path(header.start, "live");
        match Writer::open(&live, header) {
            Err(error) if is_foreign(&error) => {
                self.sealer.set_aside(&live, error);
                Writer::open(&live, header)
            }
            done => done,
        }
        .map_err(failed(&live))
    }

    fn seal_before(&mut self, start: u64) {
        let jobs =
            self.starts.range(..start).map(|old| [self.path(*old, "live"), self.path(*old, "seg")]);
        let jobs = jobs.filter(|[live, _]| live.exists()).collect();
        self.sealer.seal(jobs, self.fidelity.pack());
    }

    /// Whether this segment is finished: a clock that was set back must not overwrite it. An
    /// unreadable file with its name, of another version or damaged, is set aside and reported
    /// once: it must not prevent the storage of new seconds. One that cannot be read now may be a
    /// good one.
    fn is_sealed(&self, start: u64) -> Result<bool, StoreError> {
        let (sealed, nothing) = (self.path(start, "seg"), &|_: &str, _: [&str; 2]| Part::Nothing);
        match segment::read(&sealed, (u64::MAX, u64::MAX), nothing, &mut drop) {
            Ok(_) => Ok(true),
            Err(error) if is_gone(&error) => Ok(false),
            Err(error) if is_foreign(&error) => {
                self.sealer.set_aside(&sealed, error);
                Ok(false)
            }
            Err(error) => Err(failed(&sealed)(error)),
        }
    }

    /// Appends unless there is a frame of this time or a later one already.
    fn append(&mut self, frame: &Frame) -> Result<bool, StoreError> {
        let path = self.dir.clone();
        let live = self.writer.as_ref().map(|writer| writer.header.start);
        let start = frame.time - frame.time % self.fidelity.segment();
        if live != Some(start) && self.is_sealed(start)? {
            return Ok(false);
        }
        let sync = self.fidelity != Fidelity::Second || frame.time.is_multiple_of(SYNC_EVERY);
        let writer = self.writer(frame.time)?;
        if writer.last.is_some_and(|last| last >= frame.time) {
            return Ok(false);
        }
        writer.append(frame).map_err(failed(&path))?;
        if sync {
            writer.sync().map_err(failed(&path))?;
        }
        Ok(true)
    }

    /// Time of the newest frame on disk.
    fn newest(&self) -> Option<u64> {
        let mut newest = None;
        for &start in self.starts.iter().rev() {
            let mut visit = |frame: Frame| newest = newest.max(Some(frame.time));
            for extension in ["live", "seg"] {
                let path = self.path(start, extension);
                // What cannot be read has no newest frame.
                drop(segment::read(&path, (0, u64::MAX), &|_, _| Part::Nothing, &mut visit));
            }
            if newest.is_some() {
                break;
            }
        }
        newest
    }

    /// Removes segments that end before `time`.
    fn prune(&mut self, time: u64) {
        while let Some(&start) = self.starts.first() {
            if start + self.fidelity.segment() > time {
                break;
            }
            self.remove(start);
        }
    }

    fn remove(&mut self, start: u64) {
        for extension in ["seg", "live"] {
            // Gone already is as good.
            drop(fs::remove_file(self.path(start, extension)));
        }
        self.starts.remove(&start);
    }

    fn bytes(&self) -> u64 {
        let size =
            |e: io::Result<fs::DirEntry>| e.and_then(|e| e.metadata()).map_or(0, |m| m.len());
        fs::read_dir(&self.dir).map_or(0, |entries| entries.map(size).sum())
    }
}

/// Whether a file is not in our format: a retry cannot change that.
fn is_foreign(error: &SegmentError) -> bool {
    matches!(error, SegmentError::Foreign(_) | SegmentError::Damaged(_))
}

/// Whether there is no file of this name.
fn is_gone(error: &SegmentError) -> bool {
    matches!(error, SegmentError::Io(error) if error.kind() == io::ErrorKind::NotFound)
}

struct Inner {
    folders: [Folder; 3],
    minute: Sum,
    hour: Sum,
    retention: Retention,
    /// The last second that a former process has left, until there is a later one.
    found: Option<u64>,
    /// Operations of this process in that second.
    rest: Option<Frame>,
}

/// The statistics of one server on disk.
pub struct Store {
    inner: Mutex<Inner>,
}

impl Store {
    /// Opens or makes the store in `dir`.
    ///
    /// # Errors
    /// When the folder cannot be used. A damaged segment is no error: it is cut off.
    pub fn open(dir: &Path, retention: Retention) -> Result<Self, StoreError> {
        let folder = |fidelity| Folder::open(dir, fidelity);
        let folders =
            [folder(Fidelity::Second)?, folder(Fidelity::Minute)?, folder(Fidelity::Hour)?];
        fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed(dir))?;
        let found = folders[0].newest();
        let store = Self {
            inner: Mutex::new(Inner {
                folders,
                minute: Sum::default(),
                hour: Sum::default(),
                retention,
                found,
                rest: None,
            }),
        };
        store.make_up()?;
        Ok(store)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Adds up the seconds and minutes that no longer frame on disk covers.
    fn make_up(&self) -> Result<(), StoreError> {
        let after =
            |f: Fidelity| self.inner().folders[f as usize].newest().map_or(0, |t| t + f.span());
        // One at a time: where there are no minutes or hours at all, it is a history.
        let mut done = Ok(());
        let from = after(Fidelity::Hour);
        self.read(Fidelity::Minute, (from, u64::MAX), &everything, &mut |minute| {
            if done.is_ok() {
                done = self.inner().add_minute(&minute);
            }
        })?;
        let from = after(Fidelity::Minute);
        self.read(Fidelity::Second, (from, u64::MAX), &everything, &mut |second| {
            if done.is_ok() {
                done = self.inner().add_second(&second);
            }
        })?;
        done
    }

    /// Appends a second; `false` when there is a later one already (the clock was set back). One
    /// that a former process has appended is counted with the next one.
    ///
    /// # Errors
    /// When the disk refuses: the second is lost, the store remains usable. Also, once, when an old
    /// segment had to be set aside: the second is kept then.
    pub fn append(&self, frame: &Frame) -> Result<bool, StoreError> {
        let mut inner = self.inner();
        if inner.found.take_if(|found| *found == frame.time).is_some() {
            let rest = shared::operations(frame);
            inner.add_second(&rest)?;
            inner.rest = Some(rest);
            return Ok(true);
        }
        let whole = inner.rest.as_ref().map(|rest| shared::together(frame, rest));
        match inner.folders[0].append(whole.as_ref().unwrap_or(frame)) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => {
                // Old segments go now: their space may be what is missing.
                inner.keep(frame.time);
                return Err(error);
            }
        }
        (inner.found, inner.rest) = (None, None);
        inner.add_second(frame)?;
        // The second is stored; the failure of a sealer is reported nevertheless.
        inner.folders.iter().find_map(|f| f.sealer.failure()).map_or(Ok(true), Err)
    }

    /// Appends a frame of a minute or an hour that was not added up here: a history from elsewhere.
    /// `false` when there is a later one already.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn import(&self, fidelity: Fidelity, frame: &Frame) -> Result<bool, StoreError> {
        self.inner().folders[fidelity as usize].append(frame)
    }

    /// Waits until all finished segments are packed.
    pub fn settle(&self) {
        for n in 0..Fidelity::ALL.len() {
            let thread = self.inner().folders[n].sealer.take();
            Sealer::join(thread);
        }
    }

    /// Shows every frame that starts within `from..to`, oldest first, with the tables that are
    /// wanted. Segments that cannot be read are passed over.
    ///
    /// # Errors
    /// When an existing file cannot be opened for reasons other than damage.
    pub fn read(
        &self,
        fidelity: Fidelity,
        (from, to): (u64, u64),
        want: PartSelector<'_>,
        visit: &mut dyn FnMut(Frame),
    ) -> Result<(), StoreError> {
        let paths: Vec<[PathBuf; 3]> = {
            let inner = self.inner();
            let folder = &inner.folders[fidelity as usize];
            let first = from.saturating_sub(fidelity.segment() - 1);
            let starts = folder.starts.range(first..to.max(first));
            starts.map(|start| folder.names(*start)).collect()
        };
        for names in &paths {
            for path in names {
                match segment::read(path, (from, to), want, visit) {
                    // Sealed this moment, it is found under the next name.
                    Err(e) if is_gone(&e) => continue,
                    // Of another version: later data is in the file with the next name.
                    Err(SegmentError::Foreign(_)) => continue,
                    Err(SegmentError::Io(e)) => return Err(failed(path)(e)),
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// Time of the oldest frame of this fidelity.
    pub fn since(&self, fidelity: Fidelity) -> Option<u64> {
        let paths: Vec<[PathBuf; 3]> = {
            let inner = self.inner();
            let folder = &inner.folders[fidelity as usize];
            folder.starts.iter().map(|start| folder.names(*start)).collect()
        };
        // What cannot be read has no frames.
        paths.iter().flatten().find_map(|path| segment::first(path).ok().flatten())
    }

    /// Start of the oldest segment of this fidelity: its first frame may be later by the length of
    /// a segment.
    pub fn oldest(&self, fidelity: Fidelity) -> Option<u64> {
        self.inner().folders[fidelity as usize].starts.first().copied()
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.inner().folders.iter().map(Folder::bytes).sum()
    }

    /// Bytes on disk of one fidelity.
    pub fn bytes_of(&self, fidelity: Fidelity) -> u64 {
        self.inner().folders[fidelity as usize].bytes()
    }

    /// How long what is kept now.
    pub fn retention(&self) -> Retention {
        self.inner().retention
    }

    /// How long what is kept from now on. What is too old goes with the next minute: a change that
    /// is taken back at once has cost nothing.
    pub fn set_retention(&self, retention: Retention) {
        self.inner().retention = retention;
    }

    /// Brings everything to the disk.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&self) -> Result<(), StoreError> {
        for folder in &self.inner().folders {
            if let Some(writer) = &folder.writer {
                writer.sync().map_err(failed(&folder.dir))?;
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Adds to the minute; one that is over is stored. If the disk refuses, that minute is lost,
    /// and counts in its hour nevertheless.
    fn add_second(&mut self, frame: &Frame) -> Result<(), StoreError> {
        let start = frame.time - frame.time % Fidelity::Minute.span();
        let mut stored = Ok(());
        if self.minute.time() != start {
            let new = Sum::new(start, Fidelity::Minute.span() as u32);
            let done = std::mem::replace(&mut self.minute, new);
            if !done.is_empty() {
                let minute = done.finish();
                stored = self.folders[1].append(&minute).map(drop);
                stored = stored.and(self.add_minute(&minute));
                self.keep(frame.time);
            }
        }
        self.minute.add(frame);
        stored
    }

    fn add_minute(&mut self, frame: &Frame) -> Result<(), StoreError> {
        let start = frame.time - frame.time % Fidelity::Hour.span();
        let mut stored = Ok(());
        if self.hour.time() != start {
            let new = Sum::new(start, Fidelity::Hour.span() as u32);
            let done = std::mem::replace(&mut self.hour, new);
            if !done.is_empty() {
                stored = self.folders[2].append(&done.finish()).map(drop);
            }
        }
        self.hour.add(frame);
        stored
    }

    /// Removes what is older than it is kept for, and the oldest seconds when there is too much.
    fn keep(&mut self, now: u64) {
        for (folder, keep) in self.folders.iter_mut().zip(self.retention.keep) {
            folder.prune(now.saturating_sub(keep));
        }
        while self.folders.iter().map(Folder::bytes).sum::<u64>() > self.retention.bytes {
            let Some(folder) = self.folders.iter_mut().find(|f| f.starts.len() > 1) else { return };
            if let Some(&start) = folder.starts.first() {
                folder.remove(start);
            }
        }
    }
}

#[cfg(test)]
mod tests;
