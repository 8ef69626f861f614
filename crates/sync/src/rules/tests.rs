//! Patterns mean what they mean to rsync.

use super::{Rules, rule};

fn excluded(pattern: &str, path: &str, directory: bool) -> bool {
    let rules = Rules::new(&[rule(false, pattern.as_bytes())]).expect("a rule");
    !rules.carries(path.as_bytes(), directory)
}

#[test]
fn a_name_fits_in_any_directory() {
    for path in ["core", "a/core", "a/b/core"] {
        assert!(excluded("core", path, false), "{path}");
    }
    for path in ["cores", "a/score", "core/a"] {
        assert!(!excluded("core", path, false), "{path}");
    }
}

#[test]
fn an_anchor_is_the_top() {
    assert!(excluded("/a", "a", false) && !excluded("/a", "b/a", false));
    assert!(excluded("/a/b", "a/b", false) && !excluded("/a/b", "x/a/b", false));
    assert!(excluded("a/b", "x/a/b", false) && !excluded("a/b", "xa/b", false));
}

#[test]
fn stars_stop_at_names_and_double_ones_do_not() {
    for (pattern, path, fits) in [
        ("*.o", "a/b.o", true),
        ("*.o", "b.o.c", false),
        ("/*.o", "a/b.o", false),
        ("/a/*/c", "a/b/c", true),
        ("/a/*/c", "a/b/d/c", false),
        ("/a/**/c", "a/b/d/c", true),
        ("/a/**/c", "a/c", false),
        ("/a/**", "a/b/c", true),
        ("/a/**", "a", false),
        ("**b", "x/y/ab", true),
        ("a*b*c", "aXbYbZc", true),
        ("a*b*c", "aXbYbZ", false),
        ("/**/x*y/z", "q/r/xaby/z", true),
        ("/**/x*y/z", "q/r/xa/by/z", false),
        ("?", "a", true),
        ("/a?b", "a/b", false),
        ("[a-c]x", "bx", true),
        ("[!a-c]x", "bx", false),
        ("[^a-c]x", "dx", true),
        ("[]x]", "]", true),
        ("[ab", "[ab", true),
        ("\\*", "*", true),
        ("\\*", "a", false),
    ] {
        assert_eq!(excluded(pattern, path, false), fits, "{pattern} {path}");
    }
}

#[test]
fn a_slash_at_the_end_means_directories() {
    assert!(excluded("tmp/", "a/tmp", true) && !excluded("tmp/", "a/tmp", false));
    for (path, directory, fits) in
        [("a", true, true), ("a", false, false), ("a/b", false, true), ("a/b/c", false, true)]
    {
        assert_eq!(excluded("/a/***", path, directory), fits, "{path}");
    }
}

#[test]
fn the_first_that_fits_decides() {
    let rules = [rule(true, b"*.c"), rule(true, b"*/"), rule(false, b"*")];
    let rules = Rules::new(&rules).expect("rules");
    assert!(rules.carries(b"a/b.c", false) && rules.carries(b"a", true));
    assert!(!rules.carries(b"a/b.h", false));
    assert!(rules.carries_way(b"a/b/d.c") && !rules.carries_way(b"a/b/d.h"));
    let rules = Rules::new(&[rule(false, b"/a/")]).expect("rules");
    assert!(!rules.carries_way(b"a/b/c") && rules.carries_way(b"b/a"));
}

#[test]
fn bytes_are_bytes() {
    let rules = Rules::new(&[rule(false, b"\xff*")]).expect("rules");
    assert!(!rules.carries(b"a/\xff\xfe", false) && rules.carries(b"\xfe", false));
}

#[test]
fn patterns_that_cost_are_refused_or_cheap() {
    assert!(Rules::new(&[rule(false, b"**a**b**c")]).is_err());
    assert!(Rules::new(&[rule(false, b"")]).is_err() && Rules::new(&[rule(false, b"/")]).is_err());
    let pattern = "*a".repeat(200) + "b";
    let path = "a".repeat(255);
    assert!(!excluded(&pattern, &path, false));
}
