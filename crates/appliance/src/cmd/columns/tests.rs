//! A cell stays in its place, whatever is in it.

use super::*;

#[test]
fn names_of_others_do_not_reach_the_terminal_as_they_are() {
    let names = ["plain", "\u{1b}[2J\u{1b}]0;title\u{7}", "two\nrows\r", "gpj\u{202e}exe"];
    let columns = [
        Column("name", Left, |name: &&str| (*name).to_owned()),
        Column("end", Left, |_| "x".to_owned()),
    ];
    let text = table(&columns, &Listing { rows: names.to_vec(), more: false }, "none");
    assert_eq!(text.lines().count(), 1 + names.len(), "{text:?}");
    assert!(!text.contains(['\u{1b}', '\u{7}', '\r', '\u{202e}']), "{text:?}");
    let ends: Vec<_> = text.lines().map(|line| line.chars().count()).collect();
    assert!(ends.iter().skip(1).all(|end| *end == ends[1]), "columns stay aligned: {ends:?}");
    assert!(text.contains("gpj\\u202eexe"), "{text:?}");
}
