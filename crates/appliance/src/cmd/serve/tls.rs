//! TLS for NFS: the certificate that is shown, and whom clients' certificates must come from.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::monotonic_ns;
use base::limits::{TLS_FILE_MAX, TLS_TELL_EVERY};
use control::state::keys::Identity;
use serve::transport::Budgets;
use serve::transport::tls::{Credentials, Tls};
use vfs::share::rules::{Rules, Transport};

use crate::out::Failure;

/// Refuses rules that nobody could satisfy: they want certificates of clients, and there is nothing
/// to verify them by.
///
/// # Errors
/// One sentence.
pub fn check(rules: &Rules, knows_clients: bool) -> Result<(), String> {
    if rules.transport() < Transport::Mtls || knows_clients {
        return Ok(());
    }
    Err("it is not said whose client certificates are good".to_owned())
}

/// Files that the options name.
#[derive(Debug, Default, Clone)]
pub struct TlsFiles {
    /// Certificate and key; without them the appliance's own are shown.
    shown: Option<(PathBuf, PathBuf)>,
    /// Whom clients' certificates must come from; without it clients are not asked for any.
    client_ca: Option<PathBuf>,
}

impl TlsFiles {
    /// Certificate and key, and whom clients' certificates must come from.
    pub fn new(shown: Option<(PathBuf, PathBuf)>, client_ca: Option<PathBuf>) -> Self {
        Self { shown, client_ca }
    }

    /// Whether there is anything to read again.
    pub fn any(&self) -> bool {
        self.shown.is_some() || self.client_ca.is_some()
    }

    /// Whether clients' certificates can be verified.
    pub fn knows_clients(&self) -> bool {
        self.client_ca.is_some()
    }

    /// Refuses rules that nobody could satisfy.
    ///
    /// # Errors
    /// They want certificates of clients, and there is nothing to verify them by.
    pub fn check(&self, rules: &Rules) -> Result<(), Failure> {
        check(rules, self.knows_clients()).map_err(|failed| {
            let hint = "name their authority with --nfs-tls-client-ca FILE";
            Failure::usage("serve a share with xprtsec=mtls", &failed, hint)
        })
    }

    /// Reads the files.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn read(&self, own: &Identity) -> Result<Credentials, Failure> {
        let (certificate, key) = match &self.shown {
            Some((certificate, key)) => (text(certificate)?, text(key)?),
            None => (own.certificate_pem.clone(), own.key_pem.clone()),
        };
        let client_ca = self.client_ca.as_deref().map(text).transpose()?;
        Ok(Credentials { certificate, key, client_ca })
    }

    /// Offers TLS with what the files say.
    ///
    /// # Errors
    /// They cannot be read, or not be used.
    pub fn offer(&self, own: &Identity) -> Result<Arc<Tls>, Failure> {
        Tls::new(&self.read(own)?).map_err(|e| Failure::of(TRIED, &e))
    }

    /// Reads the files again, for connections that begin from now on.
    ///
    /// # Errors
    /// They cannot be read, or not be used; what was read before goes on.
    pub fn renew(&self, tls: &Tls, own: &Identity) -> Result<(), Failure> {
        tls.set(&self.read(own)?).map_err(|e| Failure::of(TRIED, &e))
    }
}

const TRIED: &str = "offer TLS to NFS clients";

fn text(path: &Path) -> Result<String, Failure> {
    let tried = format!("read {}", path.display());
    let size = fs::metadata(path).map_err(|e| Failure::of(&tried, &e))?.len();
    if size > TLS_FILE_MAX {
        let failed = format!("it has {size} bytes; {TLS_FILE_MAX} are the most");
        return Err(Failure::new(&tried, &failed, "name a file of PEM certificates or a PEM key"));
    }
    fs::read_to_string(path).map_err(|e| Failure::of(&tried, &e))
}

/// Tells of handshakes that fail, seldom: a client that tries all day is one line a minute.
pub struct Teller {
    tls: Arc<Tls>,
    budgets: Arc<Budgets>,
    told: u64,
    at_ns: Option<u64>,
}

impl Teller {
    /// Tells of failures of `tls`, which `budgets` count.
    pub fn new(tls: Arc<Tls>, budgets: Arc<Budgets>) -> Self {
        Self { tls, budgets, told: 0, at_ns: None }
    }

    /// Looks whether there is something to tell.
    pub fn look(&mut self) {
        let now = monotonic_ns();
        let pause = TLS_TELL_EVERY.as_nanos() as u64;
        if self.at_ns.is_some_and(|at| now.saturating_sub(at) < pause) {
            return;
        }
        let Some((peer, why)) = self.tls.take_failure() else { return };
        let count = self.budgets.tls_failures.load(Relaxed);
        let new = count.saturating_sub(self.told).max(1);
        (self.told, self.at_ns) = (count, Some(now));
        base::warning!("nfs", "{new} TLS connections to NFS failed, the last from {peer}: {why}");
    }
}
