//! The directory of a share: found good before it is served, made if that is wanted, and given the
//! owner and the mode that it is to have; taken back if the share does not come about after all.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use control::tree::Problem;

use super::{ShareConfig, Subvolumes};

/// What was done to a directory, undone when this goes unless it is kept.
#[derive(Default)]
pub struct Undo {
    made: Option<PathBuf>,
    /// A subvolume: the pools, the pool, and the share.
    subvolume: Option<(Arc<dyn Subvolumes>, String, String)>,
    /// The directory with its user, group and mode before.
    was: Option<(PathBuf, u32, u32, u32)>,
}

impl Undo {
    /// It stays.
    pub fn keep(mut self) {
        self.made = None;
        self.subvolume = None;
        self.was = None;
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        // What cannot be undone stays: the share was not created, which is reported.
        if let Some((pools, pool, share)) = &self.subvolume {
            pools.take_back(pool, share);
        } else if let Some(made) = &self.made {
            let _ = fs::remove_dir(made);
        } else if let Some((dir, uid, gid, mode)) = &self.was {
            let _ = chown(dir, Some(*uid), Some(*gid));
            let _ = fs::set_permissions(dir, fs::Permissions::from_mode(*mode));
        }
    }
}

/// Whether the directory of a share can be served. Changes nothing.
///
/// # Errors
/// Why not.
pub fn check(share: &ShareConfig, state: &Path) -> Result<(), Problem> {
    let dir = &share.directory;
    let shown = dir.display();
    let wrong = |sentence: String, hint| Err(share.problem(Some("directory"), &sentence, hint));
    if !dir.is_absolute() {
        return wrong(format!("{shown} is not an absolute path"), "use an absolute path");
    }
    let found = match dir.canonicalize() {
        Ok(found) => found,
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            return wrong(format!("{shown} cannot be opened: {e}"), "");
        }
        Err(_) if share.root.pool.is_some() => {
            let pool = share.root.pool.as_deref().unwrap_or_default();
            if dir.parent().is_some_and(Path::is_dir) {
                return Ok(());
            }
            let sentence = format!("the pool {pool} is not mounted");
            return Err(share.problem(Some("pool"), &sentence, "see storage pools show"));
        }
        Err(_) if !share.root.make => {
            let hint = "create it, choose another one, or set make_directory";
            return wrong(format!("the directory {shown} does not exist"), hint);
        }
        Err(_) => {
            match (dir.parent().and_then(|parent| parent.canonicalize().ok()), dir.file_name()) {
                (Some(parent), Some(name)) => parent.join(name),
                _ => {
                    let sentence = format!("the parent directory of {shown} does not exist");
                    return wrong(sentence, "create it first, or choose another one");
                }
            }
        }
    };
    // Keys must not be served; a state directory below the share is hidden, one around it cannot
    // be.
    if state.canonicalize().is_ok_and(|state| found.starts_with(state)) {
        return wrong(format!("{shown} is inside the state directory"), "choose another one");
    }
    match fs::metadata(&found) {
        // It is going to be made.
        Err(_) => Ok(()),
        Ok(meta) if !meta.is_dir() => {
            wrong(format!("{shown} is not a directory"), "choose a directory")
        }
        // Found out now, not by the first client.
        Ok(_) => fs::read_dir(&found).map(drop).or_else(|e| {
            wrong(format!("{shown} cannot be read: {e}"), "give the server read permission")
        }),
    }
}

/// Makes the directory and its root what they are to be.
///
/// # Errors
/// Why that cannot be; nothing has changed then.
pub fn prepare(share: &ShareConfig, pools: &Arc<dyn Subvolumes>) -> Result<Undo, Problem> {
    let (dir, root) = (&share.directory, &share.root);
    let mut undo = Undo::default();
    let failed = |property, what: &str, e: &io::Error| failed(share, property, what, e);
    if let Some(pool) = &root.pool {
        let made = pools.make(pool, &share.name);
        let made = made.map_err(|sentence| share.problem(Some("pool"), &sentence, ""))?;
        undo.subvolume = made.then(|| (pools.clone(), pool.clone(), share.name.clone()));
    } else if root.make && !dir.exists() {
        fs::create_dir(dir).map_err(|e| failed("directory", "made", &e))?;
        undo.made = Some(dir.clone());
    }
    let is_set = root.owner.is_some() || root.group.is_some() || root.mode.is_some();
    if is_set {
        set(share, &mut undo)?;
    }
    if is_set || undo.made.is_some() {
        flush(dir, undo.made.is_some()).map_err(|e| failed("directory", "written", &e))?;
    }
    Ok(undo)
}

/// Gives a root its owner, group and mode.
fn set(share: &ShareConfig, undo: &mut Undo) -> Result<(), Problem> {
    let (dir, root) = (&share.directory, &share.root);
    let failed = |property, what: &str, e: &io::Error| failed(share, property, what, e);
    let meta = fs::metadata(dir).map_err(|e| failed("directory", "opened", &e))?;
    undo.was = Some((dir.clone(), meta.uid(), meta.gid(), meta.mode()));
    if root.owner.is_some() || root.group.is_some() {
        chown(dir, root.owner, root.group).map_err(|e| failed("root_owner", "given away", &e))?;
    }
    if let Some(mode) = root.mode {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(dir, mode).map_err(|e| failed("root_mode", "given this mode", &e))?;
    }
    Ok(())
}

fn failed(share: &ShareConfig, property: &str, what: &str, e: &io::Error) -> Problem {
    let sentence = format!("{} cannot be {what}: {e}", share.directory.display());
    share.problem(Some(property), &sentence, "")
}

/// Has a directory on disk, with its name if that is new: the root of a share is set only when the
/// share is created, and never again after a power cut.
fn flush(dir: &Path, is_new: bool) -> io::Result<()> {
    let parent = dir.parent().filter(|_| is_new);
    [Some(dir), parent].into_iter().flatten().try_for_each(|one| fs::File::open(one)?.sync_all())
}
