//! Paths lead nowhere but into their share.

use std::sync::Arc;

use vfs::mem::MemFs;
use vfs::share::ShareTable;

use super::*;

fn share() -> Arc<Share> {
    let mut table = ShareTable::default();
    table.add("box", MemFs::new(vfs::share::tag("box"), 1 << 20), false).expect("new")
}

#[test]
fn paths_are_those_of_the_share() {
    let share = share();
    let parse = |name: &str| path(&share, &utf16::encode(name)).map(|path| path.to_string());
    assert_eq!(parse(""), Ok("/box".to_owned()));
    assert_eq!(parse("a\\b c\\d.txt"), Ok("/box/a/b c/d.txt".to_owned()));
    assert_eq!(parse("folder\\"), Ok("/box/folder".to_owned()));
    assert_eq!(parse("file::$DATA"), Ok("/box/file".to_owned()));
    assert_eq!(parse("file::$Data"), Ok("/box/file".to_owned()));
    assert_eq!(parse("a\u{f026}b\\c"), Ok("/box/a\\b/c".to_owned()));
    assert_eq!(parse("a\u{f028}b"), Ok("/box/a\u{f028}b".to_owned()));
    assert_eq!(parse("a\u{f029}\\b\u{f028}"), Ok("/box/a./b ".to_owned()));
    assert_eq!(parse("a\u{f022}b"), Ok("/box/a:b".to_owned()));
    for wrong in [
        "..",
        "a\\..\\b",
        ".",
        "a\\\\b",
        "a/b",
        "a:stream",
        "a*",
        "a?",
        "a\0b",
        "a|b",
        "\u{f029}",
        ".\u{f029}",
    ] {
        assert_eq!(parse(wrong), Err(NtStatus::OBJECT_NAME_INVALID), "{wrong}");
    }
    for control in 1..0x20 {
        let name = format!("a{}b", char::from(control));
        assert_eq!(parse(&name), Err(NtStatus::OBJECT_NAME_INVALID), "{control}");
    }
    // It would be listed as U+00E9.
    assert_eq!(parse("\u{f0c3}\u{f0a9}"), Err(NtStatus::OBJECT_NAME_INVALID));
    assert_eq!(parse("\\a"), Err(NtStatus::INVALID_PARAMETER));
    let long = "x".repeat(256);
    assert_eq!(parse(&long), Err(NtStatus::OBJECT_NAME_INVALID));
    let deep = vec!["d"; 10_000].join("\\");
    assert_eq!(parse(&deep), Err(NtStatus::OBJECT_NAME_INVALID));
}

#[test]
fn paths_are_shown_with_backslashes() {
    let share = share();
    let path = path(&share, &utf16::encode("a\\b")).expect("a path");
    assert_eq!(shown(&path), utf16::encode("\\a\\b"));
    assert_eq!(shown(&VPath::ROOT.with(b"box")), utf16::encode("\\"));
}

#[test]
fn many_short_parts_are_not_for_nothing() {
    let share = share();
    let deep = path(&share, &utf16::encode(&vec!["d"; 200].join("\\"))).expect("a path");
    assert!(held(&deep) > 200 * size_of::<Vec<u8>>());
}

#[test]
fn patterns_are_names_with_wildcards() {
    for pattern in ["*", "?", "a<b>c\"d", ".", "..", "name", "\u{f022}"] {
        assert!(is_pattern(&utf16::encode(pattern)), "{pattern}");
    }
    for pattern in ["a\\b", "a/b", "a:b", "a|b", "a\u{1}", "\0"] {
        assert!(!is_pattern(&utf16::encode(pattern)), "{pattern}");
    }
    assert!(!is_pattern(b"a"));
}

#[test]
fn only_a_path_that_has_something_before_it_ends_with_a_separator() {
    let is_of_dir = |path: &str| is_of_dir(&utf16::encode(path));
    assert!(is_of_dir("a\\"));
    assert!(!is_of_dir("a") && !is_of_dir("") && !is_of_dir("\u{5c00}a"));
}
