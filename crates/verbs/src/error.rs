//! Why something was not done.

use std::io;

/// What failed. A connection or listener that returned an error other than [`VerbsError::NoRoom`]
/// is unusable.
#[derive(Debug, thiserror::Error)]
pub enum VerbsError {
    /// The peer has closed the connection.
    #[error("closed by the peer")]
    Closed,
    /// The device was removed.
    #[error("the device was removed")]
    DeviceRemoved,
    /// No device of this machine leads to the peer.
    #[error("no RDMA device of this machine has a route to this address")]
    NoRoute,
    /// The peer has refused the connection: the port has no listener, or its backlog is full.
    #[error("the server does not accept connections over RDMA on this port")]
    Refused,
    /// The peer has not answered in time.
    #[error("the server does not respond over RDMA")]
    Silent,
    /// A work request failed: the peer's memory is not accessible, or it had no receive posted.
    #[error("{0}")]
    Work(&'static str),
    /// No more memory may be registered.
    #[error("the limit of registered memory is reached")]
    NoRoom,
    /// The system does not let so much memory be locked.
    #[error("memory cannot be registered: {limit} may be locked (LimitMEMLOCK, ulimit -l)")]
    NotLocked {
        /// The limit.
        limit: String,
    },
    /// The machine has no device.
    #[error("this machine has no RDMA device")]
    NoDevice,
    /// The libraries have no driver for any device.
    #[error("libibverbs has no driver for the RDMA devices (package ibverbs-providers)")]
    NoProvider,
    /// A library is not installed.
    #[error("{library} is not installed (package {package})")]
    NoLibrary {
        /// Its file.
        library: &'static str,
        /// What to install on Debian.
        package: &'static str,
    },
    /// A library has not what it should have.
    #[error("{library} has no {symbol}")]
    NoSymbol {
        /// Its file.
        library: &'static str,
        /// What is missing.
        symbol: &'static str,
    },
    /// The system refused something.
    #[error("{what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}
