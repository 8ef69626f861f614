//! Connections that do nothing, more than there are permits, of one service after the other: a
//! client that comes later signs in.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::api::Api;
use e2e::ftp::Ftp;
use e2e::iscsi::{Access, Initiator};
use e2e::process::{raise_descriptors, run};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::sftp::Sftp;
use e2e::smb::scene::{PASSWORD, SHARE, SMB, USER, set_up};
use e2e::smb::{Offer, Smb};
use e2e::tcp::{address, connect_from};
use e2e::{nfs3, skip, took_at_most};

/// Descriptors of the server: three eighths of them are for connections.
const DESCRIPTORS: u64 = 4_096;
/// More than that.
const CROWD: usize = 1_600;
/// Addresses of a crowd from many.
const ADDRESSES: usize = 128;
/// The longest that another client takes to sign in.
const WAIT: Duration = Duration::from_secs(2);

struct Scene {
    server: Server,
    state: PathBuf,
    _scratch: Scratch,
}

impl Scene {
    fn new(name: &str) -> Self {
        let scratch = Scratch::below(Path::new("/dev/shm"), name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("a mode");
        let (args, descriptors) = (vec!["--lun".into(), "disk=16M".into()], Some(DESCRIPTORS));
        let options = Options { descriptors, args, ..Options::new(&dir, &state) };
        let server = Server::start(&options);
        set_up(&Api::new(&state), &dir.join(SHARE), &[]);
        Self { server, state, _scratch: scratch }
    }

    /// Opens idle connections; those that are closed for others count.
    fn crowd(&self, to: SocketAddr, many: bool) -> Vec<TcpStream> {
        let from = |n: usize| address(if many { 64 + (n % ADDRESSES) as u8 } else { 64 });
        (0..CROWD).filter_map(|n| connect_from(from(n), to).ok()).collect()
    }

    /// Signs in at a service, from an address.
    fn sign_in(&self, service: &str, from: IpAddr) -> io::Result<()> {
        let who = (USER, PASSWORD);
        match service {
            "nfs" => {
                let stream = connect_from(from, self.server.nfs())?;
                let mut client = nfs3::Client::over(stream, 0, 0)?;
                let root = client.mnt(&self.server.export()).map_err(other)?;
                client.getattr(&root).map_err(other).map(drop)
            }
            "smb" => {
                let at = self.server.at(SMB);
                Smb::open((from, at), &Offer::default(), who, SHARE)?.echo().map(drop)
            }
            "iscsi" => {
                let access = Access::of(&self.state);
                Initiator::connect(self.server.at(3260), &access, 1).map(drop)
            }
            "ftp" => match Ftp::connect(from, self.server.at(21))?.sign_in(USER, PASSWORD)? {
                230 => Ok(()),
                code => Err(io::Error::other(code.to_string())),
            },
            "sftp" => Sftp::connect(from, self.server.at(218), who).map(drop),
            "https" => self.over_https(from, 443, "200"),
            // No user has signed in: that is a response of the administration.
            _ => self.over_https(from, 215, "401"),
        }
    }

    fn over_https(&self, from: IpAddr, port: u16, expect: &str) -> io::Result<()> {
        let path = if port == 215 { "api/v1/status" } else { "" };
        let url = format!("https://{}/{path}", self.server.at(port));
        let (from, user) = (from.to_string(), format!("{USER}:{PASSWORD}"));
        let mut curl = Command::new("curl");
        curl.args(["-sk", "--interface", &from, "-o", "/dev/null", "-w", "%{http_code}"]);
        if port == 443 {
            curl.args(["-u", &user]);
        }
        let out = run(curl.arg(&url), Duration::from_secs(60));
        match String::from_utf8_lossy(&out.stdout).as_ref() {
            code if code == expect => Ok(()),
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    fn at(&self, service: &str) -> SocketAddr {
        match service {
            "nfs" => self.server.nfs(),
            "smb" => self.server.at(SMB),
            "iscsi" => self.server.at(3260),
            "ftp" => self.server.at(21),
            "sftp" => self.server.at(218),
            "https" => self.server.at(443),
            _ => self.server.at(215),
        }
    }
}

fn other(error: impl std::fmt::Debug) -> io::Error {
    io::Error::other(format!("{error:?}"))
}

fn idle_connections_shut_no_client_out(many: bool) {
    if raise_descriptors() < 2 * CROWD as u64 {
        skip!("hostile-crowds", "too few descriptors");
    }
    let scene = Scene::new("hostile-crowds");
    for service in ["nfs", "smb", "iscsi", "https", "ftp", "sftp", "administration"] {
        let crowd = scene.crowd(scene.at(service), many);
        assert_eq!(crowd.len(), CROWD);
        // Another client, and one of the same address.
        for from in [8, 64] {
            // An unsigned connection of SSH costs its address a while.
            if service == "sftp" && from == 64 {
                continue;
            }
            let began = Instant::now();
            let done = scene.sign_in(service, address(from));
            assert!(done.is_ok(), "{service} from {from}, many addresses: {many}: {done:?}");
            took_at_most(service, began.elapsed(), WAIT);
        }
    }
}

#[test]
fn idle_connections_of_one_address_shut_no_client_out() {
    idle_connections_shut_no_client_out(false);
}

#[test]
fn idle_connections_of_many_addresses_shut_no_client_out() {
    idle_connections_shut_no_client_out(true);
}
