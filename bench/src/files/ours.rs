//! Plimsoll on the tree: the services with their defaults, except that HTTP without TLS is served
//! and accepts passwords, which a comparison with others needs.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::Path;

use lab::client::service::at::Scheme;

use super::case::PROTOCOLS;
use super::peers::{self, Peer, UID};
use super::tree::Tree;
use super::{OURS, PASSWORD, USER};
use crate::ours;

/// Standard ports of the services, which all move by the offset.
const PORTS: [u16; 11] = [21, 80, 111, 215, 218, 443, 445, 990, 2049, 2150, 3260];
/// Offsets that are tried, below the kernel's range of automatic ports (ip_local_port_range).
const OFFSETS: std::ops::Range<u16> = 11_000..25_000;

/// How an upload is stored until its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uploads {
    /// Another file, flushed and renamed: the default.
    Whole,
    /// The file itself, as with the peers.
    InPlace,
}

impl Uploads {
    fn name(self) -> &'static str {
        match self {
            Self::Whole => OURS,
            Self::InPlace => "plimsoll in place",
        }
    }
}

/// Starts the server.
///
/// # Errors
/// When it does not announce itself, or refuses its settings.
pub fn start(binary: &Path, tree: &Tree, uploads: Uploads) -> io::Result<Peer> {
    start_as(binary, tree, uploads, uploads.name())
}

/// Starts the server with another name: several builds on one tree.
///
/// # Errors
/// As [`start`].
pub fn start_as(
    binary: &Path,
    tree: &Tree,
    uploads: Uploads,
    name: &'static str,
) -> io::Result<Peer> {
    let services = match uploads {
        Uploads::Whole => &PROTOCOLS[..],
        // HTTP has no such setting.
        Uploads::InPlace => &[Scheme::Ftp, Scheme::Ftps, Scheme::Sftp][..],
    };
    let own = tree.base.join(name.replace(' ', "-"));
    let state = own.join("state").display().to_string();
    fs::create_dir_all(&own)?;
    let offset = free_offset()?;
    let (group, said) = ours::start(binary, &tree.root, (&state, &own.join("log")), offset)?;
    let share = said["shares"].as_object().and_then(|all| all.keys().next());
    let share = share.ok_or_else(|| io::Error::other(format!("no share in {said}")))?;
    set(binary, &state, uploads)?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let mut peer =
        Peer { name, version, ways: Vec::new(), group, uploads_only: uploads == Uploads::InPlace };
    for protocol in services {
        let port = offset + protocol.port();
        peer.ways.push(peers::way(*protocol, port, share, "aes128-gcm")?);
    }
    Ok(peer)
}

/// The user, with the uid that the peers impersonate as well, and the settings.
fn set(binary: &Path, state: &str, uploads: Uploads) -> io::Result<()> {
    let mut lines = vec![
        format!("configuration users create {USER} uid={UID} gid={UID} password={PASSWORD}"),
        "configuration services http set plain=serve basic_over_plain=on".to_owned(),
    ];
    if uploads == Uploads::InPlace {
        for service in ["ftp", "sftp"] {
            lines.push(format!("configuration services {service} set uploads=in-place"));
        }
    }
    ours::set(binary, state, &lines)
}

fn free_offset() -> io::Result<u16> {
    let first = std::process::id() as usize % OFFSETS.len();
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut offsets = OFFSETS.cycle().skip(first).step_by(37).take(1000);
    let found = offsets.find(|offset| PORTS.iter().all(|port| free(port + offset)));
    found.ok_or_else(|| io::Error::other("no free ports"))
}
