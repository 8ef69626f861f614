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
use crate::host::sys::{self, Capabilities};
use crate::status::Status;

thread_local! {
    /// Who this thread acts as; `None` is the process's own identity.
    static CURRENT: RefCell<Option<Cred>> = const { RefCell::new(None) };
    static DEDICATED: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread has a umask of its own; `None` before it was tried.
    static OWN_UMASK: Cell<Option<bool>> = const { Cell::new(None) };
    /// Whether this thread has given up its right to reserved blocks.
    static SPARED: Cell<bool> = const { Cell::new(false) };
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
    /// Changes nothing: the thread is who it must be already.
    pub const fn unchanged() -> Self {
        Self { restore: None, umask: None }
    }

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

    /// Acts as the process itself, or goes on as `cred` if the thread does: for what both may do.
    /// A change of identity costs more than most operations.
    pub fn as_server_or(cred: &Cred) -> Result<Self> {
        if CURRENT.with_borrow(|now| now.as_ref() == Some(cred)) {
            return Ok(Self::unchanged());
        }
        Self::as_server()
    }

    /// The same, and files made meanwhile get the mode asked for, less this umask: the caller's, if
    /// it wants that, never this process's. The kernel leaves it aside where the directory has a
    /// default access control list, as it must be (RFC 8275 §4).
    pub fn with_umask(mut self, mask: Option<u32>) -> Self {
        let mask = mask.unwrap_or(0) & 0o777;
        if (mask != 0 || !DEDICATED.get()) && own_umask() {
            self.umask = Some(sys::umask(mask));
        }
        self
    }

    fn switch(cred: Option<&Cred>) -> Result<Self> {
        let previous =
            CURRENT.with_borrow(|now| if now.as_ref() == cred { None } else { Some(now.clone()) });
        let Some(previous) = previous else { return Ok(Self::unchanged()) };
        become_(previous.as_ref(), cred)?;
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
            let now = CURRENT.with_borrow(Clone::clone);
            let _ = become_(now.as_ref(), previous.as_ref());
        }
    }
}

/// The supplementary groups that go with an identity. The superuser needs none.
fn groups_of(cred: Option<&Cred>) -> &[u32] {
    match cred {
        Some(c) if c.uid != 0 => &c.groups,
        _ => &own().groups,
    }
}

/// What is neither the old identity nor the new, and must not be taken for either.
const UNKNOWN: Cred = Cred { uid: u32::MAX, gid: u32::MAX, groups: Vec::new() };

/// Changes the thread's identity and makes sure that it is so.
fn become_(previous: Option<&Cred>, cred: Option<&Cred>) -> Result<()> {
    let own = own();
    let (uid, gid) = cred.map_or((own.uid, own.gid), |c| (c.uid, c.gid));
    if uid == u32::MAX || gid == u32::MAX {
        return Err(Status::Access);
    }
    CURRENT.set(Some(UNKNOWN));
    if previous == Some(&UNKNOWN) || groups_of(previous) != groups_of(cred) {
        sys::set_groups(groups_of(cred)).map_err(|_| Status::Access)?;
    }
    sys::set_fsgid(gid);
    sys::set_fsuid(uid);
    // The calls have no way to fail visibly: an id that the user namespace does not know is
    // silently not set. An invalid id changes nothing and returns the present one.
    if !knows_all_ids() && !is_now(uid, gid) {
        return Err(Status::Access);
    }
    spare_resources(uid == 0)?;
    CURRENT.set(cred.cloned());
    Ok(())
}

/// Whether the thread has these ids.
fn is_now(uid: u32, gid: u32) -> bool {
    sys::set_fsuid(u32::MAX) == uid && sys::set_fsgid(u32::MAX) == gid
}

/// Whether every id exists in our user namespace, so that setting one cannot fail in silence
/// once another was set.
fn knows_all_ids() -> bool {
    static ALL: OnceLock<bool> = OnceLock::new();
    *ALL.get_or_init(|| {
        ["/proc/self/uid_map", "/proc/self/gid_map"].iter().all(|map| {
            let text = std::fs::read_to_string(map).unwrap_or_default();
            text.split_whitespace().eq(["0", "0", "4294967295"])
        })
    })
}

/// Gives up the right to the blocks reserved for root and to pass over quotas (CAP_SYS_RESOURCE),
/// or takes it back. The kernel does it with the other rights over files, not with this one.
fn spare_resources(root: bool) -> Result<()> {
    static OWN: OnceLock<Option<Capabilities>> = OnceLock::new();
    let own = OWN.get_or_init(|| {
        let own = sys::capabilities().ok()?;
        (own.effective & sys::CAP_SYS_RESOURCE != 0).then_some(own)
    });
    let Some(own) = own else { return Ok(()) };
    if SPARED.get() != root {
        return Ok(());
    }
    let gone = if root { 0 } else { sys::CAP_SYS_RESOURCE | sys::CAPS_OVER_FILES };
    let wanted = Capabilities { effective: own.effective & !gone, ..*own };
    sys::set_capabilities(&wanted).map_err(|_| Status::Access)?;
    SPARED.set(!root);
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
    let could = Acting::as_caller(&nobody).is_ok_and(|_acting| is_now(nobody.uid, nobody.gid));
    could && Acting::as_server().is_ok()
}

#[cfg(test)]
mod tests;
