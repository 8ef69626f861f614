//! Acting as the caller: the file-system identity of one thread, changed under a guard.
//!
//! Only raw system calls are used: the C library's wrappers change every thread of the process.
//! An ordinary thread gets its own identity back when the guard goes. A thread of a pool that
//! does nothing else may call [`dedicate_thread`]: it then keeps the last identity until another
//! is wanted, because a change costs more than most operations.

use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

use crate::cred::Cred;
use crate::fs::Result;
use crate::host::sys;
use crate::status::Status;

thread_local! {
    /// Who this thread acts as; `None` is the process's own identity.
    static CURRENT: RefCell<Option<Cred>> = const { RefCell::new(None) };
    static DEDICATED: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread has a umask of its own; `None` before it was tried.
    static OWN_UMASK: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Declares that this thread belongs to a pool of file operations: it keeps the last caller's
/// identity between operations and has no umask. Nothing else should be done on it.
pub fn dedicate_thread() {
    DEDICATED.set(true);
    if own_umask() {
        sys::umask(0);
    }
}

fn own_umask() -> bool {
    OWN_UMASK.get().unwrap_or_else(|| {
        let own = sys::own_umask();
        OWN_UMASK.set(Some(own));
        own
    })
}

/// While it lives the thread acts as somebody; then as before, unless it is dedicated.
pub struct Acting {
    restore: Option<Option<Cred>>,
    umask: Option<u32>,
}

impl Acting {
    /// Acts as `cred`. [`Status::Access`] if the kernel does not let us: then nothing is done.
    pub fn as_caller(cred: &Cred) -> Result<Self> {
        // The superuser needs no groups, and most calls come with the same ones.
        if cred.uid == 0 && cred.gid == 0 {
            return Self::as_server();
        }
        Self::switch(Some(cred))
    }

    /// Acts as the process itself.
    pub fn as_server() -> Result<Self> {
        Self::switch(None)
    }

    /// The same, and files made meanwhile get the mode asked for, not less a umask.
    pub fn without_umask(mut self) -> Self {
        if !DEDICATED.get() && own_umask() {
            self.umask = Some(sys::umask(0));
        }
        self
    }

    fn switch(cred: Option<&Cred>) -> Result<Self> {
        let previous =
            CURRENT.with_borrow(|now| if now.as_ref() == cred { None } else { Some(now.clone()) });
        let Some(previous) = previous else { return Ok(Self { restore: None, umask: None }) };
        become_(cred)?;
        let restore = if DEDICATED.get() { None } else { Some(previous) };
        Ok(Self { restore, umask: None })
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        if let Some(mask) = self.umask {
            sys::umask(mask);
        }
        if let Some(previous) = self.restore.take() {
            // Going back cannot be refused where going there was allowed; if it were, the next
            // guard on this thread finds the identity wrong and tries again.
            let _ = become_(previous.as_ref());
        }
    }
}

/// Changes the thread's identity and makes sure that it is so.
fn become_(cred: Option<&Cred>) -> Result<()> {
    let own = own();
    let (uid, gid) = cred.map_or((own.uid, own.gid), |c| (c.uid, c.gid));
    let groups = match cred {
        Some(c) if c.uid != 0 => &c.groups,
        _ => &own.groups,
    };
    // An identity that is neither the old nor the new must not be taken for either.
    CURRENT.set(Some(Cred { uid: u32::MAX, gid: u32::MAX, groups: Vec::new() }));
    sys::set_groups(groups).map_err(|_| Status::Access)?;
    sys::set_fsgid(gid);
    sys::set_fsuid(uid);
    // The calls have no way to fail visibly: an id that the user namespace does not know is
    // silently not set. An invalid id changes nothing and returns the present one.
    if sys::set_fsuid(u32::MAX) != uid || sys::set_fsgid(u32::MAX) != gid {
        return Err(Status::Access);
    }
    CURRENT.set(cred.cloned());
    Ok(())
}

/// The identity of the process.
pub fn own() -> &'static Cred {
    static OWN: OnceLock<Cred> = OnceLock::new();
    OWN.get_or_init(|| {
        let (uid, gid) = sys::effective_ids();
        Cred { uid, gid, groups: sys::groups() }
    })
}

/// Whether this process may act as others; found by trying.
pub fn can_switch() -> bool {
    let nobody = Cred { uid: 65_534, gid: 65_534, groups: vec![65_534] };
    let could = Acting::as_caller(&nobody).is_ok();
    could && Acting::as_server().is_ok()
}
