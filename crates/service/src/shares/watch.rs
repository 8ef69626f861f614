//! The directory at the path of each share, checked every second. A share with a missing or
//! exchanged directory is not served until the same directory is back: no data of clients is
//! written to an unintended place, such as the directory below a file system that is not mounted.
//!
//! A directory that was removed can be nowhere else. If one is made again at its path, on the same
//! file system, that one is served.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};

use base::limits::{SHARE_LOOK_EVERY, SHARE_LOOK_THREADS_MAX, SHARE_LOOK_TIME_MAX};
use control::tree::Problem;
use vfs::host::{DirectoryIdentity, is_shortage};

use super::lookers::{ProbePool, Task};
use super::{Root, Served, ShareConfig, Shares};

/// A share that lost its directory while it was served.
#[derive(Clone)]
pub(super) struct Lost {
    /// As it was served, without the attributes of its root: they were applied.
    config: ShareConfig,
    identity: DirectoryIdentity,
    /// The directory was removed, and not moved.
    removed: bool,
    problem: Problem,
}

impl Lost {
    fn is_as_before(&self, config: &ShareConfig) -> bool {
        self.config == plain(config)
    }

    fn may_be(&self, found: &DirectoryIdentity) -> bool {
        *found == self.identity || (self.removed && found.is_on_same_file_system(&self.identity))
    }
}

fn plain(config: &ShareConfig) -> ShareConfig {
    ShareConfig { root: Root::default(), ..config.clone() }
}

/// The problem of the path of a share with the lost directory `lost`.
fn problem(
    config: &ShareConfig,
    lost: &DirectoryIdentity,
    found: &io::Result<DirectoryIdentity>,
) -> Problem {
    let dir = config.directory.display();
    let sentence = match found {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            format!("the directory {dir} does not exist any more")
        }
        Err(e) => format!("{dir} cannot be opened any more: {e}"),
        Ok(found) if !found.is_on_same_file_system(lost) => {
            format!("{dir} is on a different file system than the directory that was served")
        }
        Ok(_) => format!("{dir} is not the directory that was served"),
    };
    let hint = "restore it, or change the share to serve the new directory";
    config.problem(Some("directory"), &sentence, hint)
}

/// That a share is not to be served any more, if its directory is not what it was.
fn loss(one: &Served, found: &io::Result<DirectoryIdentity>) -> Option<Lost> {
    let Served { config, files, .. } = one;
    let identity = files.directory_identity();
    if found.as_ref().is_ok_and(|found| *found == identity) {
        files.note_root();
        return None;
    }
    // A look without a result removes no share.
    if found.as_ref().is_err_and(is_shortage) {
        return None;
    }
    let (removed, problem) = (files.is_removed(), problem(config, &identity, found));
    Some(Lost { config: plain(config), identity, removed, problem })
}

/// What a look at a share's directory has found.
enum Look {
    /// It is the one that is served.
    Same,
    /// It is not: the share is lost.
    Gone(Box<(Served, Lost)>),
    /// What is at the path of a share that was lost.
    At(io::Result<DirectoryIdentity>),
}

impl Shares {
    /// Shares that are not served because their directory is not there, and why.
    pub fn lost(&self) -> Vec<(String, Problem)> {
        let lost = self.lost.lock();
        lost.iter().map(|(name, one)| (name.clone(), one.problem.clone())).collect()
    }

    /// What is served, and what would be if its directory was there.
    pub fn configured(&self) -> Vec<ShareConfig> {
        let served = self.configs().into_iter();
        served.chain(self.lost.lock().values().map(|one| one.config.clone())).collect()
    }

    /// Whether the directory of a share is looked at already.
    pub(super) fn awaits(&self, share: &ShareConfig) -> bool {
        let lost = self.lost.lock();
        lost.get(&share.name).is_some_and(|one| one.config.directory == share.directory)
    }

    /// Those of a list that stay lost: nothing was changed of them.
    pub(super) fn still_lost(&self, new: &[ShareConfig]) -> Vec<String> {
        let lost = self.lost.lock();
        let stays = |one: &&ShareConfig| lost.get(&one.name).is_some_and(|l| l.is_as_before(one));
        new.iter().filter(stays).map(|one| one.name.clone()).collect()
    }

    /// Looks at the directories of all shares. Waits for calls on shares that go; must not be
    /// called on a connection's thread.
    pub fn look(&self) {
        self.looked(self.looks().into_iter().map(|(name, look)| (name, look())).collect());
    }

    /// The looks at all shares. Each may wait for its file system without an end.
    fn looks(&self) -> Vec<(String, Task<Look>)> {
        let served: Vec<Served> = self.served.lock().values().cloned().collect();
        let lost = self.lost.lock().clone();
        let served = served.into_iter().map(|one| {
            let name = one.config.name.clone();
            let look = move || match loss(&one, &DirectoryIdentity::of(&one.config.directory)) {
                Some(lost) => Look::Gone(Box::new((one, lost))),
                None => Look::Same,
            };
            (name, Box::new(look) as Task<Look>)
        });
        let lost = lost.into_iter().map(|(name, one)| {
            let look = move || Look::At(DirectoryIdentity::of(&one.config.directory));
            (name, Box::new(look) as Task<Look>)
        });
        served.chain(lost).collect()
    }

    /// Acts on what was found.
    fn looked(&self, looks: Vec<(String, Look)>) {
        let (mut gone, mut found) = (Vec::new(), Vec::new());
        for (name, look) in looks {
            match look {
                Look::Same => {}
                Look::Gone(one) => gone.push(*one),
                Look::At(at) => found.push((name, at)),
            }
        }
        if gone.is_empty() && found.is_empty() {
            return;
        }
        let _one = self.changing.lock();
        self.remove_lost(gone);
        self.bring_back(found);
    }

    fn remove_lost(&self, gone: Vec<(Served, Lost)>) {
        let mut names = Vec::new();
        for (one, lost) in gone {
            let name = one.config.name;
            // The share may have been changed meanwhile.
            let same = self
                .served
                .lock()
                .get(&name)
                .is_some_and(|now| Arc::ptr_eq(&now.files, &one.files));
            if same {
                base::error!("shares", "{name} is offline: {}", lost.problem.sentence);
                let removed = lost.removed.then(|| lost.config.directory.clone());
                self.lost.lock().insert(name.clone(), lost);
                names.push((name, removed));
            }
        }
        if names.is_empty() {
            return;
        }
        let stays = |config: &ShareConfig| names.iter().all(|(name, _)| *name != config.name);
        let stays: Vec<ShareConfig> = self.configs().into_iter().filter(stays).collect();
        if let Err(problem) = self.exchange(&stays) {
            base::error!("shares", "{}", problem.sentence);
        }
        let again = names.into_iter().filter_map(|(name, dir)| Some((name, dir?)));
        self.bring_back(again.map(|(name, dir)| (name, DirectoryIdentity::of(&dir))).collect());
    }

    fn bring_back(&self, found: Vec<(String, io::Result<DirectoryIdentity>)>) {
        for (name, found) in found {
            let lost = self.lost.lock().get(&name).cloned();
            let Some(lost) = lost else { continue };
            let is_back = found.as_ref().is_ok_and(|found| lost.may_be(found));
            let done = match is_back {
                true => self.serve_again(&lost.config),
                false => Err(problem(&lost.config, &lost.identity, &found)),
            };
            let mut all = self.lost.lock();
            match done {
                Ok(()) => {
                    all.remove(&name);
                    base::info!("shares", "{name} is online again");
                }
                // It is tried again.
                Err(problem) => {
                    all.insert(name, Lost { problem, ..lost });
                }
            }
        }
    }

    fn serve_again(&self, config: &ShareConfig) -> Result<(), Problem> {
        self.exchange(&[self.configs().as_slice(), std::slice::from_ref(config)].concat())
    }
}

/// Has the directories of shares looked at until it is dropped.
pub struct Watch {
    _stop: Sender<()>,
}

impl Watch {
    /// Begins on its own threads, for which nothing waits in the end: a path may stand still. One
    /// that does holds up no other share ([`ProbePool`]).
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(shares: &Arc<Shares>) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let shares: Weak<Shares> = Arc::downgrade(shares);
        std::thread::Builder::new().name("shares".to_owned()).spawn(move || {
            let mut lookers = ProbePool::new(SHARE_LOOK_THREADS_MAX, SHARE_LOOK_TIME_MAX);
            while stopped.recv_timeout(SHARE_LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                let Some(shares) = shares.upgrade() else { return };
                shares.looked(lookers.round(shares.looks()));
            }
        })?;
        Ok(Self { _stop: stop })
    }
}

#[cfg(test)]
mod tests;
