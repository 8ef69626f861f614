//! The files that all servers serve, and the folders for uploads: one tree for all, on tmpfs,
//! accessed by this program directly, not through the servers.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use base::random::{Random, SeededRandom};

use super::Wanted;
use super::case::{self, Case, Work};

/// Content repeats after this many bytes: more than any window or record, so that no piece fits at
/// another offset.
const BLOCK: usize = (1 << 20) - 17;
/// Bytes of a large file of the warm-up.
const WARM: u64 = 16 << 20;
/// Permissions of the folders for uploads, whatever uid a server uses.
const EVERYBODY: u32 = 0o1777;

/// The tree; gone with the value.
pub struct Tree {
    /// All files, including those of the servers.
    pub base: PathBuf,
    /// What is served.
    pub root: PathBuf,
    /// The content of all files, repeated.
    pub block: Vec<u8>,
    folders: AtomicU32,
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// Where a transfer's files are: a folder below the root, and the names in it.
pub struct TransferFolder(String);

impl TransferFolder {
    /// Path of a file from the root on.
    pub fn file(&self, n: u32) -> String {
        format!("{}/{n:05}", self.0)
    }

    /// Path of the folder from the root on.
    pub fn folder(&self) -> &str {
        &self.0
    }
}

impl Tree {
    /// Makes the files to download.
    ///
    /// # Errors
    /// When there is no room.
    pub fn make(base: &Path, wanted: &Wanted) -> io::Result<Self> {
        let tree = Self::empty(base)?;
        for case in case::all(wanted) {
            for case in [tree.warm(&case), case] {
                tree.fill(&tree.down(&case), &case)?;
            }
        }
        Ok(tree)
    }

    /// Makes the folders alone.
    ///
    /// # Errors
    /// When there is no room.
    pub fn empty(base: &Path) -> io::Result<Self> {
        let mut block = vec![0; BLOCK];
        SeededRandom::new(1971).fill(&mut block);
        let (base, root) = (base.to_owned(), base.join("files"));
        let tree = Self { root, base, block, folders: AtomicU32::new(0) };
        for folder in ["", "up"] {
            let folder = tree.root.join(folder);
            fs::create_dir_all(&folder)?;
            fs::set_permissions(&folder, fs::Permissions::from_mode(EVERYBODY))?;
        }
        fs::set_permissions(&tree.base, fs::Permissions::from_mode(0o755))?;
        Ok(tree)
    }

    /// The files of a case's warm-up.
    pub fn warm(&self, case: &Case) -> Case {
        let large = Case { files: case.streams, size: WARM, ..case.clone() };
        if case.is_small() { case.clone() } else { large }
    }

    fn down(&self, case: &Case) -> TransferFolder {
        TransferFolder(format!("down/{}x{}", case.size, case.files))
    }

    /// The files of a case to download, made if they are not there: what other clients send, too.
    ///
    /// # Errors
    /// When there is no room.
    pub fn source(&self, case: &Case) -> io::Result<TransferFolder> {
        let place = self.down(case);
        self.fill(&place, case)?;
        Ok(place)
    }

    fn fill(&self, place: &TransferFolder, case: &Case) -> io::Result<()> {
        let folder = self.root.join(place.folder());
        if folder.exists() {
            return Ok(());
        }
        fs::create_dir_all(&folder)?;
        for n in 0..case.files {
            let mut file = File::create(self.root.join(place.file(n)))?;
            let mut left = case.size;
            while left > 0 {
                let len = self.block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                file.write_all(self.block.get(..len).unwrap_or_default())?;
                left -= len as u64;
            }
        }
        Ok(())
    }

    /// Where the files of a case are, or will be: uploads go into a new folder each time, as some
    /// servers cache listings for a while.
    pub fn place(&self, case: &Case) -> TransferFolder {
        match case.work {
            Work::Download => self.down(case),
            Work::Upload => {
                TransferFolder(format!("up/{:04}", self.folders.fetch_add(1, Ordering::Relaxed)))
            }
        }
    }

    /// Checks below the server that the first `files` files of an upload are complete, with all
    /// their content if wanted.
    ///
    /// # Errors
    /// The file that is not.
    pub fn check(
        &self,
        place: &TransferFolder,
        size: u64,
        files: &[u32],
        content: bool,
    ) -> io::Result<()> {
        for n in files {
            let path = self.root.join(place.file(*n));
            let wrong = |why: &str| io::Error::other(format!("{}: {why}", path.display()));
            let mut file = File::open(&path).map_err(|e| wrong(&e.to_string()))?;
            if file.metadata()?.len() != size {
                return Err(wrong("is not whole"));
            }
            let (mut at, mut part) = (0, vec![0; 256 << 10]);
            while content && at < size {
                let len = file.read(&mut part)?;
                if len == 0 || !self.is_content(at, part.get(..len).unwrap_or_default()) {
                    return Err(wrong("has another content"));
                }
                at += len as u64;
            }
        }
        Ok(())
    }

    /// Whether these bytes are a file's from `at` on.
    pub fn is_content(&self, at: u64, bytes: &[u8]) -> bool {
        let mut at = usize::try_from(at % self.block.len() as u64).unwrap_or(0);
        let mut rest = bytes;
        while !rest.is_empty() {
            let here = self.block.get(at..).unwrap_or_default();
            let (now, later) = rest.split_at(rest.len().min(here.len()));
            if here.get(..now.len()) != Some(now) {
                return false;
            }
            (rest, at) = (later, 0);
        }
        true
    }

    /// Removes what was uploaded.
    pub fn clear(&self, case: &Case, place: &TransferFolder) {
        if case.work == Work::Upload {
            let _ = fs::remove_dir_all(self.root.join(place.folder()));
        }
    }
}
