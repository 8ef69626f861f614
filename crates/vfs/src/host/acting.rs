//! Impersonation: the file-system identity of one thread, changed under a guard.
//!
//! Only raw system calls are used: the C library's wrappers change every thread of the process.
//! An ordinary thread gets its own identity back when the guard is dropped. A pool thread that does
//! nothing else may call [`dedicate_thread`]: it then keeps the last identity until another is
//! needed, because a change costs more than most operations.
//!
//! The process need not be root: an ordinary user with the capabilities of [`NEEDED`] can do the
//! same. For root the kernel drops capabilities over files with the file-system user 0 and restores
//! them with it; for such a process it does not, and this module does it.

use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

use crate::cred::Cred;
use crate::fs::Result;
use crate::host::sys::{self, Capabilities};
use crate::status::Status;

thread_local! {
    /// The identity that this thread has taken; `None` is the process's own identity.
    static CURRENT: RefCell<Option<Cred>> = const { RefCell::new(None) };
    static DEDICATED: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread has a umask of its own; `None` before it was tried.
    static OWN_UMASK: Cell<Option<bool>> = const { Cell::new(None) };
    /// Which of the process's rights this thread is without.
    static SPARED: Cell<u64> = const { Cell::new(0) };
}

/// What a process that is not root needs to act as others: to change the identity of a thread, and
/// to do with any file what its owner may (CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID,
/// SETGID, SETUID).
pub const NEEDED: u64 = 0x1f | 1 << 6 | 1 << 7;

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

/// While it lives the thread impersonates a caller; then as before, unless it is dedicated.
pub struct CredGuard {
    restore: Option<Option<Cred>>,
    umask: Option<u32>,
}

impl CredGuard {
    /// Changes nothing: the thread has the required identity already.
    pub const fn unchanged() -> Self {
        Self { restore: None, umask: None }
    }

    /// Impersonates `cred`. [`Status::Access`] if the kernel refuses: then nothing is changed.
    pub fn as_caller(cred: &Cred) -> Result<Self> {
        // The superuser needs no groups, and most calls come with the same ones.
        if is_own(cred) {
            return Self::as_server();
        }
        Self::switch(Some(cred))
    }

    /// Acts as the process itself.
    pub fn as_server() -> Result<Self> {
        Self::switch(None)
    }

    /// Takes the identity of the process, or leaves that of `cred` if the thread has it: for
    /// operations that are allowed to both. A change of identity costs more than most operations.
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

impl Drop for CredGuard {
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
    // Before the first change of identity.
    let _ = own_rights();
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
    fit_rights(cred)?;
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

/// Takes from the thread the rights that its new identity must not have, or gives them back: the
/// blocks reserved for root and passing over quotas (CAP_SYS_RESOURCE), which the kernel leaves to
/// every identity; and, where the process is not root itself, those over files.
fn fit_rights(cred: Option<&Cred>) -> Result<()> {
    let Some(all) = own_rights() else { return Ok(()) };
    let superior = cred.is_none_or(|c| c.uid == 0);
    let without = if superior { 0 } else { sys::CAP_SYS_RESOURCE | sys::CAPS_OVER_FILES };
    let without = without & all.effective;
    // For root the kernel does the rest.
    let nothing = SPARED.get() == without || all.effective & sys::CAP_SYS_RESOURCE == 0;
    if own().uid == 0 && nothing {
        return Ok(());
    }
    let wanted = Capabilities { effective: all.effective & !without, ..*all };
    sys::set_capabilities(&wanted).map_err(|_| Status::Access)?;
    SPARED.set(without);
    Ok(())
}

/// The capabilities of the process, as they are before its first thread impersonates a caller: that
/// drops some. `None` if the kernel does not report them.
fn own_rights() -> Option<&'static Capabilities> {
    static OWN: OnceLock<Option<Capabilities>> = OnceLock::new();
    OWN.get_or_init(|| sys::capabilities().ok()).as_ref()
}

/// Whether a caller is the superuser, and so is this process.
pub fn is_own(cred: &Cred) -> bool {
    cred.uid == 0 && cred.gid == 0 && own().uid == 0
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
    let rights = own_rights().map_or(0, |own| own.effective);
    if own().uid != 0 && rights & NEEDED != NEEDED {
        return false;
    }
    let nobody = Cred { uid: 65_534, gid: 65_534, groups: vec![65_534] };
    let could = CredGuard::as_caller(&nobody)
        .is_ok_and(|_acting| is_now(nobody.uid, nobody.gid) && !has_rights_over_files());
    could && CredGuard::as_server().is_ok()
}

/// Whether this thread passes over the modes of files now.
fn has_rights_over_files() -> bool {
    sys::capabilities().is_ok_and(|now| now.effective & sys::CAPS_OVER_FILES != 0)
}

#[cfg(test)]
mod tests;
