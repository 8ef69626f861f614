//! The end of opens that wait for their client: a break, their time, their user, their share or the
//! service; and of those that come to nothing. What is to be removed with them is removed by a task
//! of core 0, which looks once a second for what has waited too long, and for changes of which
//! clients are to be notified.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::clock::monotonic_ns;
use base::limits::{SMB_SWEEP, SMB_SWEEP_PIECE};
use tokio::time::MissedTickBehavior;
use vfs::locks::{FileKey, LinkId, Location, Owner};

use super::close;
use super::server::Server;
use super::state::leases::EndsParked;
use super::state::open_files::CountsOpens;
use super::state::opens::ParkedOpen;
use super::state::removals::PendingRemoval;
use engine::transport::tasks::Ending;
use files::{Core, Files};

impl EndsParked for Server {
    fn break_parked(&self, lease: &Owner) {
        // A persistent handle keeps what it denies to others; its lease ends in time.
        let ends = |open: &ParkedOpen| !open.file.is_persistent();
        self.end_parked(self.parked.take_lease(lease, ends));
    }
}

impl CountsOpens for Server {
    fn opened(&self, key: FileKey) {
        self.open_files.open(key);
    }

    fn abandoned(&self, key: FileKey, removed: Option<(LinkId, Location)>) {
        let removal = self.open_files.close(key, removed.as_ref().map(|(link, _)| *link));
        if let Some((removal, (_, place))) = removal.zip(removed) {
            self.removals.push(PendingRemoval { removal: (removal, place), _open: None });
        }
    }
}

impl Server {
    fn end_parked(&self, opens: Vec<ParkedOpen>) {
        for open in opens {
            if let Some(removal) = close::release_file(&self.open_files, &open.who, &open.file) {
                self.removals.push(PendingRemoval { removal, _open: Some(open) });
            }
        }
    }

    /// Ends what waits with this number.
    pub(super) fn end_parked_one(&self, id: u64) {
        self.end_parked(self.parked.take_any(id).into_iter().collect());
    }

    /// Ends what waits of a session, or of a user.
    pub fn end_parked_of(&self, session: Option<u64>, user: Option<&str>) -> usize {
        let goes = |open: &ParkedOpen| {
            session == Some(open.session) || user == Some(open.who.person.name.as_str())
        };
        let opens = self.parked.take_if(goes);
        let restored = self.restored.take_if(|one| user == Some(one.record.user.as_str()));
        let count = opens.len() + restored.len();
        self.end_parked(opens);
        count
    }

    /// Ends what has waited too long since the start, and what is of a user that is none any more.
    pub fn sweep_restored(&self, files: &Files) {
        drop(self.restored.take_late(monotonic_ns()));
        let now = files.identity.generation();
        if self.users_seen.swap(now, Ordering::Relaxed) != now {
            // Users are asked without a lock.
            let all = self.restored.after(None, usize::MAX, |one| Arc::clone(&one.record));
            for (number, record) in all {
                if files.identity.person(&record.user).is_none() {
                    drop(self.restored.take_any(number));
                }
            }
        }
    }

    /// Ends what has waited too long, what is of a user that is none any more, or of a share that
    /// grants nothing. Users and shares are asked without a lock, some opens at a time: requests
    /// of this core are carried out in between.
    async fn sweep(&self, files: &Files) {
        self.end_parked(self.parked.take_late(monotonic_ns()));
        self.sweep_restored(files);
        let facts = |open: &ParkedOpen| (Arc::clone(&open.who), open.file.node.reached.clone());
        let mut last = None;
        loop {
            let some = self.parked.after(last, SMB_SWEEP_PIECE, facts);
            let Some((number, _)) = some.last() else { return };
            last = Some(*number);
            for (id, (who, reached)) in &some {
                if files.still_reach(who, reached, false).is_err() {
                    self.end_parked_one(*id);
                }
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Sweeps until the service ends; nothing waits then.
pub(super) async fn run(server: Arc<Server>, core: Rc<Core>, mut ending: Ending) {
    server.note_ending(&ending);
    let mut tick = tokio::time::interval(SMB_SWEEP);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let has_ended = tokio::select! {
            _ = tick.tick() => {
                core.files.locks.notices().sweep();
                server.sweep(&core.files).await;
                false
            }
            () = server.removals.has_come.notified() => false,
            _ = ending.wait_for(|end| *end) => true,
        };
        if has_ended {
            server.end_parked(server.parked.set_open(false));
            drop(server.restored.set_open(false));
        }
        for leaving in server.removals.take() {
            let PendingRemoval { removal, _open } = leaving;
            // A failure is not reported: its name is there still.
            let _ = close::remove(&core, removal, Arc::clone(&server.folds)).await;
        }
        if has_ended {
            return;
        }
    }
}
