//! Tests of what the server creates itself: secrets, names, identifiers; and of existing files.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use wire::iscsi::chap::{SECRET_MAX, SECRET_MIN};

use super::*;

/// A folder that goes away with its test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("plimsoll-disk-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn secrets_are_long_random_and_plain() {
    let made: BTreeSet<Vec<u8>> = (0..1000).map(|_| fresh_secret()).collect();
    assert_eq!(made.len(), 1000, "no two are the same");
    assert!(made.iter().all(|secret| secret.len() == SECRET_LENGTH));
    // What Windows takes is 12 to 16 bytes.
    assert!((SECRET_MIN..=SECRET_MAX.min(16)).contains(&SECRET_LENGTH));
    // All letters occur, so that each stands for six bits.
    let letters: BTreeSet<u8> = made.iter().flatten().copied().collect();
    assert_eq!(letters, LETTERS.iter().copied().collect());
    assert_eq!((letters.len(), 6 * SECRET_LENGTH), (64, 96), "bits (RFC 7143 §9.2.1)");
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._".contains(byte);
    assert!(letters.iter().all(is_plain));
}

#[test]
fn secrets_and_the_name_of_the_target_are_made_once_for_the_server_alone() {
    let scratch = Scratch::new();
    let folder = scratch.0.join("luns");
    let locks: Arc<LockTable> = Arc::default();
    let first = Disk::open(&folder, &locks).and_then(|disk| disk.own()).expect("made");
    let ([initiators, target], name) = &first;
    assert_ne!(initiators, target);
    assert!(name.starts_with("iqn.2026-01.io.plimsoll:"), "{name}");
    for file in [SECRET, TARGET_SECRET, TARGET] {
        let meta = std::fs::metadata(folder.join(file)).expect("there");
        assert_eq!(meta.mode() & 0o777, 0o600, "{file}");
    }
    assert_eq!(std::fs::metadata(&folder).expect("there").mode() & 0o777, 0o700);
    let again = Disk::open(&folder, &locks).and_then(|disk| disk.own()).expect("found");
    assert_eq!(first, again);
    // Another server has others.
    let other = Disk::open(&scratch.0.join("other"), &locks).and_then(|disk| disk.own());
    let ([secret, own], target) = other.expect("made");
    assert!(secret != *initiators && own != first.0[1] && target != *name);
    // One that an administrator has written there counts, without the end of its line.
    std::fs::write(folder.join(SECRET), "a-secret-of-somebody\n").expect("written");
    let ([secret, _], _) = Disk::open(&folder, &locks).and_then(|disk| disk.own()).expect("found");
    assert_eq!(secret, b"a-secret-of-somebody");
}

#[test]
fn identifiers_are_of_naa_type_6_and_differ() {
    let made: BTreeSet<Guid> = (0..1000).map(|_| fresh_guid()).collect();
    assert_eq!(made.len(), 1000);
    assert!(made.iter().all(|guid| guid[0] >> 4 == 6));
}

#[test]
fn a_file_without_a_record_is_removed_only_if_it_has_no_data() {
    let scratch = Scratch::new();
    let path = scratch.0.join("disk.lun");
    remove_unused(&path).expect("nothing is there");
    std::fs::File::create(&path).and_then(|file| file.set_len(1 << 20)).expect("a hole");
    remove_unused(&path).expect("it is empty");
    assert!(!path.exists());
    std::fs::write(&path, vec![7; 65_536]).expect("written");
    let refused = remove_unused(&path).expect_err("it is somebody's");
    assert!(refused.to_string().contains("move it away"), "{refused}");
    assert!(path.exists());
}

#[test]
fn what_is_named_must_be_a_file_outside_of_the_state_directory() {
    let scratch = Scratch::new();
    let state = scratch.0.join("state");
    std::fs::create_dir(&state).expect("a folder");
    for (path, data) in [(state.join("disk"), "x"), (scratch.0.join("disk"), "y")] {
        std::fs::write(path, data).expect("written");
    }
    assert_eq!(named(&scratch.0.join("disk"), &state), Ok(true));
    assert_eq!(named(&scratch.0.join("none"), &state), Ok(false));
    assert!(named(&scratch.0, &state).is_err_and(|why| why.contains("is not a file")));
    // By a symbolic link as well.
    let link = scratch.0.join("link");
    std::os::unix::fs::symlink(state.join("disk"), &link).expect("a link");
    for path in [state.join("disk"), link] {
        assert!(named(&path, &state).is_err_and(|why| why.contains("state directory")));
    }
    assert!(device(&scratch.0.join("disk")).is_err_and(|why| why.contains("not a block device")));
}

/// In a directory that is shared clients can make links and folders.
#[test]
fn a_link_or_a_folder_of_a_client_does_not_become_the_folder_of_units() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let scratch = Scratch::new();
    let (folder, elsewhere) = (scratch.0.join(HIDDEN), scratch.0.join("elsewhere"));
    std::fs::create_dir(&elsewhere).expect("a folder");
    symlink(&elsewhere, &folder).expect("a link");
    assert!(make_folder(&folder).is_err());
    std::fs::remove_file(&folder).expect("gone");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).expect("a mode");
    assert!(make_folder(&folder).is_err());
    if effective_uid() == 0 {
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&folder, mode).expect("a mode");
        std::os::unix::fs::chown(&folder, Some(1_000), None).expect("an owner");
        assert!(make_folder(&folder).is_err());
    }
    std::fs::remove_dir(&folder).expect("gone");
    make_folder(&folder).expect("made");
    make_folder(&folder).expect("found");
}
