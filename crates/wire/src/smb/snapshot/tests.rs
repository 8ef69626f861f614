//! Tokens of times and their list.

use super::*;

#[test]
fn tokens_are_times_and_times_are_tokens() {
    for (seconds, text) in [
        (0, "@GMT-1970.01.01-00.00.00"),
        (951_782_399, "@GMT-2000.02.28-23.59.59"),
        (951_782_400, "@GMT-2000.02.29-00.00.00"),
        (1_709_251_199, "@GMT-2024.02.29-23.59.59"),
        (1_764_419_696, "@GMT-2025.11.29-12.34.56"),
        (-11_644_473_600, "@GMT-1601.01.01-00.00.00"),
        (253_402_300_799, "@GMT-9999.12.31-23.59.59"),
    ] {
        assert_eq!(token(seconds).as_deref(), Some(text));
        assert_eq!(time(text.as_bytes()), Some(seconds));
    }
    // A day and a prime number of seconds over and over.
    for step in 0..4_000 {
        let seconds = -11_644_473_600 + step * 65_851_301;
        assert_eq!(token(seconds).and_then(|text| time(text.as_bytes())), Some(seconds));
    }
    assert!(token(i64::MIN).is_none() && token(i64::MAX).is_none());
    assert!(token(253_402_300_800).is_none());
}

#[test]
fn what_is_no_token_is_no_time() {
    for text in [
        "@GMT-2023.02.29-00.00.00",
        "@GMT-2024.13.01-00.00.00",
        "@GMT-2024.00.01-00.00.00",
        "@GMT-2024.01.01-24.00.00",
        "@GMT-2024.01.01-00.60.00",
        "@GMT-2024.01.01-00.00.60",
        "@GMT-2024.01.01-00.00.0",
        "@GMT-2024.01.01-00.00.000",
        "@GMT-+024.01.01-00.00.00",
        "@GMT-2024.1.011-00.00.00",
        "@GMT_2024.01.01-00.00.00",
        "@GMT-0000.01.01-00.00.00",
        "",
        "@GMT-",
        "@GMT-2024.01.01-00.00.0\u{e9}",
    ] {
        assert_eq!(time(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn the_list_is_complete_or_reports_its_size() {
    assert_eq!(list(&[], 16), [&[0; 8][..], &[2, 0, 0, 0], &[0; 4]].concat());
    let tokens = [0, 1].map(|seconds| token(seconds).expect("a token"));
    let size = 2 * 50 + 2;
    let short = list(&tokens, 16);
    assert_eq!(short, [&[2, 0, 0, 0][..], &[0; 4], &[size, 0, 0, 0], &[0; 4]].concat());
    assert_eq!(list(&tokens, 12 + usize::from(size) - 1).len(), 16);
    let full = list(&tokens, 12 + usize::from(size));
    assert_eq!(full[..12], [2, 0, 0, 0, 2, 0, 0, 0, size, 0, 0, 0]);
    assert_eq!(full.len(), 12 + usize::from(size));
    let text: String = full[12..].chunks(2).map(|unit| char::from(unit[0])).collect::<String>();
    assert_eq!(text, "@GMT-1970.01.01-00.00.00\0@GMT-1970.01.01-00.00.01\0\0");
    assert_eq!((room(0), room(12 + 2 + 49), room(12 + 2 + 50)), (0, 0, 1));
}
