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
