//! A logical unit: its medium, the state that its initiators share, and the unit attention
//! conditions that are pending for each I_T nexus (SAM-5 §5.14).

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use base::limits::{ISCSI_ATTENTIONS_MAX, LUN_UNSETTLED_MAX};
use base::peer::network;
use base::refusals::Limit;
use vfs::flush::FlushSite;
use vfs::fs::Flush;
use vfs::lun::reservations::store::Store;
use vfs::lun::reservations::{Origin, Port, Reservations};
use vfs::lun::{self, Medium, RangeLock, Written};
use wire::scsi::Asc;

use super::scsi::copies::Copies;
use super::state::tasks::{Mark, Verdict};
use super::threads::UnitThreads;

/// The identity of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its name for people.
    pub name: String,
    /// NAA identifier, type 6: stays over restart, rename and move.
    pub guid: [u8; 16],
    /// Bytes of a block: 512 or 4096.
    pub block: u32,
}

/// What can be set of a unit while it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitSettings {
    /// Whether writes may stay in the page cache until they are flushed.
    pub write_cache: bool,
    /// Whether initiators may only read.
    pub read_only: bool,
}

/// A logical unit.
pub struct Unit {
    /// Its designators.
    pub identity: Identity,
    /// Its storage.
    pub medium: Arc<dyn Medium>,
    /// Bytes that commands work on.
    pub ranges: RangeLock,
    /// Where commands run that may block.
    pub threads: UnitThreads,
    /// Copies that it has made for initiators.
    pub copies: Copies,
    /// Its number in statistics ([`probe::names::Shares`]).
    pub statistic: AtomicU16,
    settings: RwLock<UnitSettings>,
    /// SWP and D_SENSE of the control mode page and WCE of the caching one, as initiators set them.
    pub(super) mode: Mode,
    reservations: RwLock<Reservations>,
    /// Whether there is a reservation of either kind; without one no command checks further.
    is_reserved: AtomicBool,
    /// Held while a persistent reservation changes, which may wait for a disk.
    changing: Mutex<()>,
    store: Option<Arc<Store>>,
    /// The holder of RESERVE(6).
    simple: Mutex<Option<Port>>,
    nexuses: Mutex<Vec<Arc<Nexus>>>,
    /// Writes of sessions that ended before a flush reported their outcome, by port; the oldest
    /// first.
    unsettled: Mutex<VecDeque<Unsettled>>,
    tasks: Mutex<HashMap<u64, Arc<Mark>>>,
    next_task: AtomicU64,
}

/// Bits of mode pages that initiators can change.
#[derive(Debug)]
pub(super) struct Mode {
    pub write_protect: AtomicBool,
    pub descriptor_sense: AtomicBool,
    pub write_cache: AtomicBool,
}

/// An I_T nexus with a unit: what one session has to do with it.
#[derive(Debug)]
pub struct Nexus {
    /// The initiator port.
    pub port: Port,
    /// The address, or /64, of the initiator.
    address: IpAddr,
    /// Whether a unit attention condition is pending.
    has_attention: AtomicBool,
    /// Flushes of its commands that were completed before (IMMED).
    pub(super) flushes: Arc<AtomicUsize>,
    inner: Mutex<NexusInner>,
}

#[derive(Debug, Default)]
struct NexusInner {
    attentions: VecDeque<Asc>,
    /// Writes with an outcome that no flush has reported to the initiator yet.
    written: Written,
}

/// Writes of an initiator port without a session, with an outcome that no flush has reported.
#[derive(Debug)]
struct Unsettled {
    port: Port,
    address: IpAddr,
    written: Written,
}

/// Removes one entry: of the address with most of them and its initiator with most, the oldest.
fn remove_of_most(unsettled: &mut VecDeque<Unsettled>) {
    let (mut addresses, mut initiators) = (HashMap::new(), HashMap::new());
    for Unsettled { port, address, .. } in unsettled.iter() {
        *addresses.entry(*address).or_insert(0_usize) += 1;
        *initiators.entry((*address, port.name.clone())).or_insert(0_usize) += 1;
    }
    let counts = unsettled.iter().map(|Unsettled { port, address, .. }| {
        (addresses.get(address), initiators.get(&(*address, port.name.clone())))
    });
    // Of several with most the oldest.
    let most = counts.enumerate().max_by_key(|(at, counts)| (*counts, Reverse(*at)));
    if let Some((at, _)) = most {
        unsettled.remove(at);
    }
}

/// Nothing under these locks panics half way through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Nexus {
    /// It requests an action on reservations.
    pub fn origin(&self) -> Origin<'_> {
        Origin { port: &self.port, address: self.address }
    }

    /// Establishes a unit attention condition after those that are pending. A condition that is
    /// pending is not repeated; too many become one of a reset, which covers any change.
    pub fn establish(&self, what: Asc) {
        let mut inner = lock(&self.inner);
        if inner.attentions.contains(&what) {
            return;
        }
        if inner.attentions.len() >= ISCSI_ATTENTIONS_MAX {
            inner.attentions.clear();
            inner.attentions.push_back(Asc::POWER_ON_OR_RESET);
        } else {
            inner.attentions.push_back(what);
        }
        self.has_attention.store(true, Ordering::Release);
    }

    /// The unit attention condition to report next.
    pub fn take_unit_attention(&self) -> Option<Asc> {
        if !self.has_attention.load(Ordering::Acquire) {
            return None;
        }
        let mut inner = lock(&self.inner);
        let what = inner.attentions.pop_front();
        self.has_attention.store(!inner.attentions.is_empty(), Ordering::Release);
        what
    }

    /// Forgets one kind of attention: REPORT LUNS clears that of the list of units.
    pub fn clear_attention(&self, what: Asc) {
        let mut inner = lock(&self.inner);
        inner.attentions.retain(|one| *one != what);
        self.has_attention.store(!inner.attentions.is_empty(), Ordering::Release);
    }

    /// It has written this.
    pub fn wrote(&self, written: Written) {
        lock(&self.inner).written.join(written);
    }

    /// Writes with an outcome that has not been reported to it.
    pub fn written(&self) -> Written {
        lock(&self.inner).written
    }

    /// It knows the fate of this much, good or bad.
    pub fn settle(&self, asked: Written) {
        lock(&self.inner).written.settle(asked);
    }
}

impl Unit {
    /// A unit over this medium. With a store, reservations outlive a loss of power, and those kept
    /// there hold again.
    pub fn new(
        identity: Identity,
        medium: Arc<dyn Medium>,
        settings: UnitSettings,
        store: Option<Arc<Store>>,
    ) -> Arc<Self> {
        let kept = store.as_ref().map(|store| store.load(&identity.guid)).unwrap_or_default();
        let mode = Mode {
            write_protect: AtomicBool::new(false),
            descriptor_sense: AtomicBool::new(false),
            write_cache: AtomicBool::new(settings.write_cache),
        };
        Arc::new(Self {
            identity,
            medium,
            ranges: RangeLock::default(),
            threads: UnitThreads::default(),
            copies: Copies::default(),
            statistic: AtomicU16::new(probe::names::NO_SHARE),
            settings: RwLock::new(settings),
            mode,
            is_reserved: AtomicBool::new(kept.holding().is_some()),
            reservations: RwLock::new(kept),
            changing: Mutex::default(),
            store,
            simple: Mutex::default(),
            nexuses: Mutex::default(),
            unsettled: Mutex::default(),
            tasks: Mutex::default(),
            next_task: AtomicU64::new(0),
        })
    }

    /// Whole blocks.
    pub fn blocks(&self) -> u64 {
        self.medium.size() / u64::from(self.identity.block)
    }

    /// What is set.
    pub fn settings(&self) -> UnitSettings {
        *self.settings.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets it; MODE PARAMETERS CHANGED is established for all sessions. If that switches the write
    /// cache off, what is in it is on disk when this returns, so it may block: an initiator flushes
    /// no more once it knows (SBC-4 §4.15.4).
    ///
    /// # Errors
    /// What is in the cache cannot be brought to disk; then nothing has changed.
    pub fn set(&self, settings: UnitSettings) -> vfs::fs::Result<()> {
        let place = || self.settings.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *place(), settings);
        let had_cache = self.mode.write_cache.swap(settings.write_cache, Ordering::AcqRel);
        let flushed = self.flush_cache(had_cache).wait();
        if flushed.is_err() {
            *place() = before;
            self.mode.write_cache.store(had_cache, Ordering::Release);
            return flushed;
        }
        self.establish_all(Asc::MODE_PARAMETERS_CHANGED, None);
        Ok(())
    }

    /// What brings to disk what was acknowledged while there was a write cache, if there is none
    /// any more. A write in progress notices that after it.
    fn flush_cache(&self, had_cache: bool) -> Flush {
        match had_cache && !self.write_cache() {
            true => self.flush(FlushSite::LunSync, Written::NONE),
            false => Flush::NONE,
        }
    }

    /// Whether writes may stay in the cache.
    pub fn write_cache(&self) -> bool {
        self.mode.write_cache.load(Ordering::Acquire)
    }

    /// Whether writes are refused.
    pub fn is_write_protected(&self) -> bool {
        self.mode.write_protect.load(Ordering::Acquire)
            || self.settings().read_only
            || self.medium.is_read_only()
    }

    /// A session from this address begins to use it. The initiator learns that it cannot count on
    /// anything from before; it learns as well whether writes from then are lost.
    pub fn join(&self, port: Port, from: IpAddr) -> Arc<Nexus> {
        let mut unsettled = lock(&self.unsettled);
        let at = unsettled.iter().position(|left| left.port == port);
        let left = at.and_then(|at| unsettled.remove(at)).map(|left| left.written);
        drop(unsettled);
        let inner = NexusInner { written: left.unwrap_or_default(), ..NexusInner::default() };
        let nexus = Arc::new(Nexus {
            port,
            address: network(from),
            has_attention: AtomicBool::new(false),
            flushes: Arc::default(),
            inner: Mutex::new(inner),
        });
        nexus.establish(Asc::POWER_ON_OR_RESET);
        self.change_nexuses(|all| all.push(Arc::clone(&nexus)));
        nexus
    }

    fn change_nexuses(&self, change: impl FnOnce(&mut Vec<Arc<Nexus>>)) {
        let mut nexuses = lock(&self.nexuses);
        change(&mut nexuses);
        let first = nexuses.first().map(|one| &one.port.name);
        let is_shared = nexuses.iter().any(|one| Some(&one.port.name) != first);
        self.threads.set_shared(is_shared);
    }

    /// A session ends: what RESERVE(6) gave it ends with it (SPC-2 §5.5.1).
    pub fn leave(&self, nexus: &Arc<Nexus>) {
        self.change_nexuses(|all| all.retain(|one| !Arc::ptr_eq(one, nexus)));
        self.keep_unsettled(nexus);
        let mut simple = lock(&self.simple);
        if simple.as_ref() == Some(&nexus.port) {
            *simple = None;
            drop(simple);
            self.look_reserved();
        }
    }

    /// Keeps what a session had written for the next one of its initiator port, which believes that
    /// a flush of its own covers that.
    fn keep_unsettled(&self, nexus: &Nexus) {
        let mut written = nexus.written();
        if written.is_empty() {
            return;
        }
        let mut unsettled = lock(&self.unsettled);
        if let Some(at) = unsettled.iter().position(|left| left.port == nexus.port)
            && let Some(before) = unsettled.remove(at)
        {
            written.join(before.written);
        }
        if unsettled.len() >= LUN_UNSETTLED_MAX {
            remove_of_most(&mut unsettled);
            Limit::Unsettled.count();
        }
        let (port, address) = (nexus.port.clone(), nexus.address);
        unsettled.push_back(Unsettled { port, address, written });
    }

    /// Sessions that use it.
    pub fn sessions(&self) -> usize {
        lock(&self.nexuses).len()
    }

    /// Establishes a unit attention condition for all I_T nexuses but one.
    pub fn establish_all(&self, what: Asc, but: Option<&Nexus>) {
        for nexus in lock(&self.nexuses).iter() {
            if !but.is_some_and(|one| std::ptr::eq(one, nexus.as_ref())) {
                nexus.establish(what);
            }
        }
    }

    /// Establishes a unit attention condition for one initiator port, if it has a session.
    pub fn establish(&self, port: &Port, what: Asc) {
        lock(&self.nexuses).iter().filter(|nexus| nexus.port == *port).for_each(|nexus| {
            nexus.establish(what);
        });
    }

    // --- reservations -----------------------------------------------------------------------

    /// The persistent reservations.
    pub fn reservations(&self) -> Reservations {
        self.reservations.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks about the persistent reservations.
    pub(super) fn with_reservations<T>(&self, ask: impl FnOnce(&Reservations) -> T) -> T {
        ask(&self.reservations.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the persistent reservations, one change at a time. With APTPL the change is on disk
    /// before it holds; so this may block.
    ///
    /// # Errors
    /// Those of `change`; `unkept` if the change cannot be kept.
    pub(super) fn change_reservations<T, E>(
        &self,
        unkept: E,
        change: impl FnOnce(&Reservations) -> Result<(Reservations, T), E>,
    ) -> Result<T, E> {
        let _one = lock(&self.changing);
        let before = self.reservations();
        let (after, value) = change(&before)?;
        if let Some(store) = &self.store
            && (before.persists() || after.persists())
            && before != after
            && store.save(&self.identity.guid, &after).is_err()
        {
            return Err(unkept);
        }
        *self.reservations.write().unwrap_or_else(PoisonError::into_inner) = after;
        self.look_reserved();
        Ok(value)
    }

    /// Ends all reservations and registrations, of both kinds, on request of an administrator;
    /// registered initiators get a unit attention condition. It may block.
    ///
    /// # Errors
    /// It cannot be kept, and nothing has changed.
    pub fn clear_reservations(&self) -> vfs::fs::Result<()> {
        let before = self.reservations();
        self.change_reservations(vfs::status::Status::Io, |_| Ok((Reservations::default(), ())))?;
        self.release_simple(None);
        for (port, _) in before.registrations() {
            self.establish(port, Asc::RESERVATIONS_PREEMPTED);
        }
        Ok(())
    }

    /// Initiator ports of the sessions that use it.
    pub fn users(&self) -> Vec<Port> {
        lock(&self.nexuses).iter().map(|nexus| nexus.port.clone()).collect()
    }

    /// Whether reservations can outlive a loss of power here.
    pub fn can_persist(&self) -> bool {
        self.store.is_some()
    }

    /// Whether there is a reservation that may conflict with a command.
    pub(super) fn is_reserved(&self) -> bool {
        self.is_reserved.load(Ordering::Acquire)
    }

    fn look_reserved(&self) {
        // Held until it is stored: of two concurrent calls the later one has seen both changes.
        let simple = lock(&self.simple);
        let persistent = self.with_reservations(|all| all.holding().is_some());
        self.is_reserved.store(simple.is_some() || persistent, Ordering::Release);
    }

    /// The holder of RESERVE(6).
    pub fn simple_holder(&self) -> Option<Port> {
        lock(&self.simple).clone()
    }

    /// RESERVE(6): false if another initiator port holds it.
    pub(super) fn reserve_simple(&self, port: &Port) -> bool {
        let mut simple = lock(&self.simple);
        let free = simple.as_ref().is_none_or(|holder| holder == port);
        if free {
            *simple = Some(port.clone());
        }
        drop(simple);
        self.look_reserved();
        free
    }

    /// RELEASE(6), by its holder or, with `None`, by a reset.
    pub(super) fn release_simple(&self, port: Option<&Port>) {
        let mut simple = lock(&self.simple);
        if port.is_none() || simple.as_ref() == port {
            *simple = None;
        }
        drop(simple);
        self.look_reserved();
    }

    // --- tasks ------------------------------------------------------------------------------

    /// A task of a nexus that does not end at once.
    pub(super) fn enter(&self, mark: &Arc<Mark>) -> u64 {
        let number = self.next_task.fetch_add(1, Ordering::Relaxed);
        lock(&self.tasks).insert(number, Arc::clone(mark));
        number
    }

    /// The task with this number has ended.
    pub(super) fn ended(&self, number: u64) {
        lock(&self.tasks).remove(&number);
    }

    /// Passes a verdict on the tasks that are meant, and gives those that run still.
    pub(super) fn abort(
        &self,
        verdict: Verdict,
        is_meant: impl Fn(&Mark) -> bool,
    ) -> Vec<Arc<Mark>> {
        let tasks = lock(&self.tasks);
        let meant = tasks.values().filter(|mark| is_meant(mark));
        meant.filter(|mark| !mark.judge(verdict)).cloned().collect()
    }

    /// A reset by an initiator, or of all units of the target: what modes and RESERVE(6) had set is
    /// as at the start, with a unit attention condition for all. Tasks are the caller's, and what
    /// must be on disk before the initiator gets its answer: what was in the write cache, if that
    /// was on only until now.
    pub(super) fn reset(&self) -> Flush {
        self.release_simple(None);
        self.mode.write_protect.store(false, Ordering::Release);
        self.mode.descriptor_sense.store(false, Ordering::Release);
        let initial = self.settings().write_cache;
        let had_cache = self.mode.write_cache.swap(initial, Ordering::AcqRel);
        self.establish_all(Asc::DEVICE_RESET, None);
        self.flush_cache(had_cache)
    }

    // --- size and disk ----------------------------------------------------------------------

    /// What brings this to disk.
    pub(super) fn flush(&self, site: FlushSite, written: Written) -> Flush {
        lun::flush(&self.medium, site, written)
    }

    /// Sets its size in bytes. On disk when it returns, so it may block; initiators get CAPACITY
    /// DATA HAS CHANGED.
    ///
    /// # Errors
    /// The error of the medium.
    pub fn resize(&self, bytes: u64) -> vfs::fs::Result<()> {
        let (done, written) = self.medium.ledger().noted(|| self.medium.resize(bytes));
        done?;
        self.flush(FlushSite::LunResize, written).wait()?;
        self.establish_all(Asc::CAPACITY_CHANGED, None);
        Ok(())
    }
}

impl std::fmt::Debug for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unit").field("identity", &self.identity).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
