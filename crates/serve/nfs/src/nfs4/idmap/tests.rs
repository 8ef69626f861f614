//! Owners in both directions: numbers, names, and unknown names.

use super::*;

const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:100::/home/ann:/bin/sh\n\
    alias:x:1000:100::/:/bin/sh\nbroken\n:x:7:7::/:\n12:x:12:12::/:\na@b:x:13:13::/:\n\
    bad:x:-1:1::/:\n";
const GROUP: &str = "root:x:0:\nusers:x:100:ann\n";

fn encoded(map: &IdMap, whose: OwnerKind, id: u32) -> String {
    let mut bytes = Vec::new();
    map.put(&mut Writer::new(&mut bytes), whose, id);
    let len = u32::from_be_bytes(bytes[..4].try_into().expect("a length")) as usize;
    String::from_utf8(bytes[4..4 + len].to_vec()).expect("text")
}

fn map() -> IdMap {
    let map = IdMap::names("Example.org");
    map.set(OwnerKind::User, PASSWD);
    map.set(OwnerKind::Group, GROUP);
    map
}

#[test]
fn without_a_domain_owners_are_numbers_and_root() {
    let map = IdMap::numbers();
    assert_eq!(encoded(&map, OwnerKind::User, 0), "0");
    assert_eq!(encoded(&map, OwnerKind::Group, u32::MAX), "4294967295");
    for (text, id) in [("0", 0), ("4294967295", u32::MAX), ("root", 0), ("root@anywhere", 0)] {
        assert_eq!(map.take(OwnerKind::User, text.as_bytes()), Ok(id), "{text}");
    }
    for text in ["4294967296", "-1", "+1", "ann", "ann@example.org", "1 "] {
        assert_eq!(map.take(OwnerKind::User, text.as_bytes()), Err(Nfsstat4::BADOWNER), "{text}");
    }
    assert_eq!(map.take(OwnerKind::User, b""), Err(Nfsstat4::INVAL));
    assert_eq!(map.take(OwnerKind::User, b"\xff"), Err(Nfsstat4::INVAL));
}

#[test]
fn with_a_domain_users_are_shown_by_name_and_accepted_by_name_or_number() {
    let map = map();
    assert_eq!(encoded(&map, OwnerKind::User, 1000), "ann@Example.org", "the first name");
    assert_eq!(encoded(&map, OwnerKind::Group, 100), "users@Example.org");
    assert_eq!(
        encoded(&map, OwnerKind::User, 100),
        "100",
        "there is such a group, but no such user"
    );
    for (text, id) in [
        ("ann@example.org", 1000),
        ("alias@EXAMPLE.ORG", 1000),
        ("1000", 1000),
        ("31", 31),
        ("root@example.org", 0),
    ] {
        assert_eq!(map.take(OwnerKind::User, text.as_bytes()), Ok(id), "{text}");
    }
    for text in ["ann", "ann@elsewhere", "root@elsewhere", "users@example.org", "@example.org"] {
        assert_eq!(map.take(OwnerKind::User, text.as_bytes()), Err(Nfsstat4::BADOWNER), "{text}");
    }
    assert_eq!(map.take(OwnerKind::Group, b"users@example.org"), Ok(100));
}

#[test]
fn invalid_lines_name_no_user_and_a_new_table_replaces_the_old_one() {
    let map = map();
    for id in [7, 12, 13] {
        assert_eq!(encoded(&map, OwnerKind::User, id), id.to_string());
    }
    map.set(OwnerKind::User, "bob:x:1000:100::/:\n");
    assert_eq!(encoded(&map, OwnerKind::User, 1000), "bob@Example.org");
    assert_eq!(map.take(OwnerKind::User, b"ann@example.org"), Err(Nfsstat4::BADOWNER));
}
