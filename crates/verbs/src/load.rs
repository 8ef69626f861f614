//! Finds the libraries on demand: the program runs without them, and reports which is missing.

use std::ffi::{CStr, c_void};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use crate::cm::CmListener;
use crate::sys::{Calls, Library};
use crate::{
    Account, ConnectOptions, Depth, Established, Listener, Verbs, VerbsError, connect, devices,
    opened,
};

impl Library {
    /// Its file, and the package that has it on Debian.
    fn names(self) -> (&'static CStr, &'static str) {
        match self {
            Self::Verbs => (c"libibverbs.so.1", "libibverbs1"),
            Self::Cm => (c"librdmacm.so.1", "librdmacm1"),
        }
    }

    fn file(self) -> &'static str {
        self.names().0.to_str().unwrap_or_default()
    }

    fn open(self) -> Result<*mut c_void, VerbsError> {
        let (file, package) = self.names();
        // SAFETY: a C string; the library stays loaded until the process ends.
        let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(VerbsError::NoLibrary { library: self.file(), package });
        }
        Ok(handle)
    }
}

fn find() -> Result<Calls, VerbsError> {
    let (verbs, cm) = (Library::Verbs.open()?, Library::Cm.open()?);
    let look = |library: Library, symbol: &'static str| {
        let handle = if library == Library::Verbs { verbs } else { cm };
        // SAFETY: the handle is open, and the name ends in a zero byte.
        let found = unsafe { libc::dlsym(handle, symbol.as_ptr().cast()) };
        let missing =
            VerbsError::NoSymbol { library: library.file(), symbol: symbol.trim_end_matches('\0') };
        if found.is_null() { Err(missing) } else { Ok(found) }
    };
    // SAFETY: the libraries' documented functions, with their documented types.
    unsafe { Calls::find(look) }
}

/// The calls; looked for again as long as they are not there, so that a package that is installed
/// is found without a restart.
pub(crate) fn calls() -> Result<&'static Calls, VerbsError> {
    static CALLS: OnceLock<Calls> = OnceLock::new();
    match CALLS.get() {
        Some(calls) => Ok(calls),
        None => {
            let found = find()?;
            Ok(CALLS.get_or_init(|| found))
        }
    }
}

/// Whether the libraries are there.
///
/// # Errors
/// Which is not, and what to install.
pub fn check() -> Result<(), VerbsError> {
    calls().map(drop)
}

/// The RDMA devices of the machine. The libraries are loaded on first use.
pub fn devices(account: Arc<Account>) -> Arc<dyn Verbs> {
    Arc::new(Devices { account })
}

struct Devices {
    account: Arc<Account>,
}

impl Verbs for Devices {
    fn listen(&self, at: SocketAddr) -> Result<Box<dyn Listener>, VerbsError> {
        if devices::list().is_empty() {
            return Err(VerbsError::NoDevice);
        }
        let listener = CmListener::new(calls()?, at, Arc::clone(&self.account))?;
        Ok(Box::new(listener))
    }

    fn connect(&self, call: &ConnectOptions<'_>, depth: Depth) -> Result<Established, VerbsError> {
        if devices::list().is_empty() {
            return Err(VerbsError::NoDevice);
        }
        connect::connect(calls()?, call, depth, Arc::clone(&self.account))
    }

    fn account(&self) -> &Arc<Account> {
        &self.account
    }

    fn look(&self) {
        opened::look();
    }
}

/// The error in `errno`.
pub(crate) fn failed(what: &'static str) -> VerbsError {
    VerbsError::System { what, source: io::Error::last_os_error() }
}
