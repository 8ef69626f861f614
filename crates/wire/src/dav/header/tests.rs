//! Headers as clients send them.

use super::*;

#[test]
fn depths() {
    assert_eq!(Depth::parse("0"), Some(Depth::Zero));
    assert_eq!(Depth::parse(" 1"), Some(Depth::One));
    assert_eq!(Depth::parse("Infinity"), Some(Depth::Infinity));
    assert_eq!(Depth::parse("1,noroot"), None);
    assert_eq!(Depth::parse(""), None);
}

#[test]
fn timeouts() {
    assert_eq!(timeout("Second-3600"), Some(3600));
    assert_eq!(timeout("Infinite, Second-4100000000"), Some(u64::MAX));
    assert_eq!(timeout("Extended-1, second-5"), Some(5));
    assert_eq!(timeout("Second-99999999999999999999999"), Some(u64::MAX));
    assert_eq!(timeout("Second-"), None);
    assert_eq!(timeout("Second-+5"), None);
    assert_eq!(timeout("Sécond-5"), None);
}

#[test]
fn tokens() {
    assert_eq!(lock_token(" <opaquelocktoken:1> "), Some("opaquelocktoken:1"));
    assert_eq!(lock_token("opaquelocktoken:1"), None);
    assert_eq!(lock_token("<>"), None);
    assert_eq!(lock_token("<a><b>"), None);
}

#[test]
fn targets() {
    let at = |authority, path| Some(Target { authority, path });
    assert_eq!(target("/a%20b?x#y"), at(None, "/a%20b"));
    assert_eq!(target("http://h:81/a"), at(Some("h:81"), "/a"));
    assert_eq!(target("HTTPS://me@h"), at(Some("h"), "/"));
    assert_eq!(target("//h/a"), None);
    assert_eq!(target("ftp://h/a"), None);
    assert_eq!(target("a/b"), None);
    assert_eq!(target("http:///a"), None);
    assert_eq!(target("/a\tb"), None);
    assert!(same_authority("Host:80", "host") && same_authority("h", "h:443"));
    assert!(!same_authority("h:81", "h"));
}

#[test]
fn overwrites() {
    assert_eq!((overwrite("T"), overwrite("F"), overwrite("x")), (Some(true), Some(false), None));
}
