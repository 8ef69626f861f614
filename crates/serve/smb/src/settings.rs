//! How the service is set.

use std::time::Duration;

use base::limits::SMB_IDLE;

/// What is encrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encryption {
    /// What a client encrypts.
    #[default]
    Offered,
    /// Everything: clients without encryption are refused.
    Required,
    /// Nothing.
    Off,
}

/// How the service is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name of the server, as it is sent to clients.
    pub name: String,
    /// What is encrypted.
    pub encryption: Encryption,
    /// Whether requests that are neither signed nor encrypted are refused.
    pub signing_required: bool,
    /// Whether a client may sign in without a name.
    pub anonymous: bool,
    /// Whether a session may have several connections.
    pub multichannel: bool,
    /// How long a connection without open files may be silent.
    pub idle: Duration,
    /// Permission bits that new files and directories do not get.
    pub umask: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "plimsoll".to_owned(),
            encryption: Encryption::default(),
            signing_required: true,
            anonymous: false,
            multichannel: false,
            idle: SMB_IDLE,
            umask: 0o022,
        }
    }
}
