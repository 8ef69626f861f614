//! MOUNT and NFS version 3.
pub mod state;
