//! The programs that are compared, and their arguments: default settings except for the address of
//! the other side.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lab::bridge::scene::SECOND;

use super::data::{Data, Job, Shape};
use super::far::{Far, PORT};
use crate::programs::{Program, Programs};

/// How many rsyncs run in parallel.
const BESIDE: u32 = 4;
/// Runs each of its arguments, a line of the shell, in parallel; fails when one does.
const ALL_BESIDE: &str = "for line; do sh -c \"exec $line\" & pids=\"$pids $!\"; done; \
    failed=0; for pid in $pids; do wait \"$pid\" || failed=1; done; exit $failed";

/// A program that is compared.
pub struct Peer {
    /// Its name in tables and options.
    pub name: &'static str,
    /// Its version, as it prints it.
    pub version: String,
    /// How it transfers the large file.
    pub shape: Shape,
    kind: Kind,
}

enum Kind {
    Dsync(PathBuf),
    Rsync(Program),
    Scp,
    Rclone,
}

/// All names, in the order of the tables.
pub const NAMES: [&str; 5] = ["dsync", "rsync", "rsync-x4", "scp", "rclone"];

/// Finds those that are requested; the names of the missing ones.
///
/// # Errors
/// The file `plimsoll` does not exist.
pub fn find(
    wanted: &[String],
    plimsoll: &Path,
    programs: &Programs,
) -> io::Result<(Vec<Peer>, Vec<&'static str>)> {
    let plimsoll = plimsoll.canonicalize()?;
    let (mut peers, mut missing) = (Vec::new(), Vec::new());
    for name in NAMES.into_iter().filter(|name| wanted.iter().any(|w| w == name)) {
        let shape = if name == "rsync-x4" { Shape::Parts(BESIDE) } else { Shape::Whole };
        let own = || Program { path: plimsoll.clone(), root: PathBuf::from("/") };
        let found = match name {
            "dsync" => Some((own().version("--version"), Kind::Dsync(plimsoll.clone()))),
            "scp" => programs
                .find("ssh")
                .filter(|_| programs.find("scp").is_some())
                .map(|ssh| (ssh.version("-V"), Kind::Scp)),
            "rclone" => programs.find(name).map(|p| (p.version("version"), Kind::Rclone)),
            _ => programs.find("rsync").map(|p| (p.version("--version"), Kind::Rsync(p))),
        };
        match found {
            Some((version, kind)) => peers.push(Peer { name, version, shape, kind }),
            None => missing.push(name),
        }
    }
    Ok((peers, missing))
}

impl Peer {
    /// Its arguments for a job.
    ///
    /// # Errors
    /// When its lists cannot be written.
    pub fn command(&self, job: Job, data: &Data, far: &Far) -> io::Result<Vec<String>> {
        let folder = Data::folder(job, self.shape);
        let from = data.from().join(folder).display().to_string();
        let (above, to) = (data.to(), data.to().join(folder));
        let there = |path: &Path| format!("root@{SECOND}:{}", path.display());
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        Ok(match &self.kind {
            Kind::Dsync(program) => {
                let program = program.display().to_string();
                let (to, ssh) = (there(&to), far.ssh());
                words(&[&program, "dsync", &from, &to, "--rsh", &ssh, "--remote-program", &program])
            }
            Kind::Rsync(program) => match self.shape {
                Shape::Whole => rsync(program, far, &[&from, &there(&above)]),
                Shape::Parts(_) => parallel(program, job, data, far)?,
            },
            Kind::Scp => {
                words(&["scp", "-F", &far.file("config"), "-r", "-p", "-q", &from, &there(&above)])
            }
            Kind::Rclone => {
                let to = format!(":sftp:{}", to.display());
                let (config, key) = (far.file("rclone"), far.file("key"));
                let (host, port) = (SECOND.to_string(), PORT.to_string());
                let mut all = words(&["rclone", "copy", &from, &to, "-q", "--config", &config]);
                all.extend(words(&["--sftp-host", &host, "--sftp-port", &port]));
                all.extend(words(&["--sftp-user", "root", "--sftp-key-file", &key]));
                all
            }
        })
    }
}

fn rsync(program: &Program, far: &Far, rest: &[&str]) -> Vec<String> {
    let mut words = program.command();
    words.extend(["-a", "-e"].map(str::to_owned));
    words.push(far.ssh());
    // The one at the other side may be an unpacked one, too.
    words.push(format!("--rsync-path={}", program.command().join(" ")));
    words.extend(rest.iter().map(|word| (*word).to_owned()));
    words
}

/// Several rsyncs in parallel: of the tree each takes the directories of a list, the lists having
/// every n-th; of the large file each takes a part, a separate file.
fn parallel(program: &Program, job: Job, data: &Data, far: &Far) -> io::Result<Vec<String>> {
    let folder = Data::folder(job, Shape::Parts(BESIDE));
    let (from, to) = (data.from().join(folder), data.to().join(folder));
    let there = format!("root@{SECOND}:{}/", to.display());
    let mut all = vec!["sh".to_owned(), "-c".to_owned(), ALL_BESIDE.to_owned(), "sh".to_owned()];
    for n in 0..BESIDE {
        let words = if job == Job::Tree {
            let list = data.base.join(format!("list{n}"));
            let own: Vec<String> =
                data.directories().skip(n as usize).step_by(BESIDE as usize).collect();
            fs::write(&list, own.join("\n"))?;
            let list = format!("--files-from={}", list.display());
            rsync(program, far, &["-r", &list, &from.display().to_string(), &there])
        } else {
            rsync(program, far, &[&from.join(format!("p{n}")).display().to_string(), &there])
        };
        // Nothing of it has quotes within.
        all.push(words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "));
    }
    Ok(all)
}
