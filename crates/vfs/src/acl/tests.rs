//! Lists on disk, and that an NFSv4 client sees what they mean and can put them back.

use proptest::prelude::*;

use super::nfs4::{self, Ace, Who, from_aces, to_aces};
use super::{Acl, AclEntry, Tag};
use crate::status::Status;

fn acl(entries: &[(Tag, u8)]) -> Acl {
    let entries = entries.iter().map(|(tag, perm)| AclEntry { tag: *tag, perm: *perm });
    Acl::new(entries.collect()).expect("makes sense")
}

fn any_acl() -> impl Strategy<Value = Acl> {
    let named = || prop::collection::btree_map(1_u32..5, 0_u8..8, 0..3);
    (0_u8..8, 0_u8..8, 0_u8..8, 0_u8..8, named(), named()).prop_map(|(u, g, o, m, us, gs)| {
        let mut all = vec![(Tag::UserObj, u), (Tag::GroupObj, g), (Tag::Other, o)];
        all.extend(us.into_iter().map(|(id, perm)| (Tag::User(id), perm)));
        all.extend(gs.into_iter().map(|(id, perm)| (Tag::Group(id), perm)));
        if all.len() > 3 {
            all.push((Tag::Mask, m));
        }
        acl(&all)
    })
}

/// What POSIX grants a user that is neither the owner nor root.
fn posix(acl: &Acl, uid: u32, groups: &[u32], in_group: bool, want: u8) -> bool {
    let mask = acl.perm(Tag::Mask).unwrap_or(7);
    if let Some(perm) = acl.perm(Tag::User(uid)) {
        return perm & mask & want == want;
    }
    let own = acl.perm(Tag::GroupObj).filter(|_| in_group);
    let named = groups.iter().filter_map(|gid| acl.perm(Tag::Group(*gid)));
    let mut member = own.into_iter().chain(named).peekable();
    if member.peek().is_some() {
        return member.any(|perm| perm & mask & want == want);
    }
    acl.perm(Tag::Other).unwrap_or(0) & want == want
}

/// What NFSv4 grants (RFC 8881 §6.2.1): the first word on each bit.
fn nfs4(aces: &[Ace], uid: u32, groups: &[u32], in_group: bool, mask: u32) -> bool {
    let mut left = mask;
    for ace in aces {
        let fits = match ace.who {
            Who::Owner => false,
            Who::Group => in_group,
            Who::Everyone => true,
            Who::User(id) => id == uid,
            Who::GroupId(gid) => groups.contains(&gid),
        };
        if fits && ace.allow {
            left &= !ace.mask;
        } else if fits && ace.mask & left != 0 {
            return false;
        }
    }
    left == 0
}

proptest! {
    #[test]
    fn nfs4_never_shows_less_than_one_bit_grants(
        acl in any_acl(),
        uid in 1_u32..6,
        groups in prop::collection::vec(1_u32..6, 0..3),
        in_group: bool,
    ) {
        // One bit at a time: of several groups POSIX wants one that gives all that is asked.
        let aces = to_aces(&acl, None, false);
        for (bit, mask) in [(4, nfs4::READ_DATA), (2, nfs4::WRITE_DATA), (1, nfs4::EXECUTE)] {
            prop_assert_eq!(
                posix(&acl, uid, &groups, in_group, bit),
                nfs4(&aces, uid, &groups, in_group, mask)
            );
        }
    }

    #[test]
    fn what_is_read_can_be_set_again(acl in any_acl(), default in any_acl(), is_dir: bool) {
        let default = Some(default).filter(|_| is_dir);
        let aces = to_aces(&acl, default.as_ref(), is_dir);
        let (again, inherited) = from_aces(&aces, is_dir).expect("our own");
        // The mask is folded into the entries below it; what they give in effect is the same.
        prop_assert_eq!(to_aces(&again, inherited.as_ref(), is_dir), aces);
        prop_assert_eq!(inherited.is_some(), is_dir);
    }

    #[test]
    fn bytes_and_back(acl in any_acl()) {
        prop_assert_eq!(Acl::from_xattr(&acl.to_xattr()), Ok(acl));
    }

    #[test]
    fn any_bytes_are_a_list_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Acl::from_xattr(&bytes);
    }
}

#[test]
fn modes() {
    let plain = Acl::from_mode(0o754);
    assert_eq!(plain.mode(), 0o754);
    let entries =
        [(Tag::Other, 0), (Tag::User(7), 7), (Tag::Mask, 5), (Tag::UserObj, 6), (Tag::GroupObj, 4)];
    assert_eq!(acl(&entries).mode(), 0o650, "the group's bits are the mask's");
    let bare = [(Tag::UserObj, 7), (Tag::Other, 7)];
    let bare = bare.iter().map(|(tag, perm)| AclEntry { tag: *tag, perm: *perm }).collect();
    assert_eq!(Acl::new(bare), Err(Status::Invalid), "there is no group");
}

#[test]
fn setting() {
    let ace = |allow, who, mask| Ace { allow, flags: 0, mask, who };
    let everything = nfs4::READ_DATA | nfs4::WRITE_DATA | nfs4::APPEND_DATA | nfs4::EXECUTE;
    // chmod as NFSv4: owner rw, group r, others nothing.
    let aces = [
        ace(true, Who::Owner, nfs4::READ_DATA | nfs4::WRITE_DATA | nfs4::APPEND_DATA),
        ace(true, Who::Group, nfs4::READ_DATA),
        ace(false, Who::Everyone, everything),
    ];
    let (own, default) = from_aces(&aces, false).expect("plain");
    assert_eq!((own.mode(), own.entries().len(), default), (0o640, 3, None));
    // Half a right is none: only WRITE_DATA without APPEND_DATA.
    let (own, _) = from_aces(&[ace(true, Who::Owner, nfs4::WRITE_DATA)], false).expect("plain");
    assert_eq!(own.mode(), 0);
    let inherit = Ace { flags: nfs4::FILE_INHERIT, ..ace(true, Who::User(7), everything) };
    assert_eq!(from_aces(&[inherit], false), Err(Status::Invalid));
    let (own, default) = from_aces(&[inherit], true).expect("a directory");
    assert_eq!(own.perm(Tag::User(7)), Some(5), "a directory is written to with DELETE_CHILD too");
    assert!(default.is_some());
    let odd = Ace { flags: 0x10, ..ace(true, Who::Owner, 0) };
    assert_eq!(from_aces(&[odd], false), Err(Status::NotSupported));
}
