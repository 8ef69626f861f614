//! Ids as a round trip, and the display of hostile names.

use super::*;

#[test]
fn an_id_means_its_client_and_nothing_else_does() {
    let key4 = ClientKey { protocol: Protocol::Nfs4, id: 0x3_0000_0001 };
    assert_eq!(id(key4), "nfs4-0000000300000001");
    assert_eq!(key("nfs4-0000000300000001"), Some(key4));
    let nlm = ClientKey { protocol: Protocol::Nlm, id: u64::MAX };
    assert_eq!(key(&id(nlm)), Some(nlm));
    for protocol in Protocol::ALL {
        let one = ClientKey { protocol, id: 7 };
        assert_eq!(key(&id(one)), Some(one), "{protocol:?}");
    }
    for wrong in ["", "nfs4", "nfs4-", "nfs5-1", "nfs4-+1", "nfs4-x", "nfs4-11112222333344445"] {
        assert_eq!(key(wrong), None, "{wrong}");
    }
}

#[test]
fn names_from_peers_are_escaped() {
    assert_eq!(bytes(b"Linux NFSv4.2 anna"), "Linux NFSv4.2 anna");
    assert_eq!(bytes("büro".as_bytes()), "büro");
    assert_eq!(bytes(b"open id:\0\x1b[2J\xff"), "open id:\\x00\\x1b[2J\\xff");
    assert_eq!(bytes("a\u{202e}b\\".as_bytes()), "a\\xe2\\x80\\xaeb\\\\");
    let long = bytes(&[b'x'; 2000]);
    assert!(long.chars().count() == SHOWN_NAME_MAX + 1 && long.ends_with('…'));
    assert!(bytes(&[0; 2000]).chars().count() <= SHOWN_NAME_MAX + 1);
}

#[test]
fn rows_in_words() {
    let share = vfs::locks::Share { access: 3, deny: 2 };
    assert_eq!(open(&What::Open(share)), ("open", "both", "write"));
    assert_eq!(open(&What::Lease(Caching::READ, true)), ("recall", "read", "none"));
    let to_end = What::Lock(Range::to_end(7), Kind::Write);
    assert_eq!(lock(&to_end), ("write", 7, None));
    let some = What::Wait(Range::new(5, 10).expect("a range"), Kind::Read);
    assert_eq!(lock(&some), ("read", 5, Some(10)));
}
