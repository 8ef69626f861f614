//! A share whose directory is exchanged for another one, as by a rollback: its handles stay valid,
//! and what clients have open and locked ends.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use vfs::fs::FileSystem;
use vfs::share::ShareTable;

use super::{Root, Served, ShareConfig, Shares, enter};

impl Shares {
    /// Has `work` exchange a directory of a pool, and serves what is there then as the share that
    /// has it. Calls in progress end on the files of before; later ones find those of now. Must not
    /// be called on a connection's thread.
    ///
    /// # Errors
    /// One sentence: of `work`, or why the share cannot be served any more.
    pub fn exchange_directory(
        &self,
        directory: &Path,
        work: impl FnOnce() -> Result<String, String>,
    ) -> Result<String, String> {
        let _one = self.changing.lock();
        let is_it =
            |one: &&Served| one.config.snapshots.is_some() && one.config.directory == *directory;
        let before = self.served.lock().values().find(is_it).cloned();
        let name = before.as_ref().map(|one| one.config.name.clone()).unwrap_or_default();
        self.check_exchange(directory, &name)?;
        let done = work()?;
        let Some(before) = before else { return Ok(done) };
        let config = ShareConfig { root: Root::default(), ..before.config.clone() };
        let opened = self.open_again(&config).map_err(|why| {
            // Its directory is not what it was: the next look takes it away.
            format!("{done} The share cannot be served: {why}")
        })?;
        let now = Served { config: before.config.clone(), ..opened };
        let mut table = ShareTable::clone(&self.table.load());
        if let Some(share) = table.remove(&name) {
            enter(&mut table, &now.config, &now, (share.id, share.rules.clone()))?;
        }
        drop(self.table.replace(table));
        if let Some(share) = self.table.load().by_name(&name) {
            super::set_rules(share, &now.config, &now.config);
        }
        let tag = vfs::share::tag_of(&now.files.root());
        self.served.lock().insert(name, now);
        self.leaving.lock().push(before.files);
        if let (Some(release), Some(tag)) = (self.release.get(), tag) {
            release(tag);
        }
        self.drain();
        Ok(done)
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
