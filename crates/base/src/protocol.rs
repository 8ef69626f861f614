//! The one registry of protocols and services: a row for each, from which statistics, share rules,
//! the lock table, the log of transfers, the load laboratory, the API, the command line and the
//! browser take their lists.
//!
//! A new protocol is a row of [`Protocol`] with its `schema/<id>.toml`, a row of [`Service`] if
//! clients connect to it at a port of its own, and a row of [`Scheme`] for each URL scheme that
//! the laboratory's clients are started with. Every `match` on these types is without a wildcard,
//! so the compiler names what else has to be filled.

mod listen;
mod table;

use table::table;

/// A port that something listens at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// What listens there, in messages and in URLs.
    pub name: &'static str,
    /// The port.
    pub number: u16,
}

impl Port {
    /// The highest of all: an offset that it bears is borne by every port.
    pub const fn highest() -> Self {
        let mut highest = ports::ADMIN;
        let (mut service, mut at) = (0, 0);
        while service < Service::ALL.len() {
            let ports = Service::ALL[service].ports();
            if at == ports.len() {
                (service, at) = (service + 1, 0);
            } else {
                if ports[at].number > highest.number {
                    highest = ports[at];
                }
                at += 1;
            }
        }
        highest
    }
}

/// Standard ports, before `--port-offset`.
pub mod ports {
    use super::Port;

    /// NFS, with MOUNT, NLM and NSM (RFC 1813 §2.1).
    pub const NFS: Port = Port { name: "nfs", number: 2049 };
    /// NFS over RDMA (RFC 8267 §6.1).
    pub const NFS_RDMA: Port = Port { name: "nfs-rdma", number: 20049 };
    /// The port mapper, where NFSv3 clients look up NLM (RFC 1833 §3).
    pub const PORTMAP: Port = Port { name: "portmap", number: 111 };
    /// FTP, and FTPS where a client requests it (RFC 959, RFC 4217).
    pub const FTP: Port = Port { name: "ftp", number: 21 };
    /// FTPS that begins with TLS.
    pub const FTPS: Port = Port { name: "ftps", number: 990 };
    /// SFTP; port 22 is the machine's own sshd's.
    pub const SFTP: Port = Port { name: "sftp", number: 218 };
    /// HTTP with WebDAV.
    pub const HTTP: Port = Port { name: "http", number: 80 };
    /// The same over TLS.
    pub const HTTPS: Port = Port { name: "https", number: 443 };
    /// iSCSI (RFC 7143 §9.1).
    pub const ISCSI: Port = Port { name: "iscsi", number: 3260 };
    /// SMB over TCP (MS-SMB2 §2.1).
    pub const SMB: Port = Port { name: "smb", number: 445 };
    /// Echo (RFC 862), the test service.
    #[cfg(feature = "test-services")]
    pub const ECHO: Port = Port { name: "echo", number: 7 };
    /// The API and the browser interface, over HTTPS.
    pub const ADMIN: Port = Port { name: "admin", number: 215 };
}

/// What is known of a protocol outside its own folders.
struct ProtocolRow {
    /// Group of its statistics, name of its clients in the API.
    id: &'static str,
    /// Service that it belongs to.
    service: Service,
    /// Whether its operations are on files.
    has_files: bool,
    /// Whether they move the data of files, so that they count among all that do.
    moves_data: bool,
    /// Its statistics, and the names of its operations and status codes.
    schema: &'static str,
}

table! {
    /// A protocol, with a group of statistics for its operations. The number is that of the records
    /// in the flight recorder.
    pub enum Protocol: ProtocolRow {
        /// NFS version 3 (RFC 1813).
        Nfs3 = 1 => ProtocolRow {
            id: "nfs3",
            service: Service::Nfs,
            has_files: true,
            moves_data: true,
            schema: include_str!("../../../schema/nfs3.toml"),
        },
        /// NFS version 4, all minor versions (RFC 7530, RFC 8881, RFC 7862).
        Nfs4 = 3 => ProtocolRow {
            id: "nfs4",
            service: Service::Nfs,
            has_files: true,
            moves_data: true,
            schema: include_str!("../../../schema/nfs4.toml"),
        },
        /// MOUNT version 3 (RFC 1813, appendix I).
        Mount3 = 2 => ProtocolRow {
            id: "mount3",
            service: Service::Nfs,
            has_files: false,
            moves_data: false,
            schema: include_str!("../../../schema/mount3.toml"),
        },
        /// NLM version 4 and NSM (X/Open XNFS).
        Nlm = 4 => ProtocolRow {
            id: "nlm",
            service: Service::Nfs,
            has_files: true,
            moves_data: false,
            schema: include_str!("../../../schema/nlm.toml"),
        },
        /// FTP and FTPS (RFC 959, RFC 4217).
        Ftp = 5 => ProtocolRow {
            id: "ftp",
            service: Service::Ftp,
            has_files: true,
            moves_data: true,
            schema: include_str!("../../../schema/ftp.toml"),
        },
        /// SFTP version 3 over SSH (draft-ietf-secsh-filexfer-02).
        Sftp = 6 => ProtocolRow {
            id: "sftp",
            service: Service::Sftp,
            has_files: true,
            moves_data: true,
            schema: include_str!("../../../schema/sftp.toml"),
        },
        /// The server side of dsync on a share.
        Dsync = 8 => ProtocolRow {
            id: "dsync",
            service: Service::Sftp,
            has_files: true,
            moves_data: true,
            schema: include_str!("../../../schema/dsync.toml"),
        },
        /// HTTP and HTTPS with WebDAV (RFC 9110, RFC 4918).
        Http = 7 => ProtocolRow {
            id: "http",
            service: Service::Http,
            has_files: true,
            moves_data: true,
            schema: include_str!("../../../schema/http.toml"),
        },
        /// SMB 2.1 to 3.1.1 (MS-SMB2).
        Smb = 9 => ProtocolRow {
            id: "smb",
            service: Service::Smb,
            has_files: true,
            moves_data: true,
            schema: include_str!("../../../schema/smb.toml"),
        },
        /// iSCSI (RFC 7143): commands of SCSI on logical units.
        Iscsi = 10 => ProtocolRow {
            id: "iscsi",
            service: Service::Iscsi,
            has_files: false,
            moves_data: true,
            schema: include_str!("../../../schema/iscsi.toml"),
        },
        /// Echo (RFC 862) with a sign-in: the test service, in no program that is installed.
        Echo = 31 if feature = "test-services" => ProtocolRow {
            id: "echo",
            service: Service::Echo,
            has_files: false,
            moves_data: false,
            schema: include_str!("../../../schema/test-services/echo.toml"),
        },
    }
}

impl Protocol {
    /// Its name everywhere: group of its statistics (`nfs3` in `nfs3.ops`), prefix of client ids.
    pub const fn id(self) -> &'static str {
        self.row().id
    }

    /// The service that it belongs to.
    pub const fn service(self) -> Service {
        self.row().service
    }

    /// Whether its operations are on files.
    pub const fn has_files(self) -> bool {
        self.row().has_files
    }

    /// Whether they move the data of files, so that they count among all that do.
    pub const fn moves_data(self) -> bool {
        self.row().moves_data
    }

    /// `schema/<id>.toml`.
    pub const fn schema(self) -> &'static str {
        self.row().schema
    }

    /// The protocol with this number in a record.
    pub const fn from_u8(number: u8) -> Option<Self> {
        let mut at = 0;
        while at < Self::ALL.len() {
            if Self::ALL[at] as u8 == number {
                return Some(Self::ALL[at]);
            }
            at += 1;
        }
        None
    }

    /// The protocol with this id.
    pub fn by_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.id() == id)
    }
}

/// How a share states which clients or users may use it over a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareMode {
    /// By export rules for hosts, with a mapping of users (exports(5)).
    Export,
    /// By the rights of users that have signed in, restricted for hosts.
    SignIn,
}

/// What is known of a service outside its own folders.
struct ServiceRow {
    /// Its node below `/configuration/services`, its name in the log.
    id: &'static str,
    /// Its name for people.
    title: &'static str,
    /// The protocol of its clients' opens and locks, and of their operations on files.
    protocol: Protocol,
    /// How shares state which clients or users may use them over it; `None` for a service without
    /// shares.
    shares: Option<ShareMode>,
    /// Property of a share with its exceptions, and the title of that property.
    exceptions: (&'static str, &'static str),
    /// Statistic of its open connections.
    connections: &'static str,
    /// Statistics of sign-ins that succeeded and failed; for services with sign-in.
    sign_ins: [&'static str; 2],
    /// Its ports, the first one always open.
    ports: &'static [Port],
}

/// A row with names made of the id and the title.
macro_rules! service {
    ($id:literal, $title:literal, $protocol:expr, $shares:expr, $ports:expr) => {
        ServiceRow {
            id: $id,
            title: $title,
            protocol: $protocol,
            shares: $shares,
            exceptions: (concat!($id, "_exceptions"), concat!($title, " exceptions")),
            connections: concat!($id, ".connections"),
            sign_ins: [concat!($id, ".logins"), concat!($id, ".failures")],
            ports: $ports,
        }
    };
}

table! {
    /// A service that clients connect to: it starts, drains and restarts as one, and has a part of
    /// the connections for itself.
    pub enum Service: ServiceRow {
        /// NFS, with MOUNT, NLM and NSM at the same port.
        Nfs = 0 => service!(
            "nfs", "NFS", Protocol::Nfs4, Some(ShareMode::Export), &[ports::NFS, ports::PORTMAP]
        ),
        /// FTP and FTPS.
        Ftp = 1 => service!(
            "ftp", "FTP", Protocol::Ftp, Some(ShareMode::SignIn), &[ports::FTP, ports::FTPS]
        ),
        /// SFTP, and dsync on shares.
        Sftp = 2 => service!(
            "sftp", "SFTP", Protocol::Sftp, Some(ShareMode::SignIn), &[ports::SFTP]
        ),
        /// HTTP, HTTPS and WebDAV.
        Http = 3 => service!(
            "http", "HTTP", Protocol::Http, Some(ShareMode::SignIn), &[ports::HTTP, ports::HTTPS]
        ),
        /// iSCSI, which serves logical units.
        Iscsi = 4 => service!("iscsi", "iSCSI", Protocol::Iscsi, None, &[ports::ISCSI]),
        /// SMB, which Windows calls file sharing.
        Smb = 5 => service!(
            "smb", "SMB", Protocol::Smb, Some(ShareMode::SignIn), &[ports::SMB]
        ),
        /// Echo, the test service.
        Echo = 6 if feature = "test-services" => service!(
            "echo", "Echo", Protocol::Echo, None, &[ports::ECHO]
        ),
    }
}

impl Service {
    /// Services over which shares are used.
    pub const SHARING: [Self; count(None)] = select(None);
    /// Those of them that are used under export rules for hosts.
    pub const EXPORTING: [Self; count(Some(ShareMode::Export))] = select(Some(ShareMode::Export));
    /// Those of them with sign-in.
    pub const SIGN_IN: [Self; count(Some(ShareMode::SignIn))] = select(Some(ShareMode::SignIn));

    /// Its name everywhere: node, setting of shares, service of log lines.
    pub const fn id(self) -> &'static str {
        self.row().id
    }

    /// Its name for people.
    pub const fn title(self) -> &'static str {
        self.row().title
    }

    /// The protocol of its clients' opens and locks, and of their operations on files.
    pub const fn protocol(self) -> Protocol {
        self.row().protocol
    }

    /// How shares state which clients or users may use them over it; `None` for a service without
    /// shares.
    pub const fn shares(self) -> Option<ShareMode> {
        self.row().shares
    }

    /// Property of a share with its exceptions.
    pub const fn exceptions(self) -> &'static str {
        self.row().exceptions.0
    }

    /// Title of [`Self::exceptions`].
    pub const fn exceptions_title(self) -> &'static str {
        self.row().exceptions.1
    }

    /// Statistic of its open connections.
    pub const fn connections(self) -> &'static str {
        self.row().connections
    }

    /// Statistics of sign-ins that succeeded and failed.
    pub const fn sign_ins(self) -> [&'static str; 2] {
        self.row().sign_ins
    }

    /// Its ports, the first one always open.
    pub const fn ports(self) -> &'static [Port] {
        self.row().ports
    }

    /// Its index in tables with an entry for each of [`Service::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Whether shares are used over the service, in this mode unless any will do.
const fn is_shared(service: Service, mode: Option<ShareMode>) -> bool {
    match (service.shares(), mode) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(has), Some(mode)) => has as u8 == mode as u8,
    }
}

const fn count(mode: Option<ShareMode>) -> usize {
    let (mut at, mut found) = (0, 0);
    while at < Service::ALL.len() {
        found += is_shared(Service::ALL[at], mode) as usize;
        at += 1;
    }
    found
}

const fn select<const N: usize>(mode: Option<ShareMode>) -> [Service; N] {
    let mut selected = [Service::ALL[0]; N];
    let (mut at, mut found) = (0, 0);
    while at < Service::ALL.len() {
        if is_shared(Service::ALL[at], mode) {
            selected[found] = Service::ALL[at];
            found += 1;
        }
        at += 1;
    }
    selected
}

/// What is known of a URL scheme.
struct SchemeRow {
    /// As in a URL, and in the log of transfers.
    name: &'static str,
    /// Its name for people.
    title: &'static str,
    /// Its protocol.
    protocol: Protocol,
    /// Its port unless a URL has one.
    port: Port,
    /// The scheme of the listener that serves it: itself, or the one that it is requested through.
    listener: &'static str,
    /// Whether it is protected against eavesdropping.
    is_secure: bool,
    /// The same without TLS, if this is one with it.
    plain: Option<Scheme>,
    /// What it means in the transfer log; `None` if the log does not distinguish it from another.
    logged: Option<&'static str>,
}

table! {
    /// The scheme of the URLs of a service that transfers files.
    pub enum Scheme: SchemeRow {
        /// FTP (RFC 959) without protection.
        Ftp = 0 => SchemeRow {
            name: "ftp",
            title: "FTP",
            protocol: Protocol::Ftp,
            port: ports::FTP,
            listener: "ftp",
            is_secure: false,
            plain: None,
            logged: Some("FTP without TLS"),
        },
        /// FTP with TLS (RFC 4217): on both connections where a client decides.
        Ftps = 1 => SchemeRow {
            name: "ftps",
            title: "FTPS",
            protocol: Protocol::Ftp,
            port: ports::FTP,
            listener: "ftp",
            is_secure: true,
            plain: Some(Scheme::Ftp),
            logged: Some("FTP under TLS"),
        },
        /// SFTP (draft-ietf-secsh-filexfer-02).
        Sftp = 2 => SchemeRow {
            name: "sftp",
            title: "SFTP",
            protocol: Protocol::Sftp,
            port: ports::SFTP,
            listener: "sftp",
            is_secure: true,
            plain: None,
            logged: Some("SFTP"),
        },
        /// HTTP (RFC 9110).
        Http = 3 => SchemeRow {
            name: "http",
            title: "HTTP",
            protocol: Protocol::Http,
            port: ports::HTTP,
            listener: "http",
            is_secure: false,
            plain: None,
            logged: Some("HTTP without TLS"),
        },
        /// The same with TLS.
        Https = 4 => SchemeRow {
            name: "https",
            title: "HTTPS",
            protocol: Protocol::Http,
            port: ports::HTTPS,
            listener: "https",
            is_secure: true,
            plain: Some(Scheme::Http),
            logged: Some("HTTP over TLS"),
        },
        /// WebDAV (RFC 4918) over HTTP.
        Webdav = 5 => SchemeRow {
            name: "webdav",
            title: "WebDAV",
            protocol: Protocol::Http,
            port: ports::HTTP,
            listener: "http",
            is_secure: false,
            plain: None,
            logged: Some("WebDAV client"),
        },
        /// The same with TLS.
        Webdavs = 6 => SchemeRow {
            name: "webdavs",
            title: "WebDAV with TLS",
            protocol: Protocol::Http,
            port: ports::HTTPS,
            listener: "https",
            is_secure: true,
            plain: Some(Scheme::Webdav),
            logged: None,
        },
    }
}

impl Scheme {
    /// Those that the transfer log distinguishes.
    pub const LOGGED: [Self; logged_count()] = {
        let mut logged = [Self::ALL[0]; logged_count()];
        let (mut at, mut found) = (0, 0);
        while at < Self::ALL.len() {
            if Self::ALL[at].row().logged.is_some() {
                logged[found] = Self::ALL[at];
                found += 1;
            }
            at += 1;
        }
        logged
    };

    /// The same with what each means, as choices of a property.
    pub const LOGGED_CHOICES: [(&'static str, &'static str); Self::LOGGED.len()] = {
        let mut choices = [("", ""); Self::LOGGED.len()];
        let mut at = 0;
        while at < Self::LOGGED.len() {
            let row = Self::LOGGED[at].row();
            if let Some(help) = row.logged {
                choices[at] = (row.name, help);
            }
            at += 1;
        }
        choices
    };

    /// As in a URL, and in the log of transfers.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Its name for people.
    pub const fn title(self) -> &'static str {
        self.row().title
    }

    /// The scheme of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.name() == name)
    }

    /// Its protocol.
    pub const fn protocol(self) -> Protocol {
        self.row().protocol
    }

    /// The service that serves it.
    pub const fn service(self) -> Service {
        self.protocol().service()
    }

    /// Its port unless a URL has one.
    pub const fn port(self) -> u16 {
        self.row().port.number
    }

    /// The scheme of the listener that serves it: itself, or the one that it is requested through.
    pub const fn listener(self) -> &'static str {
        self.row().listener
    }

    /// Whether it is protected against eavesdropping.
    pub const fn is_secure(self) -> bool {
        self.row().is_secure
    }

    /// The same without TLS, if this is one with it.
    pub const fn plain(self) -> Option<Self> {
        self.row().plain
    }
}

const fn logged_count() -> usize {
    let (mut at, mut found) = (0, 0);
    while at < Scheme::ALL.len() {
        found += Scheme::ALL[at].row().logged.is_some() as usize;
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests;
