//! The settings of NFS: what the options say where they say something, and the configuration
//! otherwise.

use std::path::PathBuf;
use std::time::Duration;

use base::log::{self, Level};
use base::node::{Path, Value};
use base::protocol::Service;
use control::listen::node::ADMINISTRATION;
use control::tree::{Document, Override};

use super::tls::TlsChoice;
use crate::cli::{ServeArgs, Switch};

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

/// The node of NFS.
pub fn nfs() -> Path {
    Path::of(&["configuration", "services", Service::Nfs.id()])
}

/// The node of the log.
pub fn logs() -> Path {
    Path::of(&["maintenance", "logs"])
}

impl NfsSettings {
    /// What is in force with these options and this configuration.
    pub fn of(given: &[Override], document: &Document) -> Self {
        let at = nfs();
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

/// How much everything tells by this configuration, from now on: services, each by itself, and the
/// rest of the program.
pub fn set_log_levels(document: &Document) {
    let level = |at: &Path, property| {
        let name = document.value(at, property);
        name.and_then(|name| Level::named(name.as_text()?)).unwrap_or(Level::Info)
    };
    log::set_level(None, level(&logs(), "level"));
    for service in Service::ALL.map(Service::id).into_iter().chain([ADMINISTRATION]) {
        let at = Path::of(&["configuration", "services", service]);
        log::set_level(Some(service), level(&at, "log_level"));
    }
}

/// What the options decide of NFS in this run.
pub fn given(args: &ServeArgs) -> Vec<Override> {
    let mut given = Vec::new();
    let mut add = |property, value| {
        given.push(Override { property, value, source: "command line" });
    };
    let file = |file: &PathBuf| Value::Text(file.to_string_lossy().into_owned());
    if let Some(lease) = args.nfs_lease {
        add("lease", Value::Integer(i64::try_from(lease).unwrap_or(i64::MAX)));
    }
    if let Some(delegations) = args.nfs_delegations {
        add("delegations", Value::Bool(delegations == Switch::On));
    }
    if let Some(domain) = &args.nfs_domain {
        add("domain", Value::text(domain));
    }
    if args.no_portmap {
        add("portmap", Value::Bool(false));
    }
    // The options come together, or not at all.
    if let Some((certificate, key)) = args.nfs_tls_cert.as_ref().zip(args.nfs_tls_key.as_ref()) {
        add("tls_certificate", file(certificate));
        add("tls_key", file(key));
        // What the command line says goes before what is configured.
        add("certificate", Value::text(""));
    }
    if let Some(authorities) = &args.nfs_tls_client_ca {
        add("tls_client_ca", file(authorities));
    }
    given
}
