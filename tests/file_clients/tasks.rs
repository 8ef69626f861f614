//! The tasks, the checks of each, and the table of the tasks that each program can do.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::scene::ClientSetup;

/// Entries of the large directory.
pub const ENTRIES: usize = 50_000;
/// Bytes of the file with a hole.
pub const SPARSE: u64 = 10 << 30;
/// What is missing at its end when it is resumed.
const TAIL: u64 = 70_000;
/// Where a resumed transfer begins.
const HALF: usize = 500_001;
/// Names that clients stumble over; the last is no UTF-8.
const ODD: [&[u8]; 3] = [b"with space", b"it's \"quoted\"", b"caf\xe9"];
/// The table's columns, as in `docs/protocols/clients.md`.
const COLUMNS: usize = 11;

/// A task of a program. Paths of the server are in the share `/data`, without a slash before them.
#[derive(Clone, Copy)]
pub enum Task<'a> {
    Upload(&'a Path, &'a [u8]),
    Download(&'a [u8], &'a Path),
    /// This number of bytes is on the server already.
    ResumeUpload(&'a Path, &'a [u8], u64),
    /// This number of bytes is in the local file already.
    ResumeDownload(&'a [u8], &'a Path, u64),
    Rename(&'a [u8], &'a [u8]),
    Delete(&'a [u8]),
    /// Prints the names, one or more on a line.
    List(&'a [u8]),
}

/// Does a task and returns what it printed; `None` when it has no command for it.
pub trait Client {
    fn does(&self, task: Task<'_>) -> Option<Vec<u8>>;
}

impl<F: Fn(Task<'_>) -> Option<Vec<u8>>> Client for F {
    fn does(&self, task: Task<'_>) -> Option<Vec<u8>> {
        self(task)
    }
}

struct Tried<'a, C> {
    place: &'a ClientSetup,
    client: &'a C,
    folder: Vec<u8>,
}

/// Puts a client through everything; its line of the table must have the same results.
///
/// # Panics
/// When a task was done wrongly, or the table has another result.
pub fn all(place: &ClientSetup, client: &impl Client) {
    let folder = place.there.file_name().expect("a name").as_bytes().to_vec();
    let tried = Tried { place, client, folder };
    let (up, down) = (tried.upload(), tried.download());
    let cells: [bool; COLUMNS] = [
        up,
        down,
        tried.resume_upload(),
        tried.resume_download(),
        tried.rename(),
        tried.delete(),
        tried.list(),
        tried.odd(&ODD[..2]),
        tried.odd(&ODD[2..]),
        tried.empty(),
        tried.sparse(),
    ];
    nothing_half(&place.there);
    let words = cells.map(|can| if can { "yes" } else { "no" });
    let row = format!("| {} | {} |", place.name, words.join(" | "));
    let table = include_str!("../../docs/protocols/clients.md");
    assert!(table.lines().any(|line| line == row), "docs/protocols/clients.md lacks\n{row}");
}

impl<C: Client> Tried<'_, C> {
    /// A path of its folder, as the server's clients name it.
    fn remote(&self, name: &[u8]) -> Vec<u8> {
        [&self.folder, &b"/"[..], name].concat()
    }

    fn there(&self, name: &[u8]) -> PathBuf {
        self.place.there.join(OsStr::from_bytes(name))
    }

    fn here(&self, name: &[u8]) -> PathBuf {
        self.place.local.join(OsStr::from_bytes(name))
    }

    fn data(&self) -> &[u8] {
        &self.place.scene.data
    }

    /// The result of a resumed transfer after a first half that differs: a program that transfers
    /// the whole file again is noticed.
    fn resumed(&self) -> Vec<u8> {
        let mut data = self.data().to_vec();
        data[..HALF].fill(b'x');
        data
    }

    fn is(&self, path: &Path, data: &[u8]) {
        let found = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let at = found.iter().zip(data).position(|(a, b)| a != b);
        let long = (found.len(), data.len());
        assert!(found == data, "{}: {long:?} bytes, other from {at:?} on", path.display());
    }

    fn upload(&self) -> bool {
        let from = self.here(b"up");
        fs::write(&from, self.data()).expect("a local file");
        let done = self.client.does(Task::Upload(&from, &self.remote(b"up"))).is_some();
        if done {
            self.is(&self.there(b"up"), self.data());
        }
        done
    }

    fn download(&self) -> bool {
        fs::write(self.there(b"down"), self.data()).expect("a file");
        let to = self.here(b"back");
        let done = self.client.does(Task::Download(&self.remote(b"down"), &to)).is_some();
        if done {
            self.is(&to, self.data());
        }
        done
    }

    fn resume_upload(&self) -> bool {
        let (from, to) = (self.here(b"resume"), self.there(b"resume"));
        fs::write(&from, self.data()).expect("a local file");
        fs::write(&to, &self.resumed()[..HALF]).expect("a file");
        let task = Task::ResumeUpload(&from, &self.remote(b"resume"), HALF as u64);
        let done = self.client.does(task).is_some();
        if done {
            self.is(&to, &self.resumed());
        }
        done
    }

    fn resume_download(&self) -> bool {
        let (from, to) = (self.there(b"rest"), self.here(b"rest"));
        fs::write(from, self.data()).expect("a file");
        fs::write(&to, &self.resumed()[..HALF]).expect("a local file");
        let task = Task::ResumeDownload(&self.remote(b"rest"), &to, HALF as u64);
        let done = self.client.does(task).is_some();
        if done {
            self.is(&to, &self.resumed());
        }
        done
    }

    fn rename(&self) -> bool {
        fs::write(self.there(b"old"), b"renamed").expect("a file");
        let done = self.client.does(Task::Rename(&self.remote(b"old"), &self.remote(b"new")));
        if done.is_some() {
            self.is(&self.there(b"new"), b"renamed");
            assert!(!self.there(b"old").exists());
        }
        done.is_some()
    }

    fn delete(&self) -> bool {
        fs::write(self.there(b"gone"), b"x").expect("a file");
        let done = self.client.does(Task::Delete(&self.remote(b"gone"))).is_some();
        assert_eq!(self.there(b"gone").exists(), !done);
        done
    }

    fn list(&self) -> bool {
        let Some(said) = self.client.does(Task::List(b"many")) else { return false };
        let names = |at: usize| said.get(at..at + 11).filter(|name| name.starts_with(b"entry-"));
        let mut found: Vec<_> = (0..said.len()).filter_map(names).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), self.place.listed, "{}", self.place.name);
        true
    }

    /// Up, if it can, and down, by names that are not plain.
    fn odd(&self, names: &[&[u8]]) -> bool {
        names.iter().all(|name| {
            let is_of_windows = !name.contains(&b'"') && std::str::from_utf8(name).is_ok();
            if self.place.is_of_windows && !is_of_windows {
                return false;
            }
            let (from, to) = (self.here(name), self.here(b"back"));
            fs::write(&from, name).expect("a local file");
            let up = self.client.does(Task::Upload(&from, &self.remote(name)));
            if up.is_none() {
                fs::write(self.there(name), name).expect("a file");
            }
            self.is(&self.there(name), name);
            let _before = fs::remove_file(&to);
            let down = self.client.does(Task::Download(&self.remote(name), &to));
            if down.is_some() {
                self.is(&to, name);
            }
            up.is_some() || down.is_some()
        })
    }

    fn empty(&self) -> bool {
        let (from, to) = (self.here(b"nothing"), self.here(b"back"));
        fs::write(&from, b"").expect("a local file");
        let up = self.client.does(Task::Upload(&from, &self.remote(b"nothing"))).is_some();
        if !up {
            fs::write(self.there(b"nothing"), b"").expect("a file");
        }
        self.is(&self.there(b"nothing"), b"");
        let _before = fs::remove_file(&to);
        let down = self.client.does(Task::Download(&self.remote(b"nothing"), &to)).is_some();
        if down {
            self.is(&to, b"");
        }
        up || down
    }

    /// A file of 10 GiB of which the end is missing, in whatever directions it can be resumed.
    fn sparse(&self) -> bool {
        let whole = |path: &Path| {
            let mut end = [0; 4];
            let file = File::open(path).expect("a file");
            assert_eq!(file.metadata().expect("a file").len(), SPARSE, "{}", path.display());
            file.read_exact_at(&mut end, SPARSE - 4).expect("its end");
            assert_eq!(&end, b"\0end");
        };
        let part = |path: &Path| {
            let file = File::create(path).expect("a file");
            file.set_len(SPARSE - TAIL).expect("a hole");
        };
        let (here, there) = (self.here(b"sparse"), self.there(b"sparse"));
        part(&here);
        let down = self.client.does(Task::ResumeDownload(b"sparse", &here, SPARSE - TAIL));
        if down.is_some() {
            whole(&here);
        } else {
            let file = File::create(&here).expect("a file");
            file.write_all_at(b"end", SPARSE - 3).expect("a hole and an end");
        }
        part(&there);
        let task = Task::ResumeUpload(&here, &self.remote(b"sparse"), SPARSE - TAIL);
        let up = self.client.does(task);
        if up.is_some() {
            whole(&there);
        }
        down.is_some() || up.is_some()
    }
}

/// No temporary file of an upload may be left.
fn nothing_half(dir: &Path) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let name = entry.expect("an entry").file_name();
        assert!(!name.as_bytes().starts_with(b".plimsoll-upload"), "{}", name.display());
    }
}
