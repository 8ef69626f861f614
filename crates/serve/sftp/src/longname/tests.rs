//! Tests of the lines of a listing.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use vfs::attr::FileType;

use super::*;

struct Alice;

impl Owners for Alice {
    fn user(&self, uid: u32) -> Option<String> {
        (uid == 1000).then(|| "alice".to_owned())
    }

    fn group(&self, _: u32) -> Option<String> {
        None
    }
}

fn line_of(attr: &Attr, name: &[u8], now_s: i64) -> String {
    String::from_utf8_lossy(&line(name, attr, &mut OwnerNames::new(&Alice), now_s)).into_owned()
}

#[test]
fn lines_look_like_those_of_ls() {
    let mtime = Time { sec: 1_709_210_096, nsec: 0 };
    let file = Attr {
        kind: FileType::Regular,
        mode: 0o4755,
        nlink: 1,
        uid: 1000,
        gid: 100,
        size: 12_345,
        mtime,
        ..Attr::of_shares()
    };
    let soon = mtime.sec + 86_400;
    assert_eq!(
        line_of(&file, b"a b\xff", soon),
        "-rwsr-xr-x    1 alice    100         12345 Feb 29 12:34 a b\u{fffd}"
    );
    let years = mtime.sec + 3 * 365 * 86_400;
    assert_eq!(
        line_of(&file, b"x", years),
        "-rwsr-xr-x    1 alice    100         12345 Feb 29  2024 x"
    );
}

#[test]
fn special_bits_without_execution_are_capitals() {
    let dir = Attr { mode: 0o7644, ..Attr::of_shares() };
    assert!(line_of(&dir, b"d", 0).starts_with("drwSr-Sr-T "));
}

/// Counts how often it is asked.
#[derive(Default)]
struct CountedOwners(AtomicU32);

impl Owners for CountedOwners {
    fn user(&self, _: u32) -> Option<String> {
        self.0.fetch_add(1, Relaxed);
        None
    }

    fn group(&self, gid: u32) -> Option<String> {
        self.0.fetch_add(1, Relaxed);
        Some(format!("group{gid}"))
    }
}

#[test]
fn an_owner_of_many_files_is_asked_for_once() {
    let asked = CountedOwners::default();
    let mut known = OwnerNames::new(&asked);
    for n in 0..100 {
        let attr = Attr { uid: n % 2, gid: 7, ..Attr::of_shares() };
        let line = line(b"x", &attr, &mut known, 0);
        let owners = format!(" {:<8} group7 ", n % 2);
        assert!(String::from_utf8_lossy(&line).contains(&owners), "{line:?}");
    }
    assert_eq!(asked.0.load(Relaxed), 3);
}
