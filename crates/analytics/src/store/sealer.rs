//! Packs finished segments on a thread of its own: compressing an hour takes longer than the
//! collector may be late.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::segment::SegmentError;
use super::{StoreError, failed, is_foreign, packing};

/// Where what cannot be read is put: nothing of it is lost.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".bad");
    while Path::new(&name).exists() {
        name.push("1");
    }
    name.into()
}

/// What packs the segments of one folder.
#[derive(Default)]
pub(super) struct Sealer {
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<StoreError>>>,
}

impl Sealer {
    /// Packs live segments into sealed ones, `pack` frames to a block. While it is still busy it
    /// does nothing: the remaining live segments are readable, and are packed with the next one;
    /// so is one that the system refuses to pack.
    pub(super) fn seal(&mut self, jobs: Vec<[PathBuf; 2]>, pack: usize) {
        if jobs.is_empty() || self.thread.as_ref().is_some_and(|t| !t.is_finished()) {
            return;
        }
        let failure = self.failure.clone();
        let run = move || {
            for [live, sealed] in jobs {
                if let Err(error) = packing::seal(&live, &sealed, pack) {
                    if !live.exists() {
                        // Retention has removed it meanwhile: what was packed goes, too.
                        drop(std::fs::remove_file(&sealed));
                        continue;
                    }
                    // A damaged one stays as it is; moved aside, it is not tried for ever. One
                    // that the system refused to pack, as on a full disk, is readable meanwhile.
                    if is_foreign(&error) {
                        drop(std::fs::rename(&live, aside(&live)));
                    }
                    let error = failed(&live)(error);
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
            // Names, sums and rows of the hour went all at once.
            base::memory::give_back();
        };
        // Without a thread it stays live until the next time.
        self.thread = std::thread::Builder::new().name("sealer".into()).spawn(run).ok();
    }

    /// Renames a segment that cannot be read, so that another can take its place.
    pub(super) fn set_aside(&self, path: &Path, error: SegmentError) {
        // If the rename fails, the next operation fails and reports it.
        drop(std::fs::rename(path, aside(path)));
        let error = failed(path)(error);
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// Why the last packing failed, or what was set aside; once.
    pub(super) fn failure(&self) -> Option<StoreError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The packing in progress.
    pub(super) fn take(&mut self) -> Option<JoinHandle<()>> {
        self.thread.take()
    }

    /// Waits for the end of a packing.
    pub(super) fn join(thread: Option<JoinHandle<()>>) {
        // A panic in it has left the segment live, where it is readable.
        drop(thread.map(JoinHandle::join));
    }
}

impl Drop for Sealer {
    fn drop(&mut self) {
        Self::join(self.take());
    }
}
