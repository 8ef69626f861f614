//! The checks. Each makes files of its own in the directory that both mounts have, through the one
//! and the other.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Scratch;
use crate::file_lock::lock;
use crate::lease;

/// How soon a change must be seen at the other mount: a takeover takes longer, and no cached data
/// of before may be served after it.
const SEEN: Duration = Duration::from_secs(2);
/// How often a change is looked for.
const EVERY: Duration = Duration::from_millis(2);
/// Names that both mounts try to create, and renames while the other mount reads.
const NAMES: usize = 200;
const RENAMES: usize = 100;
/// How long the renames may take: CephFS needs seconds for each while another client reads.
const RENAMES_TIME: Duration = Duration::from_secs(20);

/// Why a promise does not hold.
pub(super) struct Unfit(pub(super) String);

impl From<io::Error> for Unfit {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

type Outcome = Result<String, Unfit>;

/// A check with the name of its promise.
type Check = (&'static str, fn(&Scratch) -> Outcome);

/// All of them.
pub(super) const ALL: [Check; 9] = [
    ("locks", locks),
    ("file locks", file_locks),
    ("data", data),
    ("size", size),
    ("new names", new_names),
    ("inode numbers", inode_numbers),
    ("exclusive names", exclusive_names),
    ("atomic rename", atomic_rename),
    ("flush", flush),
];

/// Waits until something is so; for how long.
fn wait(mut is_so: impl FnMut() -> bool) -> Option<Duration> {
    let began = lease::now();
    loop {
        let waited = lease::now().saturating_sub(began);
        if is_so() {
            return Some(waited);
        }
        if waited >= SEEN {
            return None;
        }
        std::thread::sleep(EVERY);
    }
}

/// Whether a path appears in time.
pub(super) fn appears(path: &Path) -> bool {
    wait(|| path.exists()).is_some()
}

fn seen(after: Option<Duration>, what: &str) -> Outcome {
    match after {
        Some(after) => Ok(format!("{what} after {} ms", after.as_millis())),
        None => Err(Unfit(format!("not {what} within {} s", SEEN.as_secs()))),
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// The same file through both mounts.
fn both(scratch: &Scratch, name: &str) -> Result<(File, File), Unfit> {
    let a = open(&scratch.a.join(name))?;
    if !appears(&scratch.b.join(name)) {
        return Err(Unfit(format!("a new file is not seen within {} s", SEEN.as_secs())));
    }
    Ok((a, open(&scratch.b.join(name))?))
}

fn locks(scratch: &Scratch) -> Outcome {
    let (a, b) = both(scratch, "lock")?;
    exclude(a, &b, lock)
}

fn file_locks(scratch: &Scratch) -> Outcome {
    let (a, b) = both(scratch, "flock")?;
    exclude(a, &b, |file| {
        // SAFETY: an open descriptor and plain numbers.
        match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
            0 => Ok(true),
            _ => match io::Error::last_os_error() {
                e if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
                e => Err(e),
            },
        }
    })
}

/// A lock at one mount keeps the other from it until its file is closed.
fn exclude(a: File, b: &File, lock: impl Fn(&File) -> io::Result<bool>) -> Outcome {
    if !lock(&a)? {
        return Err(Unfit("a lock on a new file is refused".to_owned()));
    }
    if lock(b)? {
        return Err(Unfit("a lock at one mount is not seen at the other".to_owned()));
    }
    drop(a);
    let mut failed = None;
    let free = wait(|| lock(b).inspect_err(|e| failed = Some(e.to_string())).unwrap_or(false));
    match failed {
        Some(why) => Err(Unfit(why)),
        None => seen(free, "free at the other mount"),
    }
}

fn data(scratch: &Scratch) -> Outcome {
    let (a, b) = both(scratch, "data")?;
    a.write_all_at(b"before", 0)?;
    let read = |bytes: &[u8]| {
        let mut room = [0; 6];
        b.read_exact_at(&mut room, 0).is_ok() && room == bytes
    };
    seen(wait(|| read(b"before")), "seen")?;
    a.write_all_at(b"after!", 0)?;
    seen(wait(|| read(b"after!")), "overwritten data seen by an open file")?;
    // A cache may have what was read before a file was opened: both open it again.
    drop((a, b));
    let path = scratch.b.join("data");
    fs::read(&path)?;
    let b = File::open(&path)?;
    let read = |bytes: &[u8]| {
        let mut room = [0; 6];
        b.read_exact_at(&mut room, 0).is_ok() && room == bytes
    };
    seen(wait(|| read(b"after!")), "seen by a file that was opened again")?;
    open(&scratch.a.join("data"))?.write_all_at(b"again!", 0)?;
    seen(wait(|| read(b"again!")), "overwritten data seen by an open file")
}

fn size(scratch: &Scratch) -> Outcome {
    let (mut a, _) = both(scratch, "size")?;
    let path = scratch.b.join("size");
    fs::metadata(&path)?;
    a.write_all(&[0; 1000])?;
    seen(wait(|| fs::metadata(&path).is_ok_and(|file| file.len() == 1000)), "a new size seen")
}

fn new_names(scratch: &Scratch) -> Outcome {
    let path = scratch.b.join("new");
    if path.exists() {
        return Err(Unfit("a name is there that was not created".to_owned()));
    }
    open(&scratch.a.join("new"))?;
    seen(wait(|| path.exists()), "a name that was missing seen")
}

fn inode_numbers(scratch: &Scratch) -> Outcome {
    both(scratch, "inode")?;
    let [a, b] = [&scratch.a, &scratch.b].map(|dir| fs::metadata(dir.join("inode")));
    let (a, b) = (a?.ino(), b?.ino());
    match a == b {
        true => Ok("equal at both mounts".to_owned()),
        false => Err(Unfit(format!("{a} at one mount is {b} at the other: handles do not last"))),
    }
}

/// Of each name one mount creates it, and the other one fails.
fn exclusive_names(scratch: &Scratch) -> Outcome {
    let create = |dir: &Path| -> io::Result<Vec<bool>> {
        let one = |n| match File::create_new(dir.join(format!("name{n}"))) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(e),
        };
        (0..NAMES).map(one).collect()
    };
    let (a, b) = std::thread::scope(|scope| {
        let other = scope.spawn(|| create(&scratch.b));
        (create(&scratch.a), other.join())
    });
    let b = b.map_err(|_| Unfit("the check has failed".to_owned()))?;
    let twice = a?.iter().zip(b?).filter(|(a, b)| **a == *b).count();
    match twice {
        0 => Ok(format!("{NAMES} names, each created by one mount")),
        n => Err(Unfit(format!("{n} of {NAMES} names were created by both mounts or by none"))),
    }
}

/// A name that is replaced is never missing, and its file never empty, for a reader at the other
/// mount.
fn atomic_rename(scratch: &Scratch) -> Outcome {
    let (_, _) = both(scratch, "replaced")?;
    fs::write(scratch.a.join("replaced"), "x")?;
    let path = scratch.b.join("replaced");
    seen(wait(|| fs::read(&path).is_ok_and(|content| content == b"x")), "seen")?;
    let ends = AtomicBool::new(false);
    let read = || {
        let (mut reads, mut bad) = (0, 0);
        while !ends.load(Ordering::Relaxed) {
            match fs::read(&path) {
                Ok(content) if content.is_empty() => bad += 1,
                Err(e) if e.kind() == io::ErrorKind::NotFound => bad += 1,
                // ESTALE of a file that was replaced between two calls is no other name's content.
                _ => reads += 1,
            }
        }
        (reads, bad)
    };
    let (renamed, read) = std::thread::scope(|scope| {
        let reader = scope.spawn(read);
        let began = lease::now();
        let in_time = |_: &usize| lease::now().saturating_sub(began) < RENAMES_TIME;
        let renamed = (0..RENAMES).take_while(in_time).try_fold(0, |count, n| {
            let new = scratch.a.join("replacement");
            fs::write(&new, n.to_string())?;
            fs::rename(new, scratch.a.join("replaced")).map(|()| count + 1)
        });
        ends.store(true, Ordering::Relaxed);
        (renamed, reader.join())
    });
    let renames = renamed?;
    match read.map_err(|_| Unfit("the check has failed".to_owned()))? {
        (reads, 0) => Ok(format!("{renames} renames, {reads} reads at the other mount")),
        (reads, bad) => {
            Err(Unfit(format!("{bad} of {} reads found no file, or an empty one", reads + bad)))
        }
    }
}

fn flush(scratch: &Scratch) -> Outcome {
    let (mut a, _) = both(scratch, "flush")?;
    a.write_all(b"flushed")?;
    a.sync_all()?;
    File::open(&scratch.a)?.sync_all()?;
    Ok("files and directories can be flushed".to_owned())
}
