//! The three forms.

use super::*;

#[test]
fn dates_are_written_in_one_form_and_read_in_three() {
    let then = 784_111_777;
    assert_eq!(write(then), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(write_iso(then), "1994-11-06T08:49:37Z");
    for text in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ] {
        assert_eq!(parse(text), Some(then), "{text}");
    }
    for text in [
        "",
        "now",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Foo 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 25:00:00 GMT",
    ] {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn the_epoch_and_a_leap_day() {
    assert_eq!(write(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(write(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
}

#[test]
fn dates_at_the_borders() {
    for (sec, text) in [
        (i64::MIN, "Sat, 01 Jan 0000 00:00:00 GMT"),
        (-62_167_219_200, "Sat, 01 Jan 0000 00:00:00 GMT"),
        (-11_644_473_600, "Mon, 01 Jan 1601 00:00:00 GMT"),
        (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
        (1 << 31, "Tue, 19 Jan 2038 03:14:08 GMT"),
        (1 << 32, "Sun, 07 Feb 2106 06:28:16 GMT"),
        (9_223_372_037, "Fri, 11 Apr 2262 23:47:17 GMT"),
        (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
        (253_402_300_800, "Fri, 31 Dec 9999 23:59:59 GMT"),
        (i64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
    ] {
        assert_eq!(write(sec), text);
        assert_eq!(parse(text), Some(sec.clamp(-62_167_219_200, 253_402_300_799)), "{text}");
    }
    for text in [
        "Thu, 31 Feb 2026 00:00:00 GMT",
        "Sun, 29 Feb 2026 00:00:00 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 19940 08:49:37 GMT",
        "Sun, 06 Nov -994 08:49:37 GMT",
    ] {
        assert_eq!(parse(text), None, "{text}");
    }
    // A leap second is one.
    assert_eq!(parse("Sat, 31 Dec 2016 23:59:60 GMT"), Some(1_483_228_800));
}
