//! The settings of NFS: those of the options, and the configuration otherwise.

use std::path::PathBuf;
use std::time::Duration;

use base::protocol::Service;
use control::tree::{Document, Override};

use crate::tls::TlsChoice;
use crate::values::Values;

/// The current settings.
#[derive(Debug, Clone)]
pub struct NfsSettings {
    /// How long an NFSv4 client may be silent before others may take what it holds.
    pub lease: Duration,
    /// The domain of owners' names.
    pub domain: Option<String>,
    /// Whether NFSv4 clients may be given delegations.
    pub delegations: bool,
    /// Whether these may be for writing.
    pub write_delegations: bool,
    /// Whether there is to be a port mapper.
    pub portmap: bool,
    /// Whether NFS is served by RDMA as well.
    pub rdma: bool,
    /// TLS for NFS clients.
    pub tls: TlsChoice,
}

impl NfsSettings {
    /// The effective settings with these options and this configuration.
    pub fn of(given: &[Override], document: &Document) -> Self {
        let values = Values::of(document, Service::Nfs).given(given);
        let file = |name| values.text(name).map(PathBuf::from);
        Self {
            lease: values.time("lease"),
            domain: values.text("domain"),
            delegations: values.is_on("delegations"),
            write_delegations: values.is_on("write_delegations"),
            portmap: values.is_on("portmap"),
            rdma: values.is_on("rdma"),
            tls: TlsChoice {
                named: values.text("certificate"),
                files: file("tls_certificate").zip(file("tls_key")),
                client_ca: file("tls_client_ca"),
            },
        }
    }
}
