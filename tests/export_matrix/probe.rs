//! A client of any version that mounts, looks at a handle from elsewhere, reads and makes
//! something, and the statuses that it should meet.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use e2e::nfs3::{self, Handle};
use e2e::nfs4::{self, fattr};
use e2e::server::Server;
use socket2::{Domain, Socket, Type};
use wire::nfs3::Sattr3;
use wire::nfs4::{
    ArgOp, Attrs4, Component4, CreateArgs4, Createtype4, Ftype4, ReadArgs4, Stateid4, attr4,
};

/// What a client met with: a status, or [`DONE`].
type Status = String;
const DONE: &str = "done";

/// A protocol, and its minor version.
#[derive(Debug, Clone, Copy)]
pub enum Version {
    /// NFSv3.
    Three,
    /// NFSv4.
    Four(u32),
}

/// All of them.
pub const VERSIONS: [Version; 3] = [Version::Three, Version::Four(0), Version::Four(1)];

/// Whence a client calls.
#[derive(Debug, Clone, Copy)]
pub enum From {
    /// From this address.
    At(&'static str),
    /// From this address and a port below 1024.
    LowPort(&'static str),
    /// From 127.0.0.1 over TLS.
    Tls,
    /// The same, with a certificate.
    Mtls,
}

/// The credential of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// AUTH_SYS: this user, in the group of the same number.
    User(u32),
    /// AUTH_NONE.
    Anonymous,
}

/// What it meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meets {
    /// The share is not there for it.
    Nothing,
    /// It is refused; over a stronger transport it would be admitted.
    TooWeak,
    /// It is refused; with another flavour it would be admitted.
    Flavorless,
    /// It reads what all users may read, and changes nothing.
    Reads,
    /// It changes, as this user and group.
    Changes(u32, u32),
}

/// Whence, in numbers.
#[derive(Debug, Clone, Copy)]
pub enum ClientAddress {
    Address(IpAddr, bool),
    Tunnel(usize),
}

impl ClientAddress {
    /// Of a row of the table.
    pub fn of(from: &From) -> Self {
        let address = |text: &str| text.parse().expect("an address");
        match from {
            From::At(at) => Self::Address(address(at), false),
            From::LowPort(at) => Self::Address(address(at), true),
            From::Tls => Self::Tunnel(0),
            From::Mtls => Self::Tunnel(1),
        }
    }
}

/// Handles of the share, looked up while all clients had access.
pub struct Files {
    root: Handle,
    open: Handle,
    private: Handle,
}

impl Files {
    /// Asks for them.
    pub fn of(server: &Server) -> Self {
        let (mut client, root) = server.mount(0, 0);
        let [open, private] =
            ["open", "private"].map(|name| client.lookup(&root, name).expect("a file").handle);
        Self { root, open, private }
    }
}

/// The server.
pub struct Target {
    pub port: u16,
    /// With TLS, without and with a certificate.
    pub tunnels: [SocketAddr; 2],
    pub export: String,
    pub files: Files,
    pub dir: PathBuf,
}

/// A connection from a place. A machine's own address is called from that address.
fn connect(target: &Target, place: ClientAddress) -> TcpStream {
    let (address, low) = match place {
        ClientAddress::Tunnel(n) => {
            return TcpStream::connect(target.tunnels[n]).expect("a tunnel");
        }
        ClientAddress::Address(address, low) => (address, low),
    };
    // Downwards, so that none is used again while the kernel still remembers it.
    static NEXT: AtomicU32 = AtomicU32::new(1023);
    let port = if low { NEXT.fetch_sub(1, Ordering::Relaxed) as u16 } else { 0 };
    let local = SocketAddr::new(address, port);
    let socket = Socket::new(Domain::for_address(local), Type::STREAM, None).expect("a socket");
    socket.bind(&local.into()).expect("a source address");
    socket.connect(&SocketAddr::new(address, target.port).into()).expect("a connection");
    socket.into()
}

enum Client {
    Three(nfs3::Client),
    Four(nfs4::Client),
}

fn met3<T>(outcome: nfs3::Outcome<T>) -> Status {
    match outcome {
        Ok(_) => DONE.to_owned(),
        Err(nfs3::Failure::Status(status)) => status.to_string(),
        Err(nfs3::Failure::Broken(what)) => what,
    }
}

fn met4<T>(outcome: nfs4::Outcome<T>) -> Status {
    match outcome {
        Ok(_) => DONE.to_owned(),
        Err(nfs4::Failure::Status(status)) => status.to_string(),
        Err(nfs4::Failure::Broken(what)) => what,
    }
}

impl Client {
    fn new(target: &Target, place: ClientAddress, who: Credential, version: Version) -> Self {
        static VERIFIER: AtomicU32 = AtomicU32::new(1);
        let id = if let Credential::User(id) = who { id } else { 0 };
        let rpc = nfs3::Client::over(connect(target, place), id, id).expect("a connection");
        let rpc = if who == Credential::Anonymous { rpc.anonymous() } else { rpc };
        match version {
            Version::Three => Self::Three(rpc),
            Version::Four(minor) => {
                let verifier = VERIFIER.fetch_add(1, Ordering::Relaxed);
                // Each principal is a client of its own.
                let name = format!("{who:?}");
                let client = nfs4::Client::over(rpc, minor, &name, verifier.into());
                Self::Four(client.expect("a session"))
            }
        }
    }

    fn mount(&mut self, export: &str) -> Status {
        match self {
            Self::Three(client) => met3(client.mnt(export)),
            Self::Four(client) => met4(client.walk(export)),
        }
    }

    fn look(&mut self, file: &[u8]) -> Status {
        match self {
            Self::Three(client) => met3(client.getattr(file)),
            Self::Four(client) => met4(client.getattr(file, &[attr4::SIZE], |_| ())),
        }
    }

    fn read(&mut self, file: &[u8]) -> Status {
        match self {
            Self::Three(client) => met3(client.read(file, 0, 16)),
            Self::Four(client) => {
                let args = ReadArgs4 { stateid: Stateid4::ANONYMOUS, offset: 0, count: 16 };
                met4(client.at(file, &[ArgOp::Read(args)]))
            }
        }
    }

    fn mkdir(&mut self, dir: &[u8], name: &str) -> Status {
        match self {
            Self::Three(client) => {
                let mode = Sattr3 { mode: Some(0o755), ..Sattr3::default() };
                met3(client.mkdir(dir, name, mode))
            }
            Self::Four(client) => {
                let mut buf = Vec::new();
                let mode = Attrs4 { mode: Some(0o755), ..Attrs4::default() };
                let create = ArgOp::Create(CreateArgs4 {
                    objtype: Createtype4::Other(Ftype4::DIR),
                    objname: Component4(name.as_bytes()),
                    createattrs: fattr(&mode, &mut buf),
                });
                met4(client.at(dir, &[create]))
            }
        }
    }
}

/// The statuses of mounting, looking, reading the file of all users, reading root's, making a
/// directory.
fn expected(version: Version, meets: Meets) -> [&'static str; 5] {
    let three = matches!(version, Version::Three);
    let denied = if three { "NFS3ERR_ACCES" } else { "NFS4ERR_ACCESS" };
    let read_only = if three { "NFS3ERR_ROFS" } else { "NFS4ERR_ROFS" };
    match (meets, three) {
        (Meets::Nothing | Meets::TooWeak, true) => {
            ["MNT3ERR_ACCES", denied, denied, denied, denied]
        }
        // MOUNT returns the accepted flavours, whatever the flavour of the call.
        (Meets::Flavorless, true) => [DONE, denied, denied, denied, denied],
        (Meets::Nothing, false) => ["NFS4ERR_NOENT", denied, denied, denied, denied],
        (Meets::TooWeak | Meets::Flavorless, false) => ["NFS4ERR_WRONGSEC"; 5],
        (Meets::Reads, _) => [DONE, DONE, DONE, denied, read_only],
        (Meets::Changes(0, _), _) => [DONE; 5],
        (Meets::Changes(..), _) => [DONE, DONE, DONE, denied, DONE],
    }
}

/// Compares what a client meets with what it should.
pub fn check(
    target: &Target,
    place: ClientAddress,
    who: Credential,
    version: Version,
    meets: Meets,
    what: &str,
) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("made{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let (mut client, files) = (Client::new(target, place, who, version), &target.files);
    let met = [
        client.mount(&target.export),
        client.look(&files.root),
        client.read(&files.open),
        client.read(&files.private),
        client.mkdir(&files.root, &name),
    ];
    assert_eq!(met, expected(version, meets), "{what}");
    let made = fs::metadata(target.dir.join(&name)).ok().map(|m| (m.uid(), m.gid()));
    let owner = if let Meets::Changes(uid, gid) = meets { Some((uid, gid)) } else { None };
    assert_eq!(made, owner, "{what}: whose is what it made");
}
