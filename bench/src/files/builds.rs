//! Whole files served by two builds of this server in turn.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::client::service::at::Scheme;

use super::case::{Case, SMALL, Work};
use super::ours::{self, Uploads};
use super::peers::Peer;
use super::transfer;
use super::tree::Tree;
use crate::ours::SMB_PORT;
use crate::pairs::{self, Extent, Outcome};

/// MiB of a large file; at 1 to 2 GB/s about half a second.
const LARGE_MIB: u64 = 1024;
/// Small files at most in one stretch.
const SMALL_FILES: u32 = 10_000;

/// Two builds serving one tree.
pub struct Builds {
    tree: Tree,
    servers: [Peer; 2],
}

/// The four rows: each protocol, both directions, large and small files.
fn cases() -> [Case; 4] {
    use Work::{Download, Upload};
    let large =
        |protocol, work| Case { protocol, work, streams: 1, files: 1, size: LARGE_MIB << 20 };
    [
        large(Scheme::Ftp, Download),
        large(Scheme::Sftp, Download),
        large(Scheme::Https, Upload),
        Case {
            protocol: Scheme::Https,
            work: Download,
            streams: 8,
            files: SMALL_FILES,
            size: SMALL,
        },
    ]
}

impl Builds {
    /// Starts both: the earlier build, then the later one.
    ///
    /// # Errors
    /// When one does not start.
    pub fn start(base: &Path, before: &Path, after: &Path) -> io::Result<Self> {
        let tree = Tree::empty(base)?;
        let servers = [
            ours::start_as(before, &tree, Uploads::Whole, "before")?,
            ours::start_as(after, &tree, Uploads::Whole, "after")?,
        ];
        Ok(Self { tree, servers })
    }

    /// Names of the rows.
    pub fn rows() -> Vec<String> {
        cases().iter().map(Case::name).collect()
    }

    /// The rows that are asked for, on both in turn.
    ///
    /// # Errors
    /// When a transfer fails.
    pub fn measure(&self, extent: &Extent) -> io::Result<Vec<Outcome>> {
        let mut all = Vec::new();
        for (row, name) in Self::rows().into_iter().enumerate() {
            if name.contains(&extent.only) {
                self.warm(row)?;
                let unit = if name.contains(" 4K ") { "µs/file" } else { "s/GB" };
                let cost = |build, time| self.cost(row, build, time);
                all.push(pairs::run(extent, name, unit, cost)?);
            }
        }
        Ok(all)
    }

    /// The directory that both serve.
    pub fn root(&self) -> &Path {
        &self.tree.root
    }

    /// Where SMB of a build would be: port, share, and its state directory.
    ///
    /// # Errors
    /// When there is no such build.
    pub fn smb(&self, build: usize) -> io::Result<(u16, String, PathBuf)> {
        let peer = self.servers.get(build).ok_or_else(|| io::Error::other("two builds"))?;
        let way = peer.ways.first().ok_or_else(|| io::Error::other("no services"))?;
        let port = way.at.port - way.protocol.port() + SMB_PORT;
        let share = way.at.path.trim_matches('/').to_owned();
        Ok((port, share, self.tree.base.join(peer.name).join("state")))
    }

    /// Prepares the files of a row and moves some through both builds, compared whole.
    ///
    /// # Errors
    /// When a transfer fails.
    fn warm(&self, row: usize) -> io::Result<()> {
        let case = self.case(row)?;
        self.tree.source(&case)?;
        self.tree.source(&self.tree.warm(&case))?;
        for peer in &self.servers {
            transfer::warm_up(&case, &self.tree, peer, way(peer, &case)?)?;
        }
        Ok(())
    }

    /// Server CPU of one stretch: seconds per 10^9 bytes, or µs per small file.
    ///
    /// # Errors
    /// When a transfer fails.
    fn cost(&self, row: usize, build: usize, time: Duration) -> io::Result<f64> {
        let case = self.case(row)?;
        let peer = self.servers.get(build).ok_or_else(|| io::Error::other("two builds"))?;
        let (figure, _) = transfer::run(&case, &self.tree, peer, way(peer, &case)?, time)?;
        Ok(figure.cost(&case))
    }

    fn case(&self, row: usize) -> io::Result<Case> {
        cases().get(row).cloned().ok_or_else(|| io::Error::other("no such row"))
    }
}

fn way<'a>(peer: &'a Peer, case: &Case) -> io::Result<&'a super::peers::Endpoint> {
    peer.way(case).ok_or_else(|| io::Error::other(format!("no {}", case.protocol.name())))
}
