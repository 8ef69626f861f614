//! Where the peers' programs are: in unpacked Debian packages, else on the machine.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of a system with programs.
const FOLDERS: [&str; 3] = ["usr/sbin", "usr/bin", "sbin"];

/// Looks programs up.
pub struct Programs<'a> {
    unpacked: Option<&'a Path>,
}

/// A program, and what it needs to run.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its path.
    pub path: PathBuf,
    /// What its system has at `/`: the unpacked packages, or the machine's.
    pub root: PathBuf,
}

impl<'a> Programs<'a> {
    /// First in this folder.
    pub fn new(unpacked: Option<&'a Path>) -> Self {
        Self { unpacked }
    }

    /// The program of this name.
    pub fn find(&self, name: &str) -> Option<Program> {
        let roots = self.unpacked.into_iter().chain([Path::new("/")]);
        roots.into_iter().find_map(|root| {
            let root = root.canonicalize().ok()?;
            let path = FOLDERS.iter().map(|f| root.join(f).join(name)).find(|p| p.exists())?;
            Some(Program { path, root })
        })
    }
}

impl Program {
    /// The command that runs it, with its own libraries if it is not the machine's.
    pub fn command(&self) -> Vec<String> {
        let path = self.path.display().to_string();
        if self.root == Path::new("/") {
            return vec![path];
        }
        let tuple = std::env::consts::ARCH.to_owned() + "-linux-gnu";
        let folders = ["usr/lib", "lib"].map(|f| self.root.join(f).join(&tuple));
        let folders = folders.map(|f| f.display().to_string()).join(":");
        vec!["env".to_owned(), format!("LD_LIBRARY_PATH={folders}"), path]
    }

    /// A folder of its system.
    pub fn folder(&self, path: &str) -> String {
        self.root.join(path).display().to_string()
    }

    /// The first line with a digit of the program's output for this argument; empty if there is
    /// none.
    pub fn version(&self, argument: &str) -> String {
        // vsftpd prints its version to standard input.
        let said = Command::new("sh")
            .args(["-c", "exec \"$@\" 0>&1", "sh"])
            .args(self.command())
            .arg(argument)
            .output();
        let Ok(said) = said else { return String::new() };
        let all = [said.stdout, said.stderr].concat();
        let text = String::from_utf8_lossy(&all);
        let line = text.lines().find(|l| l.chars().any(|c| c.is_ascii_digit()));
        line.unwrap_or_default().trim().to_owned()
    }
}

/// Runs a program that makes something.
///
/// # Errors
/// The program is missing, or its standard error output if it fails.
pub fn made(program: &str, arguments: &[&str]) -> io::Result<()> {
    let said = |why: String| io::Error::other(format!("{program}: {why}"));
    let done = Command::new(program).args(arguments).output();
    let done = done.map_err(|e| said(e.to_string()))?;
    if done.status.success() {
        return Ok(());
    }
    Err(said(String::from_utf8_lossy(&done.stderr).trim().to_owned()))
}
