//! iSCSI (RFC 7143) as a target: logical units over media of [`vfs::lun`], for initiators such as
//! open-iscsi, ESXi, Windows and QEMU. Error recovery level 0, one connection a session.
//!
//! - [`serving`]: takes connections, gives each to its core. [`conn`]: one connection, the only
//!   part that does I/O, with `conn/stream.rs`. [`login`]: how it begins; [`ended`]: how it ends.
//! - [`core`]: what the connections of one core share.
//! - `session`: what came, and what is answered; `dispatch`, `data_in`, `data_out`, `text`, `tmf`,
//!   `nop`: by PDU; `admission`: memory of commands. [`state`]: what is pure of it.
//! - [`scsi`]: commands. [`unit`]: what they are carried out on. `operation`: those
//!   that leave the connection's thread; [`threads`]: where these run.
//! - [`targets`]: which units an initiator sees, and how it signs in. `status`: errors.
//!   [`settings`] and [`node`]: what can be set and seen. [`ops`]: commands in statistics.

// Failures of the file contract carry attributes by value: to box them would cost an allocation for
// each failed operation.
#![allow(clippy::result_large_err)]

mod admission;
pub mod conn;
pub mod core;
mod data_in;
mod data_out;
mod dispatch;
pub mod ended;
mod exchange;
pub mod login;
pub mod node;
mod nop;
mod operation;
pub mod ops;
pub mod scsi;
pub mod serving;
mod session;
pub mod settings;
pub mod state;
mod status;
pub mod targets;
mod text;
pub mod threads;
mod tmf;
pub mod unit;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use base::throttle::Throttle;

use self::settings::Settings;
use self::state::sessions::Sessions;
use self::targets::Targets;
use engine::exec::Engine;

/// The service: the same over all its starts.
pub struct Iscsi {
    /// What is offered.
    pub targets: Targets,
    /// Sessions of initiators.
    pub sessions: Arc<Sessions>,
    /// What accepts connections, and holds the budgets and the probe.
    pub engine: Arc<Engine>,
    /// Logins that went well, and those that were refused, so far.
    pub logins: AtomicU64,
    /// See `logins`.
    pub refusals: AtomicU64,
    /// Commands so far that had to wait for memory, or were refused for lack of it.
    pub waits: AtomicU64,
    /// PDUs with a wrong digest so far.
    pub digest_errors: AtomicU64,
    /// Waits after wrong CHAP secrets.
    throttle: Mutex<Throttle>,
    settings: RwLock<Arc<Settings>>,
}

impl Iscsi {
    /// The service without targets.
    pub fn new(engine: Arc<Engine>, settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            targets: Targets::default(),
            sessions: Arc::default(),
            engine,
            logins: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            digest_errors: AtomicU64::new(0),
            throttle: Mutex::default(),
            settings: RwLock::new(Arc::new(settings)),
        })
    }

    /// Waits after wrong CHAP secrets, by address and by name of the initiator.
    fn throttle(&self) -> MutexGuard<'_, Throttle> {
        // Nothing under this lock panics half way through a change.
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is set now.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes it, for sessions that begin from now on.
    pub fn update(&self, change: impl FnOnce(&mut Settings)) {
        let mut settings = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut settings));
    }
}

#[cfg(test)]
mod tests;
