//! Three rows each of the protocols with sessions: SMB and iSCSI.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use lab::workload::Kind;

use crate::load::Case;
use crate::pairs::{self, Extent, Outcome};
use crate::servers::{Server, Version};
use crate::{iscsi, ours};

/// First ports of the two builds.
const OFFSETS: [u16; 2] = [28_600, 29_100];
/// Names of their directories.
const NAMES: [&str; 2] = ["before", "after"];
/// Without signatures, so that messages and not cryptography are compared.
const SMB_OPTIONS: &str = "?signing=off";

fn case(name: &str, kind: Kind, block: u32, (connections, depth): (u32, u32)) -> Case {
    let file_size = if block < 64 << 10 { 16 << 20 } else { iscsi::UNIT / 2 };
    let name = format!("{name} {connections}x{depth}");
    Case { name, kind, block, file_size, connections, depth }
}

fn smb() -> [Case; 3] {
    use Kind::{RandRead, SeqRead, SeqWrite};
    [
        case("SMB READ 4K", RandRead, 4096, (8, 16)),
        case("SMB WRITE 4K", SeqWrite, 4096, (8, 16)),
        case("SMB READ 64K", SeqRead, 64 << 10, (1, 8)),
    ]
}

fn iscsi() -> [Case; 3] {
    use Kind::{RandRead, SeqRead, SeqWrite};
    [
        case("iSCSI READ 4K", RandRead, 4096, (1, 32)),
        case("iSCSI WRITE 4K", SeqWrite, 4096, (1, 32)),
        case("iSCSI READ 64K", SeqRead, 64 << 10, (1, 8)),
    ]
}

/// A build with a share for SMB and a unit for iSCSI.
struct Build {
    server: Server,
    smb: String,
    iscsi: String,
}

/// Where the load of a protocol goes.
type Url = fn(&Build) -> &str;

fn start(binary: &Path, base: &Path, offset: u16) -> io::Result<Build> {
    let (server, iscsi) = iscsi::ours(binary, base, offset)?;
    // The user of SMB is not the owner.
    std::fs::set_permissions(base.join("share"), Permissions::from_mode(0o777))?;
    let port = ours::SMB_PORT + offset;
    ours::enable_smb(binary, &base.join("state"), port)?;
    let share = server.url(Version::V3).rsplit('/').next().unwrap_or_default();
    let smb = format!("{}{SMB_OPTIONS}", ours::smb_url(port, share));
    Ok(Build { server, smb, iscsi })
}

/// The rows that are asked for, on two builds in turn.
///
/// # Errors
/// When a build does not start or a load fails.
pub fn rows(extent: &Extent, base: &Path, binaries: [&Path; 2]) -> io::Result<Vec<Outcome>> {
    let mut cases = smb().into_iter().chain(iscsi());
    if !cases.any(|case| case.name.contains(&extent.only)) {
        return Ok(Vec::new());
    }
    let [first, second] =
        [0, 1].map(|build| start(binaries[build], &base.join(NAMES[build]), OFFSETS[build]));
    let builds = [first?, second?];
    let mut all = Vec::new();
    let rows: [([Case; 3], Url); 2] =
        [(smb(), |build| &build.smb), (iscsi(), |build| &build.iscsi)];
    for (cases, url) in rows {
        let at = builds.each_ref().map(|build| (url(build), build.server.pid));
        for case in &cases {
            all.extend(pairs::load(extent, case, at)?);
        }
    }
    Ok(all)
}
