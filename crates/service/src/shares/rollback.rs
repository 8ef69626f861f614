//! The exchange of a share's directory for another one, as by a rollback: its handles stay valid,
//! and the opens and locks of clients end.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use base::clock::{Clock, SystemClock};
use base::limits::{SHARE_DRAIN_MAX, SHARE_DRAIN_STEP};
use vfs::fs::FileSystem;
use vfs::host::{DirectoryIdentity, HostFs};
use vfs::share::{ShareTable, Suspended};

use super::{Root, Served, ShareConfig, Shares, enter_files};

/// How another state of the files gets to the directory of a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// Another subvolume takes its place, and the one before stays elsewhere: calls continue on
    /// that meanwhile.
    Subvolume,
    /// The file system goes back below its directory: calls are to be repeated meanwhile.
    InPlace,
}

/// How an exchange has ended.
#[derive(Debug)]
pub struct Exchanged {
    /// Whether the directory has other files now; also what has failed may have exchanged them.
    pub is_done: bool,
    /// One sentence; as an error of the work, or why the share cannot be served any more.
    pub result: Result<String, String>,
}

impl Exchanged {
    /// What has failed has exchanged nothing.
    fn of(result: Result<String, String>) -> Self {
        Self { is_done: result.is_ok(), result }
    }
}

impl Shares {
    /// Has `work` exchange the files in a directory of a pool, and serves what is there then as the
    /// share that has it. Calls in progress end on the files of before; later ones find those of
    /// now. Must not be called on a connection's thread.
    pub fn exchange_directory(
        &self,
        directory: &Path,
        exchange: Exchange,
        work: impl FnOnce() -> Result<String, String>,
    ) -> Exchanged {
        let _one = self.changing.lock();
        let is_it =
            |one: &&Served| one.config.snapshots.is_some() && one.config.directory == *directory;
        let before = self.served.lock().values().find(is_it).cloned();
        let name = before.as_ref().map(|one| one.config.name.clone()).unwrap_or_default();
        if let Err(why) = self.check_exchange(directory, &name) {
            return Exchanged::of(Err(why));
        }
        let Some(before) = before else { return Exchanged::of(work()) };
        match exchange {
            Exchange::Subvolume => self.exchange_subvolume(before, work),
            Exchange::InPlace => Exchanged::of(self.exchange_in_place(before, work)),
        }
    }

    /// Has another subvolume take the place of the one that is served, and serves that.
    fn exchange_subvolume(
        &self,
        before: Served,
        work: impl FnOnce() -> Result<String, String>,
    ) -> Exchanged {
        let served = before.files.directory_identity();
        let directory = before.config.directory.clone();
        let result = work();
        // A step after the exchange may have failed, or the answer was lost. What clients write to
        // the subvolume of before would be in a snapshot.
        let is_other = || DirectoryIdentity::of(&directory).is_ok_and(|now| now != served);
        if result.is_err() && !is_other() {
            return Exchanged::of(result);
        }
        // One that cannot be served is not what it was: the next look takes it away.
        let result = match (result, self.serve_subvolume(before)) {
            (Ok(done), Ok(())) => Ok(done),
            (Ok(done), Err(why)) => Err(format!("{done} The share cannot be served: {why}")),
            (Err(why), Ok(())) => {
                Err(format!("{why}; other files came to the share all the same, and are served"))
            }
            (Err(why), Err(then)) => {
                Err(format!("{why}; other files came to the share and cannot be served: {then}"))
            }
        };
        Exchanged { is_done: true, result }
    }

    /// Serves another subvolume at the path of a share.
    fn serve_subvolume(&self, before: Served) -> Result<(), String> {
        let config = ShareConfig { root: Root::default(), ..before.config.clone() };
        let now = Served { config: before.config.clone(), ..self.open_again(&config)? };
        self.enter_again(&now, now.files.clone())?;
        self.served.lock().insert(now.config.name.clone(), now.clone());
        self.leaving.lock().push(before.files);
        self.end_opens(&now);
        self.drain();
        Ok(())
    }

    /// Suspends a share while its file system goes back.
    fn exchange_in_place(
        &self,
        before: Served,
        work: impl FnOnce() -> Result<String, String>,
    ) -> Result<String, String> {
        self.enter_again(&before, Arc::new(Suspended::new(&*before.files)))?;
        wait_for_calls(&before.files);
        let done = work();
        let exchanges = before.exchanges + u64::from(done.is_ok());
        let now = Served { exchanges, ..before };
        now.files.renew();
        self.served.lock().insert(now.config.name.clone(), now.clone());
        let entered = self.enter_again(&now, now.files.clone());
        let done = done?;
        entered.map_err(|why| format!("{done} The share cannot be served: {why}"))?;
        self.end_opens(&now);
        Ok(done)
    }

    /// Has the table of shares serve one with these files, under the rules that it has.
    fn enter_again(&self, one: &Served, files: Arc<dyn FileSystem>) -> Result<(), String> {
        let mut table = ShareTable::clone(&self.table.load());
        if let Some(share) = table.remove(&one.config.name) {
            enter_files(&mut table, &one.config, (one, files), (share.id, share.rules.clone()))?;
        }
        drop(self.table.replace(table));
        if let Some(share) = self.table.load().by_name(&one.config.name) {
            super::set_rules(share, &one.config, &one.config);
        }
        Ok(())
    }

    /// Ends what clients of protocols with open state hold through a share.
    fn end_opens(&self, one: &Served) {
        let tag = vfs::share::tag_of(&one.files.root());
        if let (Some(release), Some(tag)) = (self.release.get(), tag) {
            release(tag);
        }
    }

    fn check_exchange(&self, directory: &Path, name: &str) -> Result<(), String> {
        let others = self.configured().into_iter();
        let inside = others.filter(|one| one.name != name && one.directory.starts_with(directory));
        let names: Vec<String> = inside.map(|one| one.name).collect();
        if !names.is_empty() {
            return Err(format!(
                "shares are inside the directory of the share: {}",
                names.join(", ")
            ));
        }
        let device = std::fs::metadata(directory).map(|meta| meta.dev());
        let device =
            device.map_err(|e| format!("{} cannot be opened: {e}", directory.display()))?;
        if self.kit.locks.exclusive().list().iter().any(|(on, _)| *on == device) {
            return Err("files of the share are LUNs: take them offline first".to_owned());
        }
        Ok(())
    }

    fn open_again(&self, config: &ShareConfig) -> Result<Served, String> {
        let (served, undo) = self.open(config).map_err(|problem| problem.sentence)?;
        undo.keep();
        Ok(served)
    }
}

/// Waits until no call uses the files any more, for a while: idle connections may hold them.
fn wait_for_calls(files: &Arc<HostFs>) {
    let until = SystemClock.monotonic_ns() + SHARE_DRAIN_MAX.as_nanos() as u64;
    // What is served has one, and the caller another.
    while Arc::strong_count(files) > 2 && SystemClock.monotonic_ns() < until {
        std::thread::sleep(SHARE_DRAIN_STEP);
    }
}
