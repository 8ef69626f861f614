//! `zpool` and `zfs` as child processes: fixed arguments, no shell, a time limit, bounded output.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use base::clock::{Clock, SystemClock};

use super::{Pool, json, text};

/// Where the programs are.
const FOLDERS: [&str; 5] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin"];
/// How long a command that reads may take: it waits for a pool that is busy with a transaction.
pub const READ_TIME: Duration = Duration::from_secs(20);
/// How long a command that changes a pool may take: it opens and labels each disk, one after the
/// other, and an export writes back all that is cached.
pub const CHANGE_TIME: Duration = Duration::from_secs(300);
/// Commands that need a pool or a dataset that is not in use.
const RELEASES: [&str; 2] = ["destroy", "export"];
/// How often such a command is attempted while that is busy, ten seconds in all: FUSE releases
/// files after they were closed.
const BUSY_ATTEMPTS: usize = 50;
/// Between two attempts.
const BUSY_PAUSE: Duration = Duration::from_millis(200);
/// How its message ends then.
const BUSY: &str = " is busy";
/// Longest output that is read: properties of some thousand datasets and snapshots.
const OUTPUT_MAX: u64 = 16 << 20;
/// Longest message of a command that is passed on.
const MESSAGE_MAX: usize = 600;

/// Why a command gave no result.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The programs are missing.
    #[error("zpool and zfs are not installed: install zfsutils-linux")]
    NotInstalled,
    /// The operating system started none.
    #[error("cannot start {program}: {source}")]
    Start {
        /// Which.
        program: &'static str,
        /// Why.
        source: io::Error,
    },
    /// It took too long.
    #[error("{program} {verb} has not ended within {seconds} s")]
    Time {
        /// Which.
        program: &'static str,
        /// What it was to do.
        verb: String,
        /// The limit.
        seconds: u64,
    },
    /// Its output is too long.
    #[error("the output of {program} {verb} has more than {} MiB", OUTPUT_MAX >> 20)]
    Long {
        /// Which.
        program: &'static str,
        /// What it was to do.
        verb: String,
    },
    /// It failed.
    #[error("{program} {verb}: {message}")]
    Failed {
        /// Which.
        program: &'static str,
        /// What it was to do.
        verb: String,
        /// What it printed.
        message: String,
    },
    /// Its output is none of a version that is supported.
    #[error("the output of zpool {verb} is not understood: {why}")]
    Output {
        /// What it was to do.
        verb: &'static str,
        /// What is wrong.
        why: String,
    },
}

/// How a version writes its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenZFS 2.3 and later: JSON.
    Json,
    /// OpenZFS before 2.3: text, with exact numbers and full paths.
    Text,
    /// zfs-fuse: text with rounded numbers and short names, and fewer options.
    Fuse,
}

/// The programs of this machine.
#[derive(Debug, Clone)]
pub struct Tools {
    zpool: PathBuf,
    zfs: PathBuf,
    /// How they write their output.
    pub dialect: Dialect,
}

/// Whether the programs are installed.
pub fn are_installed() -> bool {
    program("zpool").is_some() && program("zfs").is_some()
}

fn program(name: &str) -> Option<PathBuf> {
    let paths = FOLDERS.iter().map(|folder| Path::new(folder).join(name));
    paths.into_iter().find(|path| path.is_file())
}

impl Tools {
    /// Finds them, and which version they are.
    ///
    /// # Errors
    /// They are missing, or do not start.
    pub fn find() -> Result<Self, CommandError> {
        let missing = || CommandError::NotInstalled;
        let zpool = program("zpool").ok_or_else(missing)?;
        let zfs = program("zfs").ok_or_else(missing)?;
        let mut tools = Self { zpool, zfs, dialect: Dialect::Fuse };
        // Without a module loaded it fails, having printed its own version.
        let (_, output, _) = tools.run("zpool", &["version"], READ_TIME)?;
        tools.dialect = dialect(&output);
        Ok(tools)
    }

    /// Runs `zpool`.
    ///
    /// # Errors
    /// Why it has no result.
    pub fn zpool(&self, arguments: &[&str], time: Duration) -> Result<String, CommandError> {
        self.done("zpool", arguments, time)
    }

    /// Runs `zfs`.
    ///
    /// # Errors
    /// Why it has no result.
    pub fn zfs(&self, arguments: &[&str], time: Duration) -> Result<String, CommandError> {
        self.done("zfs", arguments, time)
    }

    /// Runs a command; again if it is to release what is busy for a moment.
    fn done(
        &self,
        program: &'static str,
        arguments: &[&str],
        time: Duration,
    ) -> Result<String, CommandError> {
        let verb = arguments.first().copied().unwrap_or_default();
        let mut attempts = 1;
        loop {
            let (success, output, errors) = self.run(program, arguments, time)?;
            if success {
                return Ok(output);
            }
            let message = line(if errors.trim().is_empty() { &output } else { &errors });
            let may_wait = RELEASES.contains(&verb) && attempts < BUSY_ATTEMPTS;
            if !may_wait || !message.ends_with(BUSY) {
                return Err(CommandError::Failed { program, verb: verb.to_owned(), message });
            }
            std::thread::sleep(BUSY_PAUSE);
            attempts += 1;
        }
    }

    fn run(
        &self,
        program: &'static str,
        arguments: &[&str],
        time: Duration,
    ) -> Result<(bool, String, String), CommandError> {
        let path = if program == "zpool" { &self.zpool } else { &self.zfs };
        let mut command = Command::new(path);
        command.args(arguments).env_clear().env("PATH", FOLDERS.join(":"));
        // Times are read as UTC, messages as English.
        command.env("LC_ALL", "C").env("TZ", "UTC0");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = |source| CommandError::Start { program, source };
        let child = command.spawn().map_err(start)?;
        let verb = || arguments.first().copied().unwrap_or_default().to_owned();
        match collect(child, time).map_err(start)? {
            Collected::Done(success, output, errors) => {
                if output.len() as u64 > OUTPUT_MAX {
                    return Err(CommandError::Long { program, verb: verb() });
                }
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                Ok((success, text(&output), text(&errors)))
            }
            Collected::Late => {
                Err(CommandError::Time { program, verb: verb(), seconds: time.as_secs() })
            }
        }
    }

    /// The state of a pool; none if it is not imported.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn status(&self, pool: &str) -> Result<Option<Pool>, CommandError> {
        let arguments: &[&str] = match self.dialect {
            Dialect::Json => &["status", "-j", "--json-int", "-P", "-p", "--", pool],
            Dialect::Text => &["status", "-P", "-p", "--", pool],
            Dialect::Fuse => &["status", pool],
        };
        let output = match self.zpool(arguments, READ_TIME) {
            Err(CommandError::Failed { message, .. }) if message.contains("no such pool") => {
                return Ok(None);
            }
            output => output?,
        };
        let pools = match self.dialect {
            Dialect::Json => json::pools(output.as_bytes())
                .map_err(|why| CommandError::Output { verb: "status", why })?,
            _ => text::pools(&output),
        };
        Ok(pools.into_iter().find(|one| one.name == pool))
    }

    /// Pools that can be imported. Reads the labels of all disks.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn importable(&self) -> Result<Vec<Pool>, CommandError> {
        let (success, output, errors) = self.run("zpool", &["import"], CHANGE_TIME)?;
        let message = errors.trim();
        // Without any, zfs-fuse fails silently.
        if success || message.is_empty() || message.contains("no pools available") {
            return Ok(text::pools(&output));
        }
        let message = line(message);
        Err(CommandError::Failed { program: "zpool", verb: "import".to_owned(), message })
    }
}

/// The dialect of a version as `zpool version` prints it; zfs-fuse has no such command.
fn dialect(output: &str) -> Dialect {
    let version = output.lines().find_map(|line| line.trim().strip_prefix("zfs-"));
    let mut numbers = version.unwrap_or_default().split(['.', '-']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (2, 3) => Dialect::Json,
        (Some(Ok(_)), Some(Ok(_))) => Dialect::Text,
        _ => Dialect::Fuse,
    }
}

/// A message in a line, without the usage behind it.
fn line(message: &str) -> String {
    let lines = message.lines().take_while(|line| !line.starts_with("usage:"));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    let mut text = words.join(" ");
    if text.is_empty() {
        "it failed without a message".clone_into(&mut text);
    }
    if let Some((at, _)) = text.char_indices().nth(MESSAGE_MAX) {
        text.truncate(at);
        text.push_str(" ...");
    }
    text
}

/// What has become of a child.
enum Collected {
    /// It has ended: whether well, its output, its messages.
    Done(bool, Vec<u8>, Vec<u8>),
    /// It has not ended in time.
    Late,
}

/// Reads all that a child prints, for a limited time.
fn collect(mut child: Child, time: Duration) -> io::Result<Collected> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (deliver, delivered) = mpsc::channel();
    let read = move |from: Option<&mut dyn Read>| {
        let mut bytes = Vec::new();
        if let Some(from) = from {
            // What it printed before a failure of the pipe is all that there is.
            let _ = from.take(OUTPUT_MAX + 1).read_to_end(&mut bytes);
        }
        bytes
    };
    let errors = deliver.clone();
    let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
    let started = thread("zfs-output").spawn(move || {
        let mut stdout = stdout;
        let bytes = read(stdout.as_mut().map(|from| from as &mut dyn Read));
        let _ = deliver.send((true, bytes));
    });
    let started = started.and_then(|_| {
        thread("zfs-errors").spawn(move || {
            let mut stderr = stderr;
            let bytes = read(stderr.as_mut().map(|from| from as &mut dyn Read));
            let _ = errors.send((false, bytes));
        })
    });
    if let Err(e) = started {
        let _ = child.kill();
        let _ = child.wait();
        return Err(e);
    }
    let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let deadline = SystemClock.monotonic_ns().saturating_add(nanoseconds);
    let (mut output, mut messages) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let left = deadline.saturating_sub(SystemClock.monotonic_ns());
        match delivered.recv_timeout(Duration::from_nanos(left)) {
            Ok((true, bytes)) => output = bytes,
            Ok((false, bytes)) => messages = bytes,
            Err(_) => {
                let _ = child.kill();
                // One that waits for the kernel cannot be killed: it is waited for apart.
                let _ = thread("zfs-wait").spawn(move || child.wait());
                return Ok(Collected::Late);
            }
        }
    }
    if output.len() as u64 > OUTPUT_MAX {
        let _ = child.kill();
    }
    let success = child.wait()?.success();
    Ok(Collected::Done(success, output, messages))
}

#[cfg(test)]
mod tests;
