//! How the service behaves: what the administrator sets.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::time::Duration;

use base::limits::{FTP_ATTEMPTS_MAX, FTP_CONNECTIONS_MAX, FTP_IDLE, FTP_PER_ADDRESS_MAX};

pub use files::settings::{LoginRoot, Uploads};

/// Whether commands are protected by TLS (RFC 4217), where a connection starts unencrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsUse {
    /// AUTH is not offered.
    Off,
    /// Used if the client requests it.
    #[default]
    Offered,
    /// Required before sign-in.
    Required,
}

/// All settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// TLS for commands.
    pub tls: TlsUse,
    /// Whether data must be protected as well (PROT P).
    pub protect_data: bool,
    /// Whether a data connection must resume the TLS session of its control connection: this proves
    /// that it is by the same client, even if another host has found out the port.
    pub session_reuse: bool,
    /// Whether there is a port on which TLS comes first.
    pub implicit: bool,
    /// Ports that PASV and EPSV open; any if there are none.
    pub passive_ports: Option<RangeInclusive<u16>>,
    /// The address that the reply to PASV shows, where clients reach this machine by another one.
    pub masquerade_address: Option<Ipv4Addr>,
    /// Connections at once.
    pub connections_max: usize,
    /// Connections from one address at once.
    pub per_address_max: usize,
    /// Wrong passwords until a connection is closed.
    pub attempts_max: u32,
    /// Idle timeout of the control connection.
    pub idle: Duration,
    /// Permission bits that new files and directories do not get.
    pub umask: u32,
    /// What an upload is until its end.
    pub uploads: Uploads,
    /// What a user sees as `/`.
    pub login_root: LoginRoot,
    /// Whether `anonymous` and `ftp` are let in with any password.
    pub anonymous: bool,
    /// The text of the greeting (reply 220).
    pub greeting: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tls: TlsUse::default(),
            protect_data: false,
            session_reuse: false,
            implicit: true,
            passive_ports: None,
            masquerade_address: None,
            connections_max: FTP_CONNECTIONS_MAX,
            per_address_max: FTP_PER_ADDRESS_MAX,
            attempts_max: FTP_ATTEMPTS_MAX,
            idle: FTP_IDLE,
            umask: 0o022,
            uploads: Uploads::default(),
            login_root: LoginRoot::default(),
            anonymous: false,
            greeting: "Plimsoll".to_owned(),
        }
    }
}
