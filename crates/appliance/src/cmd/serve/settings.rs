//! What the options decide of NFS's settings in this run.

use std::path::PathBuf;

use base::node::Value;
use control::tree::Override;

use crate::cli::{ServeArgs, Switch};

/// What the options decide of NFS in this run.
pub fn given(args: &ServeArgs) -> Vec<Override> {
    let file = |file: &Option<PathBuf>| {
        file.as_ref().map(|file| Value::Text(file.to_string_lossy().into_owned()))
    };
    let number = |n: u64| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
    // Certificate and key come together, or not at all; what the command line says goes before what
    // is configured.
    let named = args.nfs_tls_cert.as_ref().map(|_| Value::text(""));
    let given = [
        ("lease", args.nfs_lease.map(number)),
        ("delegations", args.nfs_delegations.map(|switch| Value::Bool(switch == Switch::On))),
        ("domain", args.nfs_domain.as_deref().map(Value::text)),
        ("portmap", args.no_portmap.then_some(Value::Bool(false))),
        ("tls_certificate", file(&args.nfs_tls_cert)),
        ("tls_key", file(&args.nfs_tls_key)),
        ("certificate", named),
        ("tls_client_ca", file(&args.nfs_tls_client_ca)),
    ];
    let decided = |(property, value): (_, Option<Value>)| {
        Some(Override { property, value: value?, source: "command line" })
    };
    given.into_iter().filter_map(decided).collect()
}
