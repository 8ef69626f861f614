//! Linux kernel clients (User Mode Linux) against the real binary.

#[path = "../kernel_client.rs"]
mod kernel_client;
#[path = "../kernel_delegations.rs"]
mod kernel_delegations;
#[path = "../kernel_hardware.rs"]
mod kernel_hardware;
#[path = "../kernel_iscsi.rs"]
mod kernel_iscsi;
#[path = "../kernel_locks.rs"]
mod kernel_locks;
#[path = "../kernel_network.rs"]
mod kernel_network;
#[path = "../kernel_pools.rs"]
mod kernel_pools;
#[path = "../kernel_rdma.rs"]
mod kernel_rdma;
#[path = "../kernel_read_plus.rs"]
mod kernel_read_plus;
#[path = "../kernel_services.rs"]
mod kernel_services;
#[path = "../kernel_smb.rs"]
mod kernel_smb;
#[path = "../kernel_smb_counts.rs"]
mod kernel_smb_counts;
#[path = "../kernel_smb_pair.rs"]
mod kernel_smb_pair;
#[path = "../kernel_v4.rs"]
mod kernel_v4;
#[path = "../kernel_v4_features.rs"]
mod kernel_v4_features;
#[path = "../kernel_v4_files.rs"]
mod kernel_v4_files;
#[path = "../kernel_v4_random.rs"]
mod kernel_v4_random;
#[path = "../kernel_v4_removed.rs"]
mod kernel_v4_removed;
