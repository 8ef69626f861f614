//! dsync and replication between directories, shares and machines; heads of a cluster.

#[path = "../dsync.rs"]
mod dsync;
#[path = "../dsync_clones.rs"]
mod dsync_clones;
#[path = "../dsync_share.rs"]
mod dsync_share;
#[path = "../dsync_ssh.rs"]
mod dsync_ssh;
#[path = "../heads.rs"]
mod heads;
#[path = "../replication.rs"]
mod replication;
