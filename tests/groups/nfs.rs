//! NFS from outside: export rules, handles, hostile peers, counts, tools, TLS, soak.

#[path = "../export_matrix.rs"]
mod export_matrix;
#[path = "../handles.rs"]
mod handles;
#[path = "../hostile.rs"]
mod hostile;
#[path = "../local_changes.rs"]
mod local_changes;
#[path = "../nfs4_counts.rs"]
mod nfs4_counts;
#[path = "../nfs_tools.rs"]
mod nfs_tools;
#[path = "../remounts.rs"]
mod remounts;
#[path = "../robust.rs"]
mod robust;
#[path = "../rpc_tls.rs"]
mod rpc_tls;
#[path = "../serve_rules.rs"]
mod serve_rules;
#[path = "../soak.rs"]
mod soak;
