//! The nodes of all services, as the tree of administration has them. A new service is one line.

use base::node::Context;

/// `/configuration/services`.
pub static SERVICES: Context = Context::new(
    "services",
    "Services",
    "Network services: NFS, FTP, SFTP, HTTP, SMB, iSCSI and administration.",
    "services",
)
.children(&[
    &serve::rpc::node::NODE,
    &serve::ftp::node::NODE,
    &serve::sftp::node::NODE,
    &serve::http::node::NODE,
    &serve::iscsi::node::NODE,
    &serve::smb::node::NODE,
    #[cfg(feature = "test-services")]
    &serve::echo::node::NODE,
    &control::listen::node::NODE,
]);
