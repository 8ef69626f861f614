//! Changes other than to the data of files.

use std::sync::Arc;

use vfs::attr::SetAttr;
use vfs::fs::{Change, Changed, Context, Entry, FileSystem, Result, Space};
use vfs::locks::ByOwners;
use vfs::status::Status;

use super::caller::{Caller, Reached};
use super::core::Core;
use super::node::{Node, Spot};
use super::serial::{Condition, always, rename_if};

/// The outcome of a change without its value.
pub(super) fn plain<T>(change: Change<T>) -> Change<()> {
    change.map(|Changed { wcc, flush, .. }| Changed { value: (), wcc, flush })
}

impl Core {
    /// Runs a change of a share's files, if it may be changed.
    ///
    /// # Errors
    /// [`Status::ReadOnly`]; as for [`Files::still_reach`](super::Files::still_reach) and
    /// [`Core::change`].
    pub async fn alter<T: Send + 'static>(
        &self,
        who: &Caller,
        reached: &Reached,
        op: impl Fn(&dyn FileSystem, Context<'_>) -> Change<T> + Send + Sync + 'static,
    ) -> Result<T> {
        reached.for_change()?;
        self.files.still_reach(who, reached, true)?;
        let (fs, lent) = (Arc::clone(&reached.share.fs), who.lent.clone());
        let op = move |cx: Context<'_>| {
            // Locks of which the caller has submitted the tokens do not conflict with its change.
            let _acting = ByOwners::acting(&lent);
            op(&*fs, cx)
        };
        self.change(who, &reached.cred, op).await
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// As of MKDIR.
    pub async fn make_dir(&self, who: &Caller, spot: &Spot, set: SetAttr) -> Result<Node> {
        let (dir, name) = (spot.dir, spot.name.clone());
        let op = move |fs: &dyn FileSystem, cx: Context<'_>| fs.mkdir(cx, &dir, &name, &set);
        let Entry { handle, attr } = self.alter(who, &spot.reached, op).await?;
        Ok(Node { reached: spot.reached.clone(), handle, attr })
    }

    /// Removes what is no directory.
    ///
    /// # Errors
    /// As of REMOVE.
    pub async fn remove(&self, who: &Caller, spot: &Spot) -> Result<()> {
        let (dir, name) = (spot.dir, spot.name.clone());
        let op = move |fs: &dyn FileSystem, cx: Context<'_>| fs.remove(cx, &dir, &name);
        self.alter(who, &spot.reached, op).await
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// As of RMDIR.
    pub async fn remove_dir(&self, who: &Caller, spot: &Spot) -> Result<()> {
        let (dir, name) = (spot.dir, spot.name.clone());
        let op = move |fs: &dyn FileSystem, cx: Context<'_>| fs.rmdir(cx, &dir, &name);
        self.alter(who, &spot.reached, op).await
    }

    /// Renames within a share; what is at the new name is replaced.
    ///
    /// # Errors
    /// As of RENAME; [`Status::CrossDevice`] between shares.
    pub async fn rename(&self, who: &Caller, from: &Spot, to: &Spot) -> Result<()> {
        self.rename_if(who, (from, to), &always()).await.map(|_| ())
    }

    /// As [`Core::rename`], if a condition holds right before; whether it did.
    ///
    /// # Errors
    /// The same.
    pub async fn rename_if(
        &self,
        who: &Caller,
        (from, to): (&Spot, &Spot),
        condition: &Condition,
    ) -> Result<bool> {
        if from.reached.share.id != to.reached.share.id {
            return Err(Status::CrossDevice);
        }
        let (from_dir, from_name) = (from.dir, from.name.clone());
        let (to_dir, to_name) = (to.dir, to.name.clone());
        let holds = Arc::clone(condition);
        let op = move |fs: &dyn FileSystem, cx: Context<'_>| {
            rename_if(fs, cx, (&from_dir, &from_name), (&to_dir, &to_name), &*holds)
        };
        self.alter(who, &from.reached, op).await
    }

    /// Adds a name to a file.
    ///
    /// # Errors
    /// As of LINK; [`Status::CrossDevice`] between shares.
    pub async fn link(&self, who: &Caller, node: &Node, to: &Spot) -> Result<()> {
        if node.reached.share.id != to.reached.share.id {
            return Err(Status::CrossDevice);
        }
        let (file, dir, name) = (node.handle, to.dir, to.name.clone());
        let op = move |fs: &dyn FileSystem, cx: Context<'_>| plain(fs.link(cx, &file, &dir, &name));
        self.alter(who, &to.reached, op).await
    }

    /// Makes a symbolic link. Its target may be anything; whether it is followed is asked then.
    ///
    /// # Errors
    /// As of SYMLINK.
    pub async fn symlink(&self, who: &Caller, spot: &Spot, target: &[u8]) -> Result<()> {
        let (dir, name, target) = (spot.dir, spot.name.clone(), target.to_vec());
        let op = move |fs: &dyn FileSystem, cx: Context<'_>| {
            plain(fs.symlink(cx, &dir, &name, &target, &SetAttr::default()))
        };
        self.alter(who, &spot.reached, op).await
    }

    /// The target of a symbolic link, as stored.
    ///
    /// # Errors
    /// As of READLINK.
    pub async fn read_link(&self, who: &Caller, node: &Node) -> Result<Vec<u8>> {
        let (fs, link) = (Arc::clone(&node.reached.share.fs), node.handle);
        let look = move |cx: Context<'_>| fs.readlink(cx, &link).map(|(target, _)| target);
        self.look(who, &node.reached.cred, look).await
    }

    /// Changes attributes.
    ///
    /// # Errors
    /// As of SETATTR.
    pub async fn set_attr(&self, who: &Caller, node: &Node, set: SetAttr) -> Result<()> {
        let file = node.handle;
        let op = move |fs: &dyn FileSystem, cx: Context<'_>| fs.setattr(cx, &file, &set, None);
        self.alter(who, &node.reached, op).await
    }

    /// Space left on a share.
    ///
    /// # Errors
    /// As of FSSTAT.
    pub async fn space(&self, who: &Caller, reached: &Reached) -> Result<Space> {
        self.files.still_reach(who, reached, false)?;
        let fs = Arc::clone(&reached.share.fs);
        self.look(who, &reached.cred, move |cx| fs.space(cx)).await
    }
}
