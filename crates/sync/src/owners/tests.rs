//! Numbers within access control lists.

use wire::dsync::{Bytes, Kind, Meta, Time, Xattr};
use wire::xdr::Seq;

use super::{ReceivedOwners, named};

fn acl(entries: &[(u16, u32)]) -> Vec<u8> {
    let mut acl = 2u32.to_le_bytes().to_vec();
    for (tag, number) in entries {
        acl.extend(tag.to_le_bytes());
        acl.extend(5u16.to_le_bytes());
        acl.extend(number.to_le_bytes());
    }
    acl
}

#[test]
fn users_and_groups_are_translated_and_nothing_else() {
    let known = ReceivedOwners::default();
    known.0.write().expect("it").extend([((false, 7), 70), ((true, 7), 77), ((false, 5), 50)]);
    let list = |user: u32, group: u32| {
        acl(&[(1, u32::MAX), (2, user), (4, u32::MAX), (8, group), (16, 7), (32, 5)])
    };
    let found: Vec<_> = named(&list(5, 7)).collect();
    assert_eq!(found, [(16, (false, 5)), (32, (true, 7))]);
    let xattr = |name: &str, value| Xattr { name: Bytes(name.into()), value: Bytes(value) };
    let access = "system.posix_acl_access";
    let mut meta = Meta {
        kind: Kind::FILE,
        mode: 0,
        uid: 7,
        gid: 7,
        size: 0,
        mtime: Time { seconds: 0, nanoseconds: 0 },
        major: 0,
        minor: 0,
        target: Bytes(Vec::new()),
        link: None,
        xattrs: Seq(vec![xattr(access, list(5, 7)), xattr("user.acl", list(5, 7))]),
    };
    known.translate(&mut meta);
    assert_eq!((meta.uid, meta.gid), (70, 77));
    assert_eq!(meta.xattrs.0, [xattr(access, list(50, 77)), xattr("user.acl", list(5, 7))]);
    // What is cut off is left as it is.
    for length in 0..list(5, 7).len() {
        assert!(named(&list(5, 7)[..length]).count() <= 2);
    }
}
