//! URLs of units.

use super::*;

const NAME: &str = "iqn.2026-01.io.plimsoll:01ab";

#[test]
fn urls_are_read_and_written() {
    for url in [
        format!("iscsi://127.0.0.1:3260/{NAME}/0"),
        format!("iscsi://plimsoll@host:13260/{NAME}/7?digests=header"),
        format!("iscsi://u@[::1]:1/{NAME}/1?digests=header,data&password-file=/a/b"),
        format!("iscsi://u@h:1/{NAME}/1?password-env=X&target-user=t&target-password-file=/c"),
    ] {
        let at = IscsiAt::parse(url.strip_prefix("iscsi:").unwrap_or_default());
        assert_eq!(at.map(|at| at.url()), Ok(url));
    }
    let at = IscsiAt::parse(&format!("//anna%se%25cret@h/{NAME}/0")).expect("a URL");
    assert_eq!((at.port, &at.secret), (3260, &Secret::Given("se%cret".to_owned())));
    assert_eq!(at.url(), format!("iscsi://anna%se%25cret@h:3260/{NAME}/0"));
    assert_eq!(at.to_string(), format!("iscsi://anna@h:3260/{NAME}/0"));
    for wrong in ["h/t/0", "//h", "//h/t", "//h/t/x", "//:1/t/0", "//h:x/t/0", "//h/t/0?x=1"] {
        assert!(IscsiAt::parse(wrong).is_err(), "{wrong}");
    }
    assert!(IscsiAt::parse("//h/t/0?target-user=t").is_err());
}

#[test]
fn numbers_above_255_have_a_flat_address() {
    for (number, address) in [(0, 0), (255, 0x00ff << 48), (256, 0x4100 << 48)] {
        let at = IscsiAt::parse(&format!("//h/{NAME}/{number}")).expect("a URL");
        assert_eq!(at.address(), Lun(address));
    }
    assert!(IscsiAt::parse(&format!("//h/{NAME}/16384")).is_err());
}
