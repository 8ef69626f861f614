//! The directory of a result as an archive (docs/formats/result.md): the request (`run.toml`), the
//! results, latencies by second (`hist/`), the machines, the server's own data of the time
//! (`analytics/`), pages and tables, and the checksums of all that. It is enough to repeat the run
//! elsewhere, and to see that nothing in it was changed.
//!
//! - [`request`]: what was asked; [`sums`]: checksums; [`machines`]: what the machines are;
//!   [`seconds`]: latencies by second; [`analytics`]: the server's data.

pub mod analytics;
pub mod machines;
pub mod request;
pub mod seconds;
pub mod sums;

use crate::iozone::record::IozoneResult;
use crate::programs::record::ProgramResult;
use crate::record::{self, ClientRecord, RecordError, RunResult, ServerInfo};
use crate::report::{self, Figures};
use request::Request;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use sums::{SUMS, Sums};

/// The request.
pub const REQUEST: &str = "run.toml";
/// The machines.
pub const MACHINES: &str = "machines.json";
/// Text of a program.
pub const TEXT: &str = "program.f";

/// What an archive has of a result beyond its figures: where and when it was measured.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// Program and version.
    pub program: &'a str,
    /// Target without a password.
    pub target: &'a str,
    /// Begin and end, seconds since the Unix epoch.
    pub time: (f64, f64),
    /// What is known of the server.
    pub server: &'a ServerInfo,
    /// The clients, if each is known.
    pub clients: &'a [ClientRecord],
}

impl<'a> From<&'a RunResult> for Measured<'a> {
    fn from(run: &'a RunResult) -> Self {
        let (program, target, clients) = (&run.program, &run.target, &run.clients);
        Self { program, target, time: (run.started, run.ended), server: &run.server, clients }
    }
}

impl<'a> From<&'a ProgramResult> for Measured<'a> {
    fn from(run: &'a ProgramResult) -> Self {
        let (of, target, server) = (&run.provenance, &run.target, &run.server);
        Self { program: &of.program, target, time: (of.started, of.ended), server, clients: &[] }
    }
}

impl<'a> From<&'a IozoneResult> for Measured<'a> {
    fn from(run: &'a IozoneResult) -> Self {
        let (of, target, server) = (&run.provenance, &run.target, &run.server);
        Self { program: &of.program, target, time: (of.started, of.ended), server, clients: &[] }
    }
}

/// An archive that is being written. Until it is sealed it has no checksums.
#[derive(Debug)]
pub struct Archive {
    dir: PathBuf,
    sums: Sums,
}

fn own_uid() -> u32 {
    // SAFETY: takes nothing, and always succeeds.
    unsafe { libc::geteuid() }
}

/// Whether a directory is this user's, and no other user can put anything into it.
fn is_own(dir: &Path) -> bool {
    std::fs::symlink_metadata(dir)
        .is_ok_and(|meta| meta.is_dir() && meta.uid() == own_uid() && meta.mode() & 0o022 == 0)
}

/// Why an archive cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// There are no checksums.
    #[error("{0} is not an archive: it has no {SUMS}")]
    NoSums(String),
    /// Files are not what they were.
    #[error("the archive {dir} was changed: {}", .files.join(", "))]
    Changed {
        /// The archive.
        dir: String,
        /// Each file with what is wrong with it.
        files: Vec<String>,
    },
}

impl Archive {
    /// Begins an archive in `dir`. What an older one had there is removed, and nothing else.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn begin(dir: &Path) -> Result<Self, RecordError> {
        let io = |e| RecordError::Io(format!("cannot write {}", dir.display()), e);
        std::fs::create_dir_all(dir).map_err(io)?;
        if is_own(dir)
            && let Ok(Some(old)) = Sums::read(dir)
        {
            // First the list: what is left is then no archive any more.
            let gone = std::fs::remove_file(dir.join(SUMS));
            gone.map_err(io)?;
            for (file, _) in old.files() {
                let file = dir.join(file);
                // A file that was removed by hand is gone already.
                let _ = std::fs::remove_file(&file);
                let above = file.ancestors().skip(1).take_while(|above| *above != dir);
                // Those that have something else in them stay.
                above.for_each(|above| drop(std::fs::remove_dir(above)));
            }
        }
        Ok(Self { dir: dir.to_owned(), sums: Sums::default() })
    }

    /// Continues an archive that was not completed: what is there stays, without checksums until
    /// it is sealed. Each part has to be adopted or written again.
    ///
    /// # Errors
    /// When the checksums cannot be removed.
    pub fn reopen(dir: &Path) -> Result<Self, RecordError> {
        match std::fs::remove_file(dir.join(SUMS)) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                Err(RecordError::Io(format!("cannot write {}", dir.display()), e))
            }
            _ => Ok(Self { dir: dir.to_owned(), sums: Sums::default() }),
        }
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes a file, below its directory.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&mut self, file: &str, text: &str) -> Result<(), RecordError> {
        let (below, name) = file.rsplit_once('/').unwrap_or(("", file));
        record::write_file(&self.directory(below)?, name, text)?;
        self.sums.add(file, text.as_bytes());
        Ok(())
    }

    /// A directory below, which is made. What is no directory of this user or of root in its place
    /// is not followed: others may be able to write in the archive's.
    fn directory(&self, below: &str) -> Result<PathBuf, RecordError> {
        let mut dir = self.dir.clone();
        for part in below.split('/').filter(|part| !part.is_empty()) {
            dir.push(part);
            let io = |e| RecordError::Io(format!("cannot write {}", dir.display()), e);
            match std::fs::create_dir(&dir) {
                Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(io(e)),
                _ => {}
            }
            let meta = std::fs::symlink_metadata(&dir).map_err(io)?;
            if !meta.is_dir() || ![0, own_uid()].contains(&meta.uid()) {
                return Err(io(std::io::Error::other("it is not a directory of this user")));
            }
        }
        Ok(dir)
    }

    /// Writes a run, in `below` (the archive itself if empty): result, report, tables, latencies by
    /// second.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put_run(&mut self, below: &str, result: &RunResult) -> Result<(), RecordError> {
        let place = |name: &str| match below {
            "" => name.to_owned(),
            below => format!("{below}/{name}"),
        };
        let json = serde_json::to_string(result)
            .map_err(|e| RecordError::Form("the run".to_owned(), e.to_string()))?;
        self.put(&place("result.json"), &json)?;
        self.put(&place("report.html"), &report::page(result))?;
        let table = report::table(result);
        self.put(&place("result.csv"), &table.csv())?;
        self.put(&place("result.md"), &report::markdown(result))?;
        self.put(&place("figures.csv"), &Figures::of_run(result).csv())?;
        for step in result.steps.iter().filter(|step| !step.seconds.is_empty()) {
            let name = place(&format!("hist/{:03}.hlog", step.number));
            self.put(&name, &seconds::log(step))?;
        }
        Ok(())
    }

    /// Enters a run that an earlier start has written in `below`, as it is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn adopt(&mut self, below: &str) -> Result<(), RecordError> {
        let io = |e| RecordError::Io(format!("cannot read {below}"), e);
        for entry in std::fs::read_dir(self.dir.join(below)).map_err(io)? {
            let entry = entry.map_err(io)?;
            let name = format!("{below}/{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type().map_err(io)?;
            if kind.is_dir() {
                self.adopt(&name)?;
            } else if kind.is_file() {
                self.sums.add(&name, &std::fs::read(entry.path()).map_err(io)?);
            }
        }
        Ok(())
    }

    /// Writes the request, the machines and the server's data, then the checksums.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn seal(self, request: &Request, results: &[&RunResult]) -> Result<(), RecordError> {
        let results: Vec<Measured<'_>> = results.iter().map(|run| Measured::from(*run)).collect();
        self.seal_measured(request, &results)
    }

    /// The same of results of any kind.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn seal_measured(
        mut self,
        request: &Request,
        results: &[Measured<'_>],
    ) -> Result<(), RecordError> {
        self.put(REQUEST, &request.text()?)?;
        let machines = machines::of(results);
        let text = serde_json::to_string_pretty(&machines)
            .map_err(|e| RecordError::Form("the machines".to_owned(), e.to_string()))?;
        self.put(MACHINES, &text)?;
        for (name, text) in analytics::of(request.server_api().as_ref(), results) {
            self.put(&format!("analytics/{name}"), &text)?;
        }
        let text = self.sums.text();
        record::write_file(&self.dir, SUMS, &text)
    }
}

/// Enters a file that was made again, if it is one of an archive.
///
/// # Errors
/// When the checksums cannot be read or written.
pub fn renew(dir: &Path, file: &str) -> Result<(), RecordError> {
    let Some(mut sums) = Sums::read(dir)? else { return Ok(()) };
    if !sums.files().any(|(name, _)| name == file) {
        return Ok(());
    }
    let content = std::fs::read(dir.join(file))
        .map_err(|e| RecordError::Io(format!("cannot read {file}"), e))?;
    sums.add(file, &content);
    record::write_file(dir, SUMS, &sums.text())
}

/// Checks an archive and reads what was asked.
///
/// # Errors
/// It is none, or a file was changed, which is named.
pub fn open(dir: &Path) -> Result<Request, ArchiveError> {
    let name = dir.display().to_string();
    let sums = Sums::read(dir)?.ok_or_else(|| ArchiveError::NoSums(name.clone()))?;
    let files = sums.changed(dir);
    if !files.is_empty() {
        return Err(ArchiveError::Changed { dir: name, files });
    }
    Ok(Request::read(&dir.join(REQUEST))?)
}

#[cfg(test)]
pub(crate) mod tests;
