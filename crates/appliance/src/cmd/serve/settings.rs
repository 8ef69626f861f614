//! What the options decide of NFS's settings in this run.

use std::path::PathBuf;

use base::node::Value;
use control::tree::Override;

use crate::cli::{ServeArgs, Switch};

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
