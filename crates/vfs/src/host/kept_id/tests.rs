//! Tests of the identity that is kept for a file system.

use super::*;

const ROOT: &str = "1 0 fuse.sshfs host:/data";

/// A file in a folder that goes away with its test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("plimsoll-test-kept-id-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("file-system-00000001")
    }

    /// The identity for a root with these entries; its number is 40 if it is the first.
    fn open(&self, root: &str, entries: &[RootEntry]) -> FileSystemIdentity {
        let look = |known: &RootEntry| entries.iter().find(|now| now.name == known.name).cloned();
        opened(&self.file(), root, look, || 40).expect("an identity").0
    }

    /// As if the share had met these.
    fn keep(&self, entries: &[RootEntry]) {
        let kept = FileSystemIdentity { entries: entries.to_vec(), ..self.open(ROOT, &[]) };
        write(&self.file(), &kept, &[]).expect("written");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn entry(name: &[u8], ino: u64) -> RootEntry {
    RootEntry { name: name.to_vec(), ino, birth: 0 }
}

#[test]
fn a_root_keeps_its_number_over_device_numbers() {
    let scratch = Scratch::new("same");
    assert_eq!(scratch.open(ROOT, &[]).id, 40);
    assert_eq!(opened(&scratch.file(), ROOT, |_| None, || 41).expect("kept").0.id, 40);
}

#[test]
fn another_mount_source_gets_another_number() {
    let scratch = Scratch::new("source");
    assert_eq!(scratch.open(ROOT, &[]).id, 40);
    let other = scratch.open("1 0 fuse.sshfs other:/data", &[]);
    assert_ne!(other.id, 40, "not the device number, which may be used again");
}

#[test]
fn what_is_in_the_root_distinguishes_it() {
    let scratch = Scratch::new("entries");
    let (a, b, c) = (entry(b"a", 2), entry(b"b\n ", 3), entry(b"c", 4));
    scratch.keep(&[a.clone(), b.clone(), c.clone()]);
    for now in [
        // As it was, with more, with fewer, with one replaced.
        vec![a.clone(), b.clone(), c.clone()],
        vec![c.clone(), b.clone(), a.clone(), entry(b"d", 5)],
        vec![b.clone()],
        vec![a.clone(), b.clone(), entry(b"c", 9)],
    ] {
        assert_eq!(scratch.open(ROOT, &now).id, 40, "{now:?}");
    }
    for now in [
        // Empty, other names, other numbers, one of three the same.
        vec![],
        vec![entry(b"x", 2)],
        vec![entry(b"a", 4), entry(b"b\n ", 2), entry(b"c", 3)],
        vec![a.clone(), entry(b"b\n ", 4), entry(b"c", 3)],
        vec![RootEntry { birth: 1, ..a.clone() }],
    ] {
        scratch.keep(&[a.clone(), b.clone(), c.clone()]);
        let before = scratch.open(ROOT, &[a.clone(), b.clone(), c.clone()]).id;
        let after = scratch.open(ROOT, &now);
        assert!(after.id != before && after.entries.is_empty(), "{now:?}");
        std::fs::remove_file(scratch.file()).expect("removed");
    }
}

#[test]
fn one_that_is_back_has_its_number_again() {
    let scratch = Scratch::new("back");
    let first = [entry(b"a", 2)];
    scratch.keep(&first);
    let other = scratch.open(ROOT, &[entry(b"x", 2)]).id;
    assert_ne!(other, 40);
    for at in 0..FILE_SYSTEMS_KEPT as u64 - 2 {
        scratch.open(&format!("1 0 fuse.sshfs other:/{at}"), &[]);
    }
    let look = |known: &RootEntry| first.iter().find(|now| now.name == known.name).cloned();
    let (kept, former) = opened(&scratch.file(), ROOT, look, || 41).expect("kept");
    assert_eq!(kept.id, 40);
    assert!(former.len() < FILE_SYSTEMS_KEPT && former.iter().any(|kept| kept.id == other));
    // The oldest go first.
    for at in 0..FILE_SYSTEMS_KEPT {
        scratch.open(&format!("1 0 fuse.sshfs more:/{at}"), &[]);
    }
    assert_ne!(scratch.open(ROOT, &first).id, 40);
}

#[test]
fn a_damaged_file_is_reported_and_left() {
    let scratch = Scratch::new("damaged");
    for text in [
        "",
        "zz",
        "id +000000000000001 r\n",
        "id 0000000000000001 r",
        "entry 1 2 61\n",
        "id 0000000000000001 r\nentry 1 2\n",
        "id 0000000000000001 r\nentry 1 2 616\n",
        "id 0000000000000001 r\nentry 1 2 61 3\n",
        "id 0000000000000001 r\nentry 1 x 61\n",
        "id 0000000000000001 r\nother 1\n",
    ] {
        std::fs::write(scratch.file(), text).expect("written");
        assert!(opened(&scratch.file(), ROOT, |_| None, || 40).is_err(), "{text:?}");
        assert_eq!(std::fs::read_to_string(scratch.file()).expect("read"), text);
    }
}
