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
fn times_that_are_set_and_those_that_are_not() {
    let leave = [(0, AskedTime::Nothing), (u64::MAX, AskedTime::Leave)];
    for (field, asked) in [leave[0], leave[1], (u64::MAX - 1, AskedTime::Follow)] {
        assert_eq!(asked_time(field), Ok(asked));
    }
    for field in [1, filetime(Time { sec: 1_600_000_000, nsec: 100 }), i64::MAX as u64] {
        assert_eq!(asked_time(field), Ok(AskedTime::Set(field)));
        assert_eq!(filetime(unix_time(field)), field);
    }
    for field in [1 << 63, u64::MAX - 2] {
        assert_eq!(asked_time(field), Err(NtStatus::INVALID_PARAMETER));
    }
}

#[test]
fn times_that_an_open_leaves_alone() {
    let holds = |asked: AskedTime, held| asked.holds(held, 7, |set| set);
    assert_eq!(holds(AskedTime::Nothing, None), None);
    assert_eq!(holds(AskedTime::Nothing, Some(5)), Some(5));
    assert_eq!(holds(AskedTime::Leave, None), Some(7));
    assert_eq!(holds(AskedTime::Leave, Some(5)), Some(5));
    assert_eq!(holds(AskedTime::Set(9), Some(5)), Some(9));
    assert_eq!(holds(AskedTime::Follow, Some(5)), None);
}
