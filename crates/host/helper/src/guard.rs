//! The guard: a process of its own that takes an unconfirmed change back.
//!
//! It is started before the first step, reports that it is ready, and waits for the end of the time
//! or of its input, which the helper holds open. Then it takes back what still waits: a change
//! that was confirmed or continued meanwhile does not.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use host_network::backend::Backend;

use crate::files::Folder;
use crate::keeper::{Arm, Refusal, take_back};
use crate::sys;

/// What a guard writes when it is ready.
const READY: &str = "ready";

/// Starts guards of this program, by `host --guard SECONDS --change NUMBER --state FOLDER`.
#[derive(Debug)]
pub struct Guards {
    /// This program.
    pub program: PathBuf,
    /// The folder of the helper.
    pub folder: PathBuf,
}

impl Arm for Guards {
    fn arm(&mut self, change: u64, seconds: u32) -> io::Result<Box<dyn Send>> {
        let mut command = Command::new(&self.program);
        command.arg("host").arg("--guard").arg(seconds.to_string());
        command.arg("--change").arg(change.to_string());
        command.arg("--state").arg(&self.folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut guard = command.spawn()?;
        let (Some(input), Some(output)) = (guard.stdin.take(), guard.stdout.take()) else {
            return Err(io::Error::other("a process without its pipes"));
        };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        // So that no zombie stays; the thread ends with the guard.
        let wait = move || {
            let ended = guard.wait();
            base::debug!("host", "the guard has ended: {ended:?}");
        };
        std::thread::Builder::new().name("guard".to_owned()).spawn(wait)?;
        if line.trim_end() != READY {
            return Err(io::Error::other("it ended before it was ready; see the log"));
        }
        Ok(Box::new(input))
    }
}

/// Is the guard of the change of this number, in a process of its own.
///
/// # Errors
/// It cannot be one, or the way back is not complete.
pub fn run(
    folder: &Path,
    backend: &mut dyn Backend,
    (change, seconds): (u64, u32),
) -> Result<(), Refusal> {
    let folder = Folder::open(folder)?;
    // Not ended with the terminal or the group of the helper.
    sys::leave_session();
    let mut output = io::stdout();
    writeln!(output, "{READY}")?;
    output.flush()?;
    sys::wait_for_end(io::stdin().as_fd(), Duration::from_secs(seconds.into()))?;
    let _lock = folder.lock()?;
    // Confirmed, or continued by a change that has a guard of its own.
    if folder.waiting()?.is_none_or(|waiting| waiting.number != change) {
        return Ok(());
    }
    take_back(&folder, backend).map(|_| ())
}
