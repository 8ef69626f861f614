//! Options for a server under test that runs on this machine.

use clap::Args;
use std::path::PathBuf;

/// What a run may read of the server in addition to its replies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(super) struct LocalServerArgs {
    /// Local socket of the server, STATE/plimsoll.sock, to record its statistics
    #[arg(long = "server-socket", value_name = "SOCKET")]
    pub(super) server_socket: Option<PathBuf>,
    /// Process id of the server on this machine [default: found by its port if local]. A comparison
    /// takes one per target
    #[arg(long = "server-pid", value_name = "PID")]
    pub(super) server_pids: Vec<u32>,
    /// Directory, disk file or block device with the data of the share, for a server on this
    /// machine [default: found by the exported path and the files that the server has open]
    #[arg(long = "share-path", value_name = "PATH", conflicts_with = "observe")]
    pub(super) share_path: Option<PathBuf>,
}
