//! Removes what tests that were killed have left behind, before it makes later ones fail: folders
//! `plimsoll-test-NAME-PID-NUMBER`, what is mounted in them, and loop devices over files in them.
//!
//! A folder stays as long as the process that made it lives, in this PID namespace or one below it,
//! and as long as any process uses it. Nothing of another name is touched.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the names of all folders of tests begin with.
const PREFIX: &str = "plimsoll-test-";

/// Removes it on this machine, and prints what was removed.
///
/// # Errors
/// What could not be removed, with the reasons.
pub fn run() -> Result<(), String> {
    let place = std::env::temp_dir();
    // One at a time: a device that two have seen must not be detached a second time, when its
    // number is that of another one.
    let lock = fs::File::open(&place).and_then(|folder| folder.lock().map(|()| folder));
    let _lock = lock.map_err(|e| format!("{}: {e}", place.display()))?;
    let machine = Machine {
        places: vec![place, PathBuf::from("/dev/shm")],
        proc: PathBuf::from("/proc"),
        block: PathBuf::from("/sys/block"),
    };
    let (removed, problems) = machine.remove(&mut tool);
    for folder in &removed {
        println!("removed {}, left by a test that was killed", folder.display());
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// Runs a tool of the system.
fn tool(command: &[&OsStr]) -> Result<(), String> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let (program, args) = command.split_first().ok_or("no program")?;
    let done = Command::new(program).args(args).env("PATH", path).output();
    let done = done.map_err(|e| format!("{}: {e}", program.display()))?;
    let said = String::from_utf8_lossy(&done.stderr);
    if done.status.success() { Ok(()) } else { Err(said.trim().to_owned()) }
}

/// The process that made a folder of this name.
fn creator(name: &str) -> Option<u32> {
    let mut parts = name.strip_prefix(PREFIX)?.rsplit('-');
    let number = |part: &str| part.parse::<u32>().ok();
    let (_, process) = (number(parts.next()?)?, number(parts.next()?)?);
    parts.next().map(|_| process)
}

/// The folders that hold folders of tests, and the kernel's `/proc` and `/sys/block`.
struct Machine {
    places: Vec<PathBuf>,
    /// `/proc`.
    proc: PathBuf,
    /// `/sys/block`.
    block: PathBuf,
}

/// Runs a command: its program and arguments.
type Run<'a> = &'a mut dyn FnMut(&[&OsStr]) -> Result<(), String>;

impl Machine {
    /// Removes all that belongs to no living process; what was removed, and what could not be.
    fn remove(&self, run: Run<'_>) -> (Vec<PathBuf>, Vec<String>) {
        let (mut removed, mut problems) = (Vec::new(), Vec::new());
        // First the folders: one that is made after this is none of them, and the process that
        // made one of them is found if it lives.
        let folders = self.folders();
        let processes = Processes::read(&self.proc);
        for (folder, creator) in folders {
            if processes.numbers.contains(&creator) {
                continue;
            }
            let done = match processes.user_of(&folder) {
                Some(user) => Err(format!("process {user} uses it")),
                None => self.remove_one(&folder, run),
            };
            match done {
                Ok(()) => removed.push(folder),
                Err(why) => problems.push(format!("{} stays: {why}", folder.display())),
            }
        }
        (removed, problems)
    }

    /// All folders of tests, each with the process that made it: the existing ones, and those of
    /// which only a mount or a loop device is left.
    fn folders(&self) -> BTreeSet<(PathBuf, u32)> {
        let entries = self.places.iter().filter_map(|place| fs::read_dir(place).ok());
        let mut paths: Vec<_> = entries.flatten().flatten().map(|entry| entry.path()).collect();
        paths.extend(self.mounts());
        paths.extend(self.loops().into_iter().map(|(_, file)| file));
        paths.iter().filter_map(|path| self.folder_of(path)).collect()
    }

    fn folder_of(&self, path: &Path) -> Option<(PathBuf, u32)> {
        self.places.iter().find_map(|place| {
            let name = path.strip_prefix(place).ok()?.iter().next()?;
            Some((place.join(name), creator(name.to_str()?)?))
        })
    }

    /// Where something is mounted, in the order in which that was done.
    fn mounts(&self) -> Vec<PathBuf> {
        let text = fs::read(self.proc.join("self/mountinfo")).unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n');
        lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4)).map(unescaped).collect()
    }

    /// Loop devices with the files that they are over.
    fn loops(&self) -> Vec<(OsString, PathBuf)> {
        let entries = fs::read_dir(&self.block).into_iter().flatten().flatten();
        let devices = entries.filter_map(|entry| {
            let file = fs::read(entry.path().join("loop/backing_file")).ok()?;
            let file = PathBuf::from(OsString::from_vec(file.trim_ascii_end().to_vec()));
            Some((Path::new("/dev").join(entry.file_name()).into_os_string(), file))
        });
        devices.collect()
    }

    fn remove_one(&self, folder: &Path, run: Run<'_>) -> Result<(), String> {
        let inside = |path: &PathBuf| path.starts_with(folder);
        // A device that is mounted is detached when that ends. After that its number may be that of
        // another one.
        for (device, _) in self.loops().into_iter().filter(|(_, file)| inside(file)) {
            run(&[OsStr::new("losetup"), OsStr::new("--detach"), &device])?;
        }
        // What was mounted last may be on a device over a file in what was mounted first. No path
        // is looked up: a file system of a process that is gone answers nothing.
        for mount in self.mounts().iter().rev().filter(|mount| inside(mount)) {
            let options = ["umount", "--lazy", "--no-canonicalize"].map(OsStr::new);
            run(&[&options[..], &[mount.as_os_str()]].concat())?;
        }
        if self.mounts().iter().any(inside) {
            return Err("something is mounted in it".to_owned());
        }
        let is_folder = fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir());
        let done = if is_folder { fs::remove_dir_all(folder) } else { fs::remove_file(folder) };
        match done {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e.to_string()),
            _ => Ok(()),
        }
    }
}

/// A path as the kernel writes it: three octal digits for a space and its like.
fn unescaped(text: &[u8]) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| str::from_utf8(digits).ok());
        let octal = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal.filter(|_| *byte == b'\\') {
            Some(octal) => {
                bytes.push(octal);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// The running processes.
#[derive(Default)]
struct Processes {
    /// Numbers of all processes, those in PID namespaces below this one included.
    numbers: BTreeSet<u32>,
    /// What each uses: its arguments, its folder, its open files.
    used: Vec<(u32, OsString)>,
}

impl Processes {
    fn read(proc: &Path) -> Self {
        let mut all = Self::default();
        for entry in fs::read_dir(proc).into_iter().flatten().flatten() {
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(number) = number else { continue };
            let at = entry.path();
            all.numbers.insert(number);
            let status = fs::read_to_string(at.join("status")).unwrap_or_default();
            let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            let inner = inner.unwrap_or_default().split_whitespace();
            all.numbers.extend(inner.filter_map(|number| number.parse::<u32>().ok()));
            let arguments = fs::read(at.join("cmdline")).unwrap_or_default();
            let files = fs::read_dir(at.join("fd")).into_iter().flatten().flatten();
            let links = files.map(|file| file.path()).chain([at.join("cwd"), at.join("root")]);
            let links = links.filter_map(|link| fs::read_link(link).ok());
            all.used.push((number, OsString::from_vec(arguments)));
            all.used.extend(links.map(|path| (number, path.into_os_string())));
        }
        all
    }

    /// A process that uses something in this folder.
    fn user_of(&self, folder: &Path) -> Option<u32> {
        let folder = folder.as_os_str().as_bytes();
        let names = |used: &OsString| {
            // One that is longer is another folder.
            let bytes = used.as_bytes();
            (0..bytes.len()).any(|at| {
                let rest = bytes[at..].strip_prefix(folder);
                rest.is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_digit))
            })
        };
        self.used.iter().find(|(_, used)| names(used)).map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests;
