//! Small crates with files that import each other, and the list of declared circles.

use super::*;

fn sources(files: &[(&str, &str)]) -> Vec<Source> {
    files.iter().map(|(path, text)| Source::new(path, (*text).to_owned())).collect()
}

/// The circles of a crate with `files` below `src`, as lists of files below `src`.
fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let paths: Vec<_> =
        files.iter().map(|(path, text)| (format!("crates/a/src/{path}"), *text)).collect();
    let files: Vec<_> = paths.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let short = |path: &String| path.trim_start_matches("crates/a/src/").to_owned();
    let circles = circles(&sources(&files));
    circles.iter().map(|c| c.files.keys().map(short).collect()).collect()
}

#[test]
fn two_files_that_import_each_other_are_a_circle() {
    let one = ("one.rs", "use crate::two::Two;");
    let circle = [vec!["one.rs".to_owned(), "two.rs".to_owned()]];
    for back in [
        "use crate::one::One;",
        "use super::one;",
        "use crate::{three, one::{self, Other}};",
        "use crate::one::One as First;",
        "pub(crate) use super::one::*;",
        "fn two() { crate::one::make(); }",
        "use super::one;\nfn two() { one::make(); }",
        "fn two(x: super::one::One) {}",
    ] {
        assert_eq!(found(&[one, ("two.rs", back)]), circle, "{back}");
    }
    for none in ["use other::one::One;", "// crate::one::One", "const A: &str = \"crate::one\";"] {
        assert!(found(&[one, ("two.rs", none)]).is_empty(), "{none}");
    }
}

#[test]
fn a_longer_circle_is_found_whole_and_no_file_that_only_leads_to_it() {
    let files = [
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "use crate::c::C;"),
        ("c.rs", "use crate::a::A;"),
        ("d.rs", "use crate::a::A;"),
    ];
    assert_eq!(found(&files), [["a.rs", "b.rs", "c.rs"]]);
}

#[test]
fn a_module_and_what_is_below_it_may_import_each_other() {
    let files = [
        ("lib.rs", "pub use one::Leaf;\nuse one::leaf::deep::Deep;"),
        ("one/mod.rs", "mod leaf;\npub use leaf::Leaf;"),
        ("one/leaf.rs", "use super::One;\nuse crate::Root;"),
        ("one/leaf/deep.rs", "use super::super::One;\nuse crate::Root;"),
    ];
    assert!(found(&files).is_empty());
}

#[test]
fn a_re_export_does_not_hide_an_import() {
    let by_name = [
        ("one/mod.rs", "pub use leaf::Leaf;"),
        ("one/leaf.rs", "use crate::two::Two;"),
        ("two.rs", "use crate::one::Leaf;"),
    ];
    assert_eq!(found(&by_name), [["one/leaf.rs", "two.rs"]]);
    let by_glob = [
        ("one/mod.rs", "pub use leaf::*;\npub use other::*;"),
        ("one/leaf.rs", "use crate::two::Two;\npub struct Leaf;"),
        ("one/other.rs", "pub struct Other;"),
        ("two.rs", "use crate::one::Leaf;"),
    ];
    assert_eq!(found(&by_glob), [["one/leaf.rs", "two.rs"]]);
    let siblings = [
        ("one/mod.rs", "pub use a::A;\npub use b::B;"),
        ("one/a.rs", "use super::B;"),
        ("one/b.rs", "use super::A;"),
    ];
    assert_eq!(found(&siblings), [["one/a.rs", "one/b.rs"]]);
}

#[test]
fn tests_are_no_part_of_a_circle() {
    let files = [
        ("one.rs", "#[cfg(test)]\nuse crate::two::Two;\n#[cfg(test)]\nmod tests;"),
        ("one/tests.rs", "use crate::two::Two;"),
        ("two.rs", "use crate::one::One;\n#[cfg(test)]\nmod planted;"),
        ("two/planted.rs", "use crate::three::Three;"),
        ("three.rs", "use crate::two::planted::Planted;"),
    ];
    assert!(found(&files).is_empty());
}

const FILES: [(&str, &str); 2] = [
    ("crates/a/src/one.rs", "use crate::two::Two;"),
    ("crates/a/src/two.rs", "use crate::one::One;"),
];

fn declared(file: &str, files: usize, reason: &str) -> String {
    format!("[[circle]]\nfile = \"crates/a/src/{file}\"\nfiles = {files}\nreason = \"{reason}\"\n")
}

fn reported(list: &str) -> Vec<String> {
    let findings = check(list, &sources(&FILES)).unwrap();
    findings.into_iter().map(|f| f.what).collect()
}

#[test]
fn a_declared_circle_is_permitted_while_it_is_as_it_was() {
    assert!(reported("")[0].contains("one.rs -> two.rs"));
    assert!(reported(&declared("two.rs", 2, "they are one")).is_empty());
    let shrunk = reported(&declared("two.rs", 3, "they are one"));
    assert_eq!(shrunk, ["3 files are declared but 2 are in it: lower it"]);
    let grown = reported(&declared("two.rs", 1, "they are one"));
    assert!(grown[0].starts_with("1 files are declared but 2 are in it"));
    assert_eq!(reported(&declared("two.rs", 2, "")), ["the declared circle gives no reason"]);
    let gone = reported(&declared("three.rs", 2, "they were one"));
    assert_eq!(gone[0], "the declared circle is gone: take it off the list");
    assert_eq!(gone.len(), 2);
}

#[test]
fn more_circles_than_permitted_are_reported() {
    let list: String =
        (0..=DECLARED_MAX).map(|n| declared(&format!("{n}.rs"), 2, "many")).collect();
    assert_eq!(reported(&list).last().unwrap(), "3 circles are declared, 2 are permitted");
}
