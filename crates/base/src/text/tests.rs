//! Bytes and what a URL makes of them.

use super::{UNRESERVED, hex, percent};

#[test]
fn every_byte_has_its_two_digits() {
    assert_eq!(hex(&[]), "");
    assert_eq!(hex(&[0, 1, 0x0f, 0xf0, 0xff, 0xa5]), "00010ff0ffa5");
}

#[test]
fn only_what_a_url_may_have_stays() {
    assert_eq!(percent(b"aZ09-._~", UNRESERVED), "aZ09-._~");
    assert_eq!(percent(b"a/b c%\xff", UNRESERVED), "a%2Fb%20c%25%FF");
    assert_eq!(percent(b"/a b", b"/"), "/a%20b");
    assert_eq!(percent("é".as_bytes(), UNRESERVED), "%C3%A9");
}
