//! Attributes and rights as Windows has them.

use super::*;

#[test]
fn kinds_and_permissions_are_attributes() {
    let dir = Attr::of_shares();
    assert_eq!(of(&dir, None).attributes, attributes::DIRECTORY);
    let file = Attr { kind: FileType::Regular, mode: 0o444, size: 5, used: 4096, ..dir };
    let facts = of(&file, None);
    assert_eq!(facts.attributes, attributes::ARCHIVE | attributes::READ_ONLY);
    assert_eq!((facts.size, facts.allocation), (5, 4096));
    let plain = Attr { mode: 0o644, ..file };
    assert_eq!(of(&plain, None).attributes, attributes::ARCHIVE);
    let kept = |bits| Dos { attributes: Some(bits), created: Some(77) };
    let facts = of(&plain, Some(&kept(attributes::HIDDEN | attributes::DIRECTORY)));
    assert_eq!((facts.attributes, facts.created), (attributes::HIDDEN, 77));
    assert_eq!(of(&plain, Some(&kept(0))).attributes, attributes::NORMAL);
    let hidden = of(&dir, Some(&kept(attributes::HIDDEN))).attributes;
    assert_eq!(hidden, attributes::HIDDEN | attributes::DIRECTORY);
}

#[test]
fn rights_follow_the_file_system() {
    let file = Attr { kind: FileType::Regular, ..Attr::of_shares() };
    let nothing = rights(0, &file, (false, false));
    assert_eq!(nothing & (access::READ_DATA | access::WRITE_DATA | access::DELETE), 0);
    let reads = rights(unix::READ, &file, (false, false));
    assert_eq!(reads & (access::READ_DATA | access::WRITE_DATA), access::READ_DATA);
    let all = rights(ALL_UNIX, &file, (true, true));
    assert_eq!(all, access::ALL);
}

#[test]
fn times_that_are_not_set() {
    for time in [0, u64::MAX, u64::MAX - 1] {
        assert_eq!(set_time(time), Ok(SetTime::Keep));
    }
    let at = Time { sec: 1_600_000_000, nsec: 100 };
    assert_eq!(set_time(filetime(at)), Ok(SetTime::At(at)));
    assert_eq!(set_time(u64::MAX - 2), Err(NtStatus::INVALID_PARAMETER));
}
