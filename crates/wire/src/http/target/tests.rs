//! Targets and forms.

use super::*;

fn path(target: &str) -> Result<(Vec<u8>, bool), TargetError> {
    Target::parse(target.as_bytes()).map(|t| (t.path, t.slash))
}

fn good(target: &str) -> (String, bool) {
    let (path, slash) = path(target).unwrap();
    (String::from_utf8(path).unwrap(), slash)
}

#[test]
fn paths_are_decoded_and_never_leave_the_top() {
    for (target, expected, slash) in [
        ("/", "/", true),
        ("/a", "/a", false),
        ("/a/", "/a", true),
        ("//a///b//", "/a/b", true),
        ("/a%20b/%C3%A4?x=1", "/a b/ä", false),
        ("/a/../b", "/b", false),
        ("/../../etc/passwd", "/etc/passwd", false),
        ("/%2e%2e/%2E./x", "/x", false),
        ("/a/.", "/a", true),
        ("/a/b/..", "/a", true),
        ("http://host:80/a", "/a", false),
        ("HTTPS://host?x", "/", true),
    ] {
        assert_eq!(good(target), (expected.to_owned(), slash), "{target}");
    }
    assert_eq!(path("*").unwrap().0, b"*");
    for target in
        ["", "a", "/a#b", "/%", "/%4", "/%zz", "/a%2fb", "/a%2Fb", "/%00", "host:80", "ftp://x/"]
    {
        assert!(path(target).is_err(), "{target}");
    }
    assert_eq!(path(&format!("/{}", "a".repeat(HTTP_TARGET_MAX))), Err(TargetError::TooLong));
}

#[test]
fn any_name_survives_encoding() {
    let all: Vec<u8> = (1..=255).filter(|b| *b != b'/').collect();
    let path = [b"/", all.as_slice()].concat();
    let (decoded, _) = decode_path(percent_encode(&path).as_bytes()).unwrap();
    assert_eq!(decoded, path);
}

#[test]
fn forms_are_decoded() {
    assert_eq!(form_value("a=1&name=x+y%26z&b", "name").as_deref(), Some("x y&z"));
    assert_eq!(form_value("a=1&b", "b").as_deref(), Some(""));
    assert_eq!(form_value("a=1", "b"), None);
}
