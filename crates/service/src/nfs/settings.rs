//! The settings of NFS: what the options say where they say something, and the configuration
//! otherwise.

use std::path::PathBuf;
use std::time::Duration;

use base::protocol::Service;
use control::tree::{Document, Override};

use crate::node;
use crate::tls::TlsChoice;

/// The settings in force.
#[derive(Debug, Clone)]
pub struct NfsSettings {
    /// Whether it is to serve.
    pub enabled: bool,
    /// How long an NFSv4 client may be silent before others may take what it holds.
    pub lease: Duration,
    /// The domain of owners' names.
    pub domain: Option<String>,
    /// Whether NFSv4 clients may be given delegations.
    pub delegations: bool,
    /// Whether there is to be a port mapper.
    pub portmap: bool,
    /// TLS for NFS clients.
    pub tls: TlsChoice,
}

impl NfsSettings {
    /// What is in force with these options and this configuration.
    pub fn of(given: &[Override], document: &Document) -> Self {
        let at = node::path(Service::Nfs);
        let value = |name: &str| {
            let given = given.iter().find(|one| one.property == name);
            given.map(|one| one.value.clone()).or_else(|| document.value(&at, name))
        };
        let on = |name| value(name).and_then(|value| value.as_bool()).unwrap_or(true);
        let text = |name| value(name)?.as_text().map(str::to_owned);
        let file = |name| text(name).map(PathBuf::from);
        let lease = value("lease").and_then(|value| value.as_integer()).unwrap_or_default();
        let named = text("certificate").filter(|name| !name.is_empty());
        let files = file("tls_certificate").zip(file("tls_key"));
        Self {
            enabled: on("enabled"),
            lease: Duration::from_secs(u64::try_from(lease).unwrap_or_default()),
            domain: text("domain"),
            delegations: on("delegations"),
            portmap: on("portmap"),
            tls: TlsChoice::new(named, files, file("tls_client_ca")),
        }
    }
}
