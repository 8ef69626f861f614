//! State directories: made, locked, refused; secrets and users that survive a restart.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::keys::Keys;
use super::registry::{self, Entry};
use super::{StateDir, StateError, bases, effective_uid, files, folder_name, make_private};

/// A folder that goes with the test.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        let name = format!("plimsoll-control-{}", files::random_hex::<8>());
        let path = std::env::temp_dir().join(name);
        make_private(&path).unwrap();
        Self(path)
    }
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn it_is_private_and_locked() {
    let scratch = Scratch::new();
    let path = scratch.path().join("a/b");
    let state = StateDir::open(&path).unwrap();
    assert_eq!(mode(&path), 0o700);
    let meta = fs::metadata(&path).unwrap();
    assert_eq!(state.identity(), (meta.dev(), meta.ino()));

    let error = StateDir::open(&path).unwrap_err();
    assert!(matches!(error, StateError::Locked { .. }));
    let pid = std::process::id().to_string();
    assert!(error.to_string().contains(&pid), "names the pid: {error}");

    drop(state);
    StateDir::open(&path).expect("free again");
}

/// What a child has that another thread has forked and that has not started its program yet.
#[test]
fn it_is_free_again_although_a_copy_of_the_descriptor_is_open() {
    let scratch = Scratch::new();
    let path = scratch.path().join("a");
    let state = StateDir::open(&path).unwrap();
    let copy = state._lock.0.try_clone().unwrap();
    drop(state);
    let again = StateDir::open(&path).expect("free again");
    drop(copy);
    assert!(matches!(StateDir::open(&path), Err(StateError::Locked { .. })));
    drop(again);
}

#[test]
fn a_folder_with_other_things_in_it_is_left_alone() {
    let scratch = Scratch::new();
    let path = scratch.path().join("home");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(path.join("letter"), "dear").unwrap();
    assert!(matches!(StateDir::open(&path), Err(StateError::NotOurs { .. })));
    assert_eq!(mode(&path), 0o755);
    fs::remove_file(path.join("letter")).unwrap();
    StateDir::open(&path).expect("an empty folder is taken");
    assert_eq!(mode(&path), 0o700);
}

#[test]
fn default_folders_follow_the_user() {
    let none = |_: &str| None;
    let (system, own) = (PathBuf::from("/var/lib/plimsoll"), PathBuf::from("/var/tmp/plimsoll-0"));
    assert_eq!(bases(0, &none), [system, own], "the installed service may have the first");
    assert_eq!(bases(7, &none), [PathBuf::from("/var/tmp/plimsoll-7")]);
    let env = |name: &str| match name {
        "XDG_STATE_HOME" => Some(OsString::from("relative/is/ignored")),
        "HOME" => Some(OsString::from("/home/a")),
        _ => None,
    };
    let home = PathBuf::from("/home/a/.local/state/plimsoll");
    assert_eq!(bases(7, &env), [home, PathBuf::from("/var/tmp/plimsoll-7")]);
}

#[test]
fn different_directories_have_different_folders() {
    let a = folder_name(Path::new("/srv/data"));
    assert!(a.starts_with("data-"), "{a}");
    assert_eq!(a, folder_name(Path::new("/srv/data")));
    assert_ne!(a, folder_name(Path::new("/mnt/data")));
    assert!(folder_name(Path::new("/")).starts_with("root-"));
    let strange = folder_name(Path::new("/srv/a b\u{e9}/.."));
    assert!(!strange.contains(['/', ' ']), "{strange}");
}

#[test]
fn secrets_survive_a_restart_and_are_private() {
    let scratch = Scratch::new();
    let first = {
        let state = StateDir::open(scratch.path()).unwrap();
        Keys::open(&state).unwrap()
    };
    let state = StateDir::open(scratch.path()).unwrap();
    let second = Keys::open(&state).unwrap();
    assert_eq!(first.handle_secret, second.handle_secret);
    assert_eq!(first.api_token, second.api_token);
    assert_eq!(first.number(), second.number());
    let other = Keys { handle_secret: [7; 32], ..second };
    assert_ne!(first.number(), other.number());
    for name in ["api-token", "handle-secret", "lock"] {
        assert_eq!(mode(&state.file(name)), 0o600, "{name}");
    }
    fs::write(state.file("handle-secret"), "short").unwrap();
    assert!(matches!(Keys::open(&state), Err(StateError::Damaged { .. })));
}

#[test]
fn the_registry_lists_servers_that_answer_and_cleans_up_the_rest() {
    let scratch = Scratch::new();
    let registry = scratch.path().join("run");
    let socket = scratch.path().join("s");
    let _listener = crate::listen::local::bind(&socket).unwrap();
    let entry = |pid, socket: &Path| Entry {
        pid,
        dir: "/srv".into(),
        state: scratch.path().to_owned(),
        socket: socket.to_owned(),
    };
    let alive = registry::register(&registry, &entry(1, &socket)).unwrap();
    let stale = registry::register(&registry, &entry(2, &scratch.path().join("x"))).unwrap();
    fs::write(registry.join("3.json"), "{broken").unwrap();
    assert_eq!(registry::running(&registry), [entry(1, &socket)]);
    assert!(!registry.join("2.json").exists() && !registry.join("3.json").exists());
    drop(stale);
    drop(alive);
    assert!(registry::running(&registry).is_empty());
    let starts = StateDir::open(&scratch.path().join("starts")).unwrap();
    let starting = Entry { state: starts.path().to_owned(), ..entry(4, &starts.socket()) };
    let registered = registry::register(&registry, &starting).unwrap();
    assert_eq!(registry::running(&registry), [starting], "it does not answer yet");
    drop(starts);
    assert!(registry::running(&registry).is_empty(), "it has failed to start");
    drop(registered);
    let root = super::effective_uid() == 0;
    let (own, service) = (registry::default_dir(), PathBuf::from(registry::SERVICE));
    let expected = if root { vec![own, service] } else { vec![own] };
    assert_eq!(registry::default_dirs(), expected);
}

#[test]
fn files_are_replaced_whole() {
    let scratch = Scratch::new();
    let path = scratch.path().join("f");
    files::write_atomic(&path, b"one", 0o600).unwrap();
    files::write_atomic(&path, b"two", 0o640).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(mode(&path), 0o640);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing is left aside");
}

#[test]
fn a_folder_of_another_user_in_a_shared_folder_is_refused() {
    if effective_uid() != 0 {
        return;
    }
    let top = PathBuf::from(format!("/var/tmp/plimsoll-test-{}", std::process::id()));
    fs::create_dir(&top).unwrap();
    let ours = top.join("ours");
    make_private(&ours.join("run")).unwrap();
    // Its own folder, and a link to it from another user's folder.
    let theirs = top.join("theirs");
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::symlink(&ours, theirs.join("run")).unwrap();
    std::os::unix::fs::chown(&theirs, Some(65_534), None).unwrap();
    assert!(matches!(make_private(&theirs.join("run")), Err(StateError::Owner { .. })));
    assert!(matches!(make_private(&theirs.join("new")), Err(StateError::Owner { .. })));
    let link = top.join("link");
    std::os::unix::fs::symlink(&ours, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(65_534), None).unwrap();
    assert!(matches!(make_private(&link), Err(StateError::Owner { .. })));
    assert!(!theirs.join("new").exists());
    fs::remove_dir_all(&top).unwrap();
}
