//! The user and the files of the machine on which the shell runs.

use std::io::{BufRead, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

use base::limits::CLI_SCRIPT_MAX;
use control::cli::Outside;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

/// The user behind standard input.
pub struct User {
    /// Whether questions can be asked: standard input is a terminal.
    pub asks: bool,
}

impl Outside for User {
    fn read(&mut self, path: &str) -> Result<String, String> {
        let mut text = String::new();
        let limit = CLI_SCRIPT_MAX as u64;
        let file = std::fs::File::open(path);
        let done = file.and_then(|file| file.take(limit + 1).read_to_string(&mut text));
        done.map_err(|e| format!("cannot read {path}: {e}"))?;
        // The beginning of a configuration may well be one, too.
        if text.len() > CLI_SCRIPT_MAX {
            return Err(format!("cannot read {path}: it is longer than {CLI_SCRIPT_MAX} bytes"));
        }
        Ok(text)
    }

    fn write(&mut self, path: &str, text: &str) -> Result<(), String> {
        // A configuration may contain sensitive information; only the user may pass it on.
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let done = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
        done.map_err(|e| format!("cannot write {path}: {e}"))
    }

    fn confirm(&mut self, question: &str) -> Option<bool> {
        let answer = self.asks.then(|| prompt(&format!("{question} (y/N) ")))??;
        Some(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    fn secret(&mut self, name: &str) -> Option<String> {
        let shown = self.asks.then(Echo::off)??;
        let answer = prompt(&format!("{name}: "));
        drop(shown);
        // The line end that was not shown either.
        let _unseen = std::io::stderr().write_all(b"\n");
        answer.map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
    }
}

fn prompt(question: &str) -> Option<String> {
    let mut err = std::io::stderr().lock();
    err.write_all(question.as_bytes()).and_then(|()| err.flush()).ok()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).ok().filter(|n| *n > 0).map(|_| line)
}

/// What the terminal was before it stopped showing what is typed.
struct Echo(Termios);

impl Echo {
    fn off() -> Option<Self> {
        let was = tcgetattr(std::io::stdin()).ok()?;
        let mut now = was.clone();
        now.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(std::io::stdin(), SetArg::TCSAFLUSH, &now).ok()?;
        Some(Self(was))
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _kept = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &self.0);
    }
}

/// Makes a file that only this user can read, unless it is there.
pub fn make_private(path: &std::path::Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true).mode(0o600).open(path).map(drop)
}

#[cfg(test)]
mod tests;
