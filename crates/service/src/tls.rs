//! TLS of a service: its certificate, and the CA of client certificates.
//!
//! The certificate is the first of these that exists: the one that the setting names, the files,
//! the one of the administration.

use std::path::{Path, PathBuf};

use base::failure::{Failure, OrFailure, read_text};
use base::limits::TLS_FILE_MAX;
use control::certificates::Certificates;
use serve::transport::tls::{Credentials, Tls};
use vfs::share::rules::{Rules, Transport};

/// Refuses rules that no client can satisfy: they require certificates of clients, and no CA for
/// them is configured.
///
/// # Errors
/// One sentence.
pub fn check(rules: &Rules, knows_clients: bool) -> Result<(), String> {
    if rules.transport() < Transport::Mtls || knows_clients {
        return Ok(());
    }
    Err("no CA for client certificates is configured".to_owned())
}

/// The settings of TLS.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct TlsChoice {
    /// A certificate of the configuration, by its name.
    pub named: Option<String>,
    /// Files with certificate and key.
    pub files: Option<(PathBuf, PathBuf)>,
    /// The CA of client certificates; without it no certificates are requested.
    pub client_ca: Option<PathBuf>,
}

impl TlsChoice {
    /// Whether there is any file to read again.
    pub fn any_file(&self) -> bool {
        self.files.is_some() || self.client_ca.is_some()
    }

    /// The name of the certificate of `service`, and why it is not the configured one.
    pub fn certificate_in_use(
        &self,
        certificates: &Certificates,
        service: &str,
    ) -> (String, Option<String>) {
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

    /// Refuses rules that no client can satisfy.
    ///
    /// # Errors
    /// They require certificates of clients, and no CA for them is configured.
    pub fn check(&self, rules: &Rules) -> Result<(), Failure> {
        check(rules, self.knows_clients()).map_err(|failed| {
            let hint = "give their CA with --nfs-tls-client-ca FILE";
            Failure::usage("serve a share with xprtsec=mtls", &failed, hint)
        })
    }

    /// Reads the certificate to present, and the files. A configured one that cannot be used is
    /// skipped; [`Self::certificate_in_use`] has the reason.
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
    /// Files cannot be read, or certificate and key not be used; the current ones stay in use.
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
