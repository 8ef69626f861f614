//! Who may use a share over the services that transfer files, each of which has rules of its own.

use std::sync::Arc;

use super::rules::Current;

/// A service that transfers files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Service {
    /// FTP and FTPS.
    Ftp,
    /// SFTP.
    Sftp,
    /// HTTP, HTTPS and WebDAV.
    Http,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ftp, Self::Sftp, Self::Http];

    /// Its name, everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ftp => "ftp",
            Self::Sftp => "sftp",
            Self::Http => "http",
        }
    }
}

/// The rules for each of the services; none at all: everybody who has signed in may do everything.
#[derive(Debug, Clone, Default)]
pub struct ServiceRules {
    /// FTP and FTPS.
    pub ftp: Arc<Current>,
    /// SFTP.
    pub sftp: Arc<Current>,
    /// HTTP, HTTPS and WebDAV.
    pub http: Arc<Current>,
}

impl ServiceRules {
    /// Those for one service.
    pub fn of(&self, service: Service) -> &Arc<Current> {
        match service {
            Service::Ftp => &self.ftp,
            Service::Sftp => &self.sftp,
            Service::Http => &self.http,
        }
    }
}
