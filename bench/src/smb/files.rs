//! Whole files by smbclient: the server's cost, sign-in subtracted.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base::clock::{NS_PER_S, monotonic_ns};

use super::Cost;
use super::servers::Server;
use crate::ours::{SMB_PASSWORD, SMB_USER};
use crate::room::ReservedPages;

/// Direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// From the server.
    Get,
    /// To the server.
    Put,
}

/// Files of one size that are transferred by one command.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    /// Direction.
    pub work: Work,
    /// Bytes of each.
    pub size: u64,
    /// How many.
    pub files: u32,
}

impl Transfer {
    /// Name in the tables.
    pub fn name(&self) -> String {
        let work = if self.work == Work::Get { "get" } else { "put" };
        match self.size {
            size if size < 1 << 20 => format!("{work} {} KiB files", size >> 10),
            size => format!("{work} {} MiB", size >> 20),
        }
    }

    /// Source and destination of the files: on the share and outside of it.
    fn folders(&self, base: &Path) -> (PathBuf, PathBuf) {
        let (there, here) = (base.join("share/files"), base.join("here"));
        match self.work {
            Work::Get => (there, here),
            Work::Put => (here, there),
        }
    }

    /// Makes the files.
    ///
    /// # Errors
    /// There is no space for them.
    pub fn prepare(&self, base: &Path) -> io::Result<()> {
        let (from, to) = self.folders(base);
        for folder in [&from, &to] {
            fs::create_dir_all(folder)?;
        }
        let owner = fs::metadata(base.join("share"))?;
        let (uid, gid) = (owner.uid(), owner.gid());
        chown(base.join("share/files"), Some(uid), Some(gid))?;
        let content: Vec<u8> = (0..self.size.min(1 << 20)).map(|at| (at * 7 / 3) as u8).collect();
        for number in 0..self.files {
            let path = from.join(format!("f{number}"));
            let mut file = fs::File::create(&path)?;
            let mut left = self.size;
            while left > 0 {
                let part = content.get(..left.min(content.len() as u64) as usize);
                io::Write::write_all(&mut file, part.unwrap_or_default())?;
                left -= part.map_or(0, <[u8]>::len) as u64;
            }
            chown(path, Some(uid), Some(gid))?;
        }
        Ok(())
    }

    /// Removes them.
    ///
    /// # Errors
    /// They do not exist.
    pub fn clean(&self, base: &Path) -> io::Result<()> {
        let (from, to) = self.folders(base);
        fs::remove_dir_all(from)?;
        fs::remove_dir_all(to)
    }

    /// One command of smbclient, less the cost of signing in.
    ///
    /// # Errors
    /// It fails, or a file is incomplete.
    pub fn run(&self, base: &Path, server: &Server, protection: &str) -> io::Result<Cost> {
        let (_, to) = self.folders(base);
        let all = self.size * u64::from(self.files);
        drop(ReservedPages::hold(all)?);
        let commands = match (self.work, self.files) {
            (Work::Get, 1) => "cd files; get f0 /dev/null",
            (Work::Get, _) => "prompt off; cd files; mget f*",
            (Work::Put, _) => "prompt off; cd files; mput f*",
        };
        let begun = smbclient(base, server, protection, "cd files")?;
        let whole = smbclient(base, server, protection, commands)?;
        for number in 0..self.files {
            let path = to.join(format!("f{number}"));
            if self.work == Work::Get && self.files == 1 {
                continue;
            }
            if fs::metadata(&path)?.len() != self.size {
                return Err(io::Error::other(format!("{} is not whole", path.display())));
            }
            fs::remove_file(path)?;
        }
        let (cpu, seconds) = (whole.0 - begun.0, (whole.1 - begun.1).max(1e-9));
        Ok(match self.files {
            1 => Cost { cpu: cpu * 1e9 / all as f64, rate: all as f64 / 1e9 / seconds },
            files => Cost { cpu: cpu * 1e6 / f64::from(files), rate: f64::from(files) / seconds },
        })
    }
}

/// CPU time of the server and time for some commands of smbclient, seconds.
fn smbclient(
    base: &Path,
    server: &Server,
    protection: &str,
    commands: &str,
) -> io::Result<(f64, f64)> {
    let (before, start) = (server.group.cpu_at_rest()?, monotonic_ns());
    let done = Command::new("smbclient")
        .arg(format!("//127.0.0.1/{}", server.share))
        .args(["-p", &server.port.to_string(), "-U", &format!("{SMB_USER}%{SMB_PASSWORD}")])
        .args(["-m", "SMB3_11", protection, "-s", "/dev/null", "-c", commands])
        .current_dir(base.join("here"))
        .stdin(Stdio::null())
        .output()?;
    let seconds = (monotonic_ns() - start) as f64 / NS_PER_S as f64;
    let cpu = server.group.cpu_at_rest()? - before;
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    match done.status.success() && !said.contains("NT_STATUS") {
        true => Ok((cpu, seconds)),
        false => Err(io::Error::other(format!("{}: {commands}: {}", server.name, said.trim()))),
    }
}
