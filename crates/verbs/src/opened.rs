//! Devices that connections use, and their removal.
//!
//! When the driver of an adapter removes a device, the connection manager sends an event to each of
//! its users. Devices in software (siw, rxe) are removed only once every process has closed them,
//! and no event is sent: what is gone at once is their entry below `/sys/class/infiniband_verbs`,
//! which [`look`] checks. librdmacm keeps a device open for the life of the process, so its
//! descriptors are replaced by descriptors of `/dev/null` when the last connection that used it is
//! gone.

use std::collections::HashMap;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};

use crate::sys;

/// Devices in use, by the address of what the library has of them.
static OPENED: Mutex<Option<HashMap<usize, Weak<Opened>>>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A device in use.
struct Opened {
    context: *mut sys::Context,
    /// Its entry: gone when it is removed.
    path: PathBuf,
    removed: AtomicBool,
    users: Mutex<Vec<Weak<Mutex<Option<Waker>>>>>,
}

// SAFETY: the library keeps the context for the life of the process, or until the device is gone
// and nothing refers to it; it is used for its descriptors only.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

impl Opened {
    /// # Safety
    /// The context is open.
    unsafe fn new(context: *mut sys::Context) -> Self {
        // SAFETY: the caller's promise; the path is an array that ends in a zero byte.
        let path = unsafe { CStr::from_ptr((&raw const (*(*context).device).dev_path).cast()) };
        let path = PathBuf::from(path.to_string_lossy().into_owned());
        let (removed, users) = (AtomicBool::new(false), Mutex::default());
        Self { context, path, removed, users }
    }

    fn remove(&self) {
        if self.removed.swap(true, SeqCst) {
            return;
        }
        for waker in lock(&self.users).drain(..).filter_map(|user| user.upgrade()) {
            if let Some(waker) = lock(&waker).take() {
                waker.wake();
            }
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if !*self.removed.get_mut() {
            return;
        }
        let Ok(null) = File::open("/dev/null") else { return };
        // SAFETY: the descriptors belong to the context, which is still there; what the library
        // does with them from now on fails, as with a device that is gone.
        unsafe {
            for fd in [(*self.context).async_fd, (*self.context).cmd_fd] {
                libc::dup2(null.as_raw_fd(), fd);
            }
        }
    }
}

/// A use of a device: dropped last of all that belongs to it.
pub(crate) struct Use {
    opened: Arc<Opened>,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Use {
    /// Of the device of a context; `None` if it has none.
    ///
    /// # Safety
    /// The context is open, or null.
    pub(crate) unsafe fn of(context: *mut sys::Context) -> Option<Self> {
        if context.is_null() {
            return None;
        }
        let mut all = lock(&OPENED);
        let all = all.get_or_insert_default();
        all.retain(|_, opened| opened.strong_count() > 0);
        let opened = all.get(&(context as usize)).and_then(Weak::upgrade).unwrap_or_else(|| {
            // SAFETY: the caller's promise.
            let opened = Arc::new(unsafe { Opened::new(context) });
            all.insert(context as usize, Arc::downgrade(&opened));
            opened
        });
        let waker = Arc::<Mutex<Option<Waker>>>::default();
        let mut users = lock(&opened.users);
        users.retain(|user| user.strong_count() > 0);
        users.push(Arc::downgrade(&waker));
        drop(users);
        Some(Self { opened, waker })
    }

    /// Notes that the device is gone.
    pub(crate) fn remove(&self) {
        self.opened.remove();
    }

    /// Whether the device is gone; if not, the task is woken when it is.
    pub(crate) fn is_removed(&self, cx: &Context<'_>) -> bool {
        let mut waker = lock(&self.waker);
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        drop(waker);
        self.opened.removed.load(SeqCst)
    }
}

/// Looks whether devices in use are gone.
pub(crate) fn look() {
    let all: Vec<_> = {
        let all = lock(&OPENED);
        all.iter().flat_map(HashMap::values).filter_map(Weak::upgrade).collect()
    };
    for opened in all {
        if !opened.path.exists() {
            opened.remove();
        }
    }
}
