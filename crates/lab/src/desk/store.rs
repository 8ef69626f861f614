//! Where runs are kept: a folder each, `runs/ID`, with what is known of the run, its job, and what
//! its process has left.

use super::run::{self, Run, VERSION};
use crate::archive::TEXT;
use crate::archive::request::Kind;
use crate::job::Job;
use base::limits::{LAB_BYTES_KEPT, LAB_RUNS_KEPT};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The job as it is run.
pub(super) const JOB: &str = "job.toml";

/// Name of the file of a job of several.
pub(super) fn job_of(n: usize) -> String {
    format!("job-{}.toml", n + 1)
}

/// What is known of the run.
const RUN: &str = "run.json";

/// The folder of all runs.
pub(super) struct Store {
    dir: PathBuf,
}

/// Makes a folder that is not there yet. Its owner and mode are on disk before it is used: without
/// root's privileges it could not be used otherwise after a power failure in between.
fn make(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Ok(()) => File::open(dir)?.sync_all(),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

impl Store {
    pub(super) fn open(dir: PathBuf) -> io::Result<Self> {
        let runs = dir.join("runs");
        make(&dir)?;
        make(&runs)?;
        Ok(Self { dir: runs })
    }

    /// The folder of one run.
    pub(super) fn place(&self, id: &str) -> PathBuf {
        self.dir.join(id)
    }

    /// All that are stored. What cannot be read is reported, and left alone.
    pub(super) fn load(&self) -> io::Result<Vec<Run>> {
        let mut runs = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let place = entry?.path();
            let text = fs::read_to_string(place.join(RUN));
            let read = text
                .map_err(|e| e.to_string())
                .and_then(|text| serde_json::from_str::<Run>(&text).map_err(|e| e.to_string()));
            let own = |run: &Run| place.ends_with(&run.id) && run.format <= VERSION;
            match read {
                Ok(run) if own(&run) => runs.push(run),
                Ok(_) => base::info!("lab", "{} is not a run of this version", place.display()),
                Err(why) => base::info!("lab", "{} cannot be read: {why}", place.display()),
            }
        }
        Ok(runs)
    }

    /// Makes the folder of a new run, with its jobs or the text of its program.
    pub(super) fn create(&self, run: &Run, jobs: &[Job], text: Option<&str>) -> io::Result<()> {
        let place = self.place(&run.id);
        fs::create_dir_all(&place)?;
        for (n, job) in jobs.iter().enumerate() {
            let name = if run.kind == Kind::Run { JOB.to_owned() } else { job_of(n) };
            let text = toml::to_string(job).map_err(io::Error::other)?;
            write(&place.join(name), text.as_bytes())?;
        }
        if let Some(text) = text {
            write(&place.join(TEXT), text.as_bytes())?;
        }
        self.write(run)
    }

    /// Writes down what is known of a run; after a power cut it is as it was or as it is.
    pub(super) fn write(&self, run: &Run) -> io::Result<()> {
        let text = serde_json::to_string_pretty(run).map_err(io::Error::other)?;
        write(&self.place(&run.id).join(RUN), text.as_bytes())
    }

    /// A file of a run.
    pub(super) fn read(&self, id: &str, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.place(id).join(name))
    }

    /// Removes a run's folder.
    pub(super) fn remove(&self, id: &str) -> io::Result<()> {
        fs::remove_dir_all(self.place(id))
    }

    /// Which of these runs, given the oldest first, are more than is kept.
    pub(super) fn surplus(&self, ended: &[u64]) -> Vec<u64> {
        let mut bytes = 0;
        let mut surplus = Vec::new();
        for (newer, number) in ended.iter().rev().enumerate() {
            bytes += size(&self.place(&run::id(*number)));
            // The newest is kept whatever its size.
            if newer >= LAB_RUNS_KEPT || (newer > 0 && bytes > LAB_BYTES_KEPT) {
                surplus.push(*number);
            }
        }
        surplus
    }
}

fn size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

/// Written aside, flushed, moved into place, folder flushed.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let aside = path.with_extension("new");
    let mut file = fs::File::create(&aside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&aside, path)?;
    path.parent().map_or(Ok(()), |dir| fs::File::open(dir)?.sync_all())
}
