//! Today's servers: each started on the tree on separate ports, or listed with the reason why not.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::clock::Deadline;
use lab::client::service::at::{Scheme, ServiceAt};

use super::case::{Case, Work};
use super::daemons::{self, Setting};
use super::tree::Tree;
use super::{PASSWORD, USER};
use crate::group::Group;
use crate::programs::{Program, Programs, made};

/// The uid that the servers impersonate: no user of a usual machine has it.
pub const UID: u32 = 12_021;
/// Time limit until a server listens.
const START_MAX: Duration = Duration::from_secs(20);
/// How often a port is tried meanwhile.
const START_POLL: Duration = Duration::from_millis(20);
/// The password as `crypt(3)` has it (SHA-512).
const CRYPTED: &str = "$6$plimsollbench$/A5MrVwjh9sw09dX/HN/9rHPdYeY6oeHsgsI4xWaTP7\
                       ytZXEd7VE2us75jxZ.mSpCuIbgQ1k5O0iMF49nnjJo0";
/// The same in the form that web servers check with least CPU time (SHA-1, base64).
const HASHED: &str = "{SHA}o3cOkwHD7Gf2y1wTOReNwr96zYY=";
/// Runs a server where the account exists, and nowhere else on the machine.
const WITH_ACCOUNT: &str = "mount --bind \"$0/passwd\" /etc/passwd && \
    mount --bind \"$0/shadow\" /etc/shadow && mount --bind \"$0/group\" /etc/group && exec \"$@\"";

/// A running server.
pub struct Peer {
    /// Name in the tables.
    pub name: &'static str,
    /// The version that its program reports.
    pub version: String,
    /// Its addresses.
    pub ways: Vec<Endpoint>,
    /// Its processes.
    pub group: Group,
    /// It is measured for uploads only.
    pub uploads_only: bool,
}

/// One protocol of a server.
pub struct Endpoint {
    /// Which.
    pub protocol: Scheme,
    /// Where; the path is the root of the tree.
    pub at: ServiceAt,
}

impl Peer {
    /// The direction of a case, if this server is measured for it.
    pub fn way(&self, case: &Case) -> Option<&Endpoint> {
        let asked = !self.uploads_only || case.work == Work::Upload;
        self.ways.iter().find(|way| asked && way.protocol == case.protocol)
    }
}

/// A server without figures.
pub struct Gap {
    /// Which.
    pub name: &'static str,
    /// The protocol, if it has no figures at all for it.
    pub protocol: Option<Scheme>,
    /// The case, if only that is missing.
    pub case: Option<String>,
    /// Why.
    pub why: String,
}

impl Gap {
    /// The rows without figures.
    pub fn about(&self) -> String {
        self.case.clone().or(self.protocol.map(|p| p.name().to_owned())).unwrap_or_default()
    }
}

/// A server that is compared with: name, program, argument that makes it print its version,
/// protocols in the order of its ports.
struct Row(&'static str, &'static str, &'static str, &'static [Scheme]);

/// All servers; rclone has a process for each protocol.
const ROSTER: [Row; 8] = [
    Row("vsftpd", "vsftpd", "-v", &[Scheme::Ftp, Scheme::Ftps]),
    Row("ProFTPD", "proftpd", "-v", &[Scheme::Ftp, Scheme::Ftps, Scheme::Sftp]),
    Row("OpenSSH", "sshd", "-V", &[Scheme::Sftp]),
    Row("nginx", "nginx", "-v", &[Scheme::Http, Scheme::Https]),
    Row("Apache", "apache2", "-v", &[Scheme::Http, Scheme::Https]),
    Row("rclone", "rclone", "version", &[Scheme::Sftp]),
    Row("rclone", "rclone", "version", &[Scheme::Http]),
    Row("rclone", "rclone", "version", &[Scheme::Https]),
];

/// The address of a protocol of a server, with the options that the client must use.
///
/// # Errors
/// When the parts make no address.
pub fn way(protocol: Scheme, port: u16, path: &str, cipher: &str) -> io::Result<Endpoint> {
    let options = match protocol {
        Scheme::Sftp => format!("?insecure&cipher={cipher}"),
        other if other.is_secure() => "?insecure&tls=1.3&cipher=aes128-gcm".to_owned(),
        _ => String::new(),
    };
    let path = path.trim_matches('/');
    let rest = format!("//{USER}:{PASSWORD}@127.0.0.1:{port}/{path}{options}");
    let at = ServiceAt::parse(protocol, &rest);
    Ok(Endpoint { protocol, at: at.map_err(io::Error::other)? })
}

/// Starts all that are requested for these protocols.
///
/// # Errors
/// When their files cannot be prepared.
pub fn start(
    unpacked: Option<&Path>,
    tree: &Tree,
    protocols: &[Scheme],
) -> io::Result<(Vec<Peer>, Vec<Gap>)> {
    let (programs, (mut peers, mut gaps)) = (Programs::new(unpacked), (Vec::new(), Vec::new()));
    let common = Common::make(tree)?;
    for row in &ROSTER {
        if !row.3.iter().any(|p| protocols.contains(p)) {
            continue;
        }
        let started = programs
            .find(row.1)
            .ok_or_else(|| io::Error::other(format!("{} is not installed", row.1)))
            .and_then(|program| common.start(row, &program, tree));
        match started {
            Ok(peer) => peers.push(peer),
            Err(why) => gaps.extend(row.3.iter().map(|protocol| Gap {
                name: row.0,
                protocol: Some(*protocol),
                case: None,
                why: why.to_string(),
            })),
        }
    }
    Ok((peers, gaps))
}

/// What several servers share.
struct Common {
    folder: PathBuf,
}

impl Common {
    fn make(tree: &Tree) -> io::Result<Self> {
        let it = Self { folder: tree.base.join("peers") };
        fs::create_dir_all(&it.folder)?;
        let account = |file: &str, line: &str| {
            let own = fs::read_to_string(Path::new("/etc").join(file)).unwrap_or_default();
            let path = it.folder.join(file);
            fs::write(&path, format!("{own}{line}\n"))?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o644))
        };
        // sshd insists on the second one.
        let ssh = format!("sshd:x:{0}:{0}::/run/sshd:/usr/sbin/nologin", UID + 1);
        account("passwd", &format!("{USER}:x:{UID}:{UID}::/:/bin/sh\n{ssh}"))?;
        account("group", &format!("{USER}:x:{UID}:"))?;
        fs::write(it.folder.join("shadow"), format!("{USER}:{CRYPTED}:19000:0:99999:7:::\n"))?;
        made(
            "openssl",
            &[
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "30",
                "-subj",
                "/CN=localhost",
                "-keyout",
                &it.path("key.pem"),
                "-out",
                &it.path("certificate.pem"),
            ],
        )?;
        let host_key = it.path("host-key");
        made("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-m", "PEM", "-f", &host_key])?;
        Ok(it)
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn start(&self, row: &Row, program: &Program, tree: &Tree) -> io::Result<Peer> {
        let ports = ports(row.3)?;
        let own = self.folder.join(format!("{}-{}", row.0, ports.first().unwrap_or(&0)));
        self.prepare(row, &own, tree)?;
        let setting = Setting {
            own: &own,
            root: &tree.root,
            ports: &ports,
            certificate: (&self.folder.join("certificate.pem"), &self.folder.join("key.pem")),
            host_key: &self.folder.join("host-key"),
        };
        let arguments = daemons::arguments(row.1, &setting, program, row.3)?;
        let log = own.join("log");
        let group = self.run(row.1, program, &arguments, &log)?;
        let (version, uploads_only) = (program.version(row.2), false);
        let mut peer = Peer { name: row.0, version, ways: Vec::new(), group, uploads_only };
        for (protocol, port) in row.3.iter().zip(&ports) {
            await_port(&mut peer.group, *port, &log)?;
            // Web servers and rclone have the tree as their root, the others the machine's.
            let path = match row.1 {
                "nginx" | "apache2" | "rclone" => String::new(),
                _ => tree.root.display().to_string(),
            };
            // The current release has no GCM for SSH.
            let cipher = if row.1 == "proftpd" { "aes128-ctr" } else { "aes128-gcm" };
            peer.ways.push(way(*protocol, *port, &path, cipher)?);
        }
        Ok(peer)
    }

    /// Makes a server's folder, with the files of its users.
    fn prepare(&self, row: &Row, own: &Path, tree: &Tree) -> io::Result<()> {
        for folder in ["", "empty", "bodies", "locks"] {
            fs::create_dir_all(own.join(folder))?;
        }
        for folder in ["bodies", "locks"] {
            // Only root can change the owner, and only for root there is another user.
            let _ = chown(own.join(folder), Some(UID), Some(UID));
        }
        if row.1 == "sshd" {
            fs::create_dir_all("/run/sshd")?;
        }
        let root = tree.root.display();
        let (users, mode) = match row.1 {
            "proftpd" => (format!("{USER}:{CRYPTED}:{UID}:{UID}::{root}:/bin/sh\n"), 0o600),
            _ => (format!("{USER}:{HASHED}\n"), 0o644),
        };
        fs::write(own.join("users"), users)?;
        fs::set_permissions(own.join("users"), fs::Permissions::from_mode(mode))
    }

    fn run(
        &self,
        name: &str,
        program: &Program,
        arguments: &[String],
        log: &Path,
    ) -> io::Result<Group> {
        let folder = self.folder.display().to_string();
        let mut words: Vec<String> = Vec::new();
        if name != "rclone" {
            let with = ["unshare", "--mount", "sh", "-c", WITH_ACCOUNT, &folder];
            words.extend(with.map(str::to_owned));
        }
        words.extend(program.command());
        words.extend(arguments.iter().cloned());
        Group::start(&words.iter().map(String::as_str).collect::<Vec<_>>(), log, None)
    }
}

/// A port for each protocol; FTP and FTPS have the same.
fn ports(protocols: &[Scheme]) -> io::Result<Vec<u16>> {
    let mut ports: Vec<u16> = Vec::new();
    for protocol in protocols {
        let same = ports.last().copied().filter(|_| *protocol == Scheme::Ftps);
        ports.push(same.map_or_else(free_port, Ok)?);
    }
    Ok(ports)
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn await_port(group: &mut Group, port: u16, log: &Path) -> io::Result<()> {
    let end = Deadline::after(START_MAX);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if group.is_gone() || end.passed() {
            let said = fs::read_to_string(log).unwrap_or_default();
            let last = said.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("nothing said");
            return Err(io::Error::other(format!("it does not listen: {}", last.trim())));
        }
        std::thread::sleep(START_POLL);
    }
    Ok(())
}
