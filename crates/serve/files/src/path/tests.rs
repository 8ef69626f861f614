//! Whatever a client writes, its path stays below the list of shares.

use super::*;

fn path(text: &str) -> VPath {
    VPath::parse(text.as_bytes()).expect("it is one")
}

#[test]
fn no_path_leads_above_its_root() {
    for (given, becomes) in [
        ("", "/"),
        ("/", "/"),
        ("//a//b/", "/a/b"),
        ("a/./b", "/a/b"),
        ("../../etc/passwd", "/etc/passwd"),
        ("/a/../../b", "/b"),
        ("/a/b/../..", "/"),
    ] {
        assert_eq!(path(given).to_string(), becomes, "{given:?}");
    }
    let here = path("/share/dir");
    assert_eq!(here.join(b"../x").expect("good").to_string(), "/share/x");
    assert_eq!(here.join(b"/x").expect("good").to_string(), "/x");
    assert_eq!(here.join(b"../../../..").expect("good"), VPath::ROOT);
}

#[test]
fn names_are_bytes_and_have_bounds() {
    let odd = VPath::parse(b"/s/\xff\xfe \"'\n").expect("bytes are bytes");
    assert_eq!(odd.name(), Some(&b"\xff\xfe \"'\n"[..]));
    assert_eq!(VPath::parse(b"/s/a\0b"), Err(PathError::Nul));
    assert!(VPath::parse(&[b'x'; NAME_MAX]).is_ok());
    assert_eq!(VPath::parse(&[b'x'; NAME_MAX + 1]), Err(PathError::TooLong));
    assert_eq!(VPath::parse(&[b'/'; TRANSFER_PATH_MAX + 1]), Err(PathError::TooLong));
    let deep = b"/x".repeat(TRANSFER_PARTS_MAX);
    let deep = VPath::parse(&deep).expect("as deep as can be");
    assert_eq!(deep.join(b"x"), Err(PathError::TooLong));
    assert_eq!(deep.join(b"..").expect("less deep"), deep.parent());
}

#[test]
fn the_share_comes_first() {
    assert_eq!(VPath::ROOT.share(), None);
    let at = path("/s/a/b");
    let (share, within) = at.share().expect("in a share");
    assert_eq!((share, within.len()), (&b"s"[..], 2));
    assert!(at.starts_with(&path("/s/a")) && !path("/s/ab").starts_with(&path("/s/a")));
    assert_eq!(path("/s").with(b"..").to_string(), "/s/..", "with takes names as they are");
}
