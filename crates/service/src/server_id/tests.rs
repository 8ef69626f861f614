//! Tests of the identity of a server.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use base::random::SeededRandom;

use super::*;

/// A folder that goes away with its test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-test-server-id-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(path.join("a")).expect("a folder");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(state: &Path, seed: u64, before: Option<&[u8]>) -> ServerId {
    let before = before.map(<[u8]>::to_vec);
    ServerId::open(state, || before, &mut SeededRandom::new(seed)).expect("an identity")
}

#[test]
fn it_stays_when_the_state_directory_moves() {
    let scratch = Scratch::new();
    let (from, to) = (scratch.0.join("a"), scratch.0.join("b"));
    let first = open(&from, 1, None);
    assert_eq!(open(&from, 2, None), first);
    std::fs::rename(&from, &to).expect("moved");
    assert_eq!(open(&to, 3, None), first);
    std::fs::create_dir(&from).expect("a folder");
    let other = open(&from, 4, None);
    assert!(other.guid != first.guid && other.owner != first.owner);
}

#[test]
fn an_upgrade_keeps_the_owner_that_clients_know() {
    let scratch = Scratch::new();
    let (from, to) = (scratch.0.join("a"), scratch.0.join("b"));
    let before = b"plimsoll machine /var/lib/a\nb/clients";
    let first = open(&from, 1, Some(before));
    assert_eq!(first.owner, before);
    std::fs::rename(&from, &to).expect("moved");
    assert_eq!(open(&to, 2, Some(b"another path")), first);
}

#[test]
fn an_owner_too_long_to_encode_is_replaced() {
    let scratch = Scratch::new();
    let first = open(&scratch.0.join("a"), 1, Some(&[b'x'; NFS4_OPAQUE_LIMIT + 1]));
    assert_eq!(first.owner, format!("plimsoll {}", hex(&first.guid)).into_bytes());
}

#[test]
fn a_damaged_file_is_reported_and_left() {
    let scratch = Scratch::new();
    let state = scratch.0.join("a");
    let sign = format!("+{}\n", "1".repeat(31));
    for text in ["", "short\n", "0".repeat(32).as_str(), sign.as_str()] {
        std::fs::write(state.join(FILE), text).expect("written");
        let opened = ServerId::open(&state, || None, &mut SeededRandom::new(1));
        assert!(matches!(opened, Err(StateError::Damaged { .. })), "{text:?}");
        assert_eq!(std::fs::read_to_string(state.join(FILE)).expect("read"), text);
    }
}
