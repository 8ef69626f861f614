//! TLS of a service: the certificate that is shown, and whom clients' certificates must come from.
//!
//! What is shown is the first of these that there is: the certificate that the setting names, the
//! files, what the administration shows.

use std::path::{Path, PathBuf};

use base::failure::{Failure, OrFailure, read_text};
use base::limits::TLS_FILE_MAX;
use control::certificates::Certificates;
use serve::transport::tls::{Credentials, Tls};
use vfs::share::rules::{Rules, Transport};

/// Refuses rules that nobody could satisfy: they want certificates of clients, and there is nothing
/// to verify them by.
///
/// # Errors
/// One sentence.
pub fn check(rules: &Rules, knows_clients: bool) -> Result<(), String> {
    if rules.transport() < Transport::Mtls || knows_clients {
        return Ok(());
    }
    Err("no CA for client certificates is configured".to_owned())
}

/// What the settings say.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct TlsChoice {
    /// A certificate of the configuration, by its name.
    pub named: Option<String>,
    /// Files with certificate and key.
    pub files: Option<(PathBuf, PathBuf)>,
    /// Whom clients' certificates must come from; without it clients are not asked for any.
    pub client_ca: Option<PathBuf>,
}

impl TlsChoice {
    /// Whether there is any file to read again.
    pub fn any_file(&self) -> bool {
        self.files.is_some() || self.client_ca.is_some()
    }

    /// What `service` shows, for people; and why it is not the certificate that is named.
    pub fn told(&self, certificates: &Certificates, service: &str) -> (String, Option<String>) {
        let instead = || match &self.files {
            Some((certificate, _)) => certificate.display().to_string(),
            None => certificates.shown_name(),
        };
        match self.named.as_ref().map(|name| (name, certificates.named(name))) {
            None => (instead(), None),
            Some((name, Ok(_))) => (name.clone(), None),
            Some((name, Err(why))) => {
                (instead(), Some(format!("{service} cannot use the certificate {name}: {why}")))
            }
        }
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
            let hint = "give their CA with --nfs-tls-client-ca FILE";
            Failure::usage("serve a share with xprtsec=mtls", &failed, hint)
        })
    }

    /// Has the certificate that is to be shown, and reads the files. One that is named and cannot
    /// be shown is left out; [`Self::told`] says why.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(&self, certificates: &Certificates) -> Result<Credentials, Failure> {
        let named = self.named.as_ref().and_then(|name| certificates.named(name).ok());
        let (certificate, key) = match (named, &self.files) {
            (Some(named), _) => (named.certificate_pem, named.key_pem),
            (None, Some((certificate, key))) => (text(certificate)?, text(key)?),
            (None, None) => {
                let shown = certificates.shown().identity();
                (shown.certificate_pem, shown.key_pem)
            }
        };
        let client_ca = self.client_ca.as_deref().map(text).transpose()?;
        Ok(Credentials { certificate, key, client_ca })
    }

    /// Offers TLS so to connections that begin from now on.
    ///
    /// # Errors
    /// Files cannot be read, or certificate and key not be used; what was shown before goes on.
    pub fn renew(&self, tls: &Tls, certificates: &Certificates) -> Result<(), Failure> {
        tls.set(&self.read(certificates)?).or_failure(TRIED)
    }
}

const TRIED: &str = "offer TLS to clients";

fn text(path: &Path) -> Result<String, Failure> {
    let (tried, hint) =
        (format!("read {}", path.display()), "use a file with PEM certificates or a PEM key");
    read_text(&tried, path, TLS_FILE_MAX, hint)
}
