//! Bytes and what a URL makes of them.

use super::*;

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

#[test]
fn a_terminal_gets_no_sequences_of_others() {
    let cases = [
        ("plain", "plain"),
        ("Umlaut ä, עברית, 日本", "Umlaut ä, עברית, 日本"),
        ("\u{1b}[31mred\u{1b}[0m", "\\u001b[31mred\\u001b[0m"),
        ("bell\u{7}", "bell\\u0007"),
        ("two\nlines\tand\r", "two\\nlines\\u0009and\\u000d"),
        ("del\u{7f} csi\u{9b}31m", "del\\u007f csi\\u009b31m"),
        ("gpj\u{202e}.exe", "gpj\\u202e.exe"),
        ("\u{2066}a\u{2069}\u{2028}", "\\u2066a\\u2069\\u2028"),
    ];
    for (text, shown) in cases {
        assert_eq!(visible(text), shown);
    }
    assert!(matches!(visible("plain"), Cow::Borrowed(_)));
    assert_eq!(visible_lines("a\tb\nc\u{1b}d\n"), "a\tb\nc\\u001bd\n");
    assert_eq!(visible_lines("a,\u{1b}\r\nb\rc\r\n"), "a,\\u001b\r\nb\\u000dc\r\n");
}

#[test]
fn a_number_has_digits_and_nothing_else() {
    assert_eq!(decimal::<u64>("18446744073709551615"), Some(u64::MAX));
    assert_eq!((decimal::<u8>("007"), decimal::<u16>("0")), (Some(7), Some(0)));
    for wrong in ["", "+5", "-5", " 5", "5 ", "5_0", "0x5", "5.0", "1e3", "\u{0665}", "++5", "+"] {
        assert_eq!(decimal::<u64>(wrong), None, "{wrong:?}");
    }
    assert_eq!((decimal::<u8>("256"), decimal::<u64>("18446744073709551616")), (None, None));
    assert_eq!((signed("-5"), signed("5"), signed("-0")), (Some(-5), Some(5), Some(0)));
    assert_eq!(signed("-9223372036854775808"), Some(i64::MIN));
    for wrong in ["", "-", "+5", "--5", "- 5", "-+5", "9223372036854775808"] {
        assert_eq!(signed(wrong), None, "{wrong:?}");
    }
}
