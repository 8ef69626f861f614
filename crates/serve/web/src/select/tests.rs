//! Conditions in the order of the RFC, and ranges.

use super::*;

const THEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";

fn now() -> Validators {
    Validators { etag: "\"a,b\"".to_owned(), modified: date::parse(THEN).unwrap() }
}

fn fields(list: &[(&str, &str)]) -> Headers {
    let mut headers = Headers::default();
    for (name, value) in list {
        assert!(headers.push(name.as_bytes(), value.as_bytes()));
    }
    headers
}

#[test]
fn conditions_are_judged_in_order() {
    use Verdict::{Failed, Go, NotModified};
    for (list, get, put) in [
        (&[][..], Go, Go),
        (&[("if-match", "\"x\", \"a,b\"")], Go, Go),
        (&[("if-match", "\"x\""), ("if-match", "\"a,b\"")], Go, Go),
        (&[("if-match", "W/\"a,b\"")], Failed, Failed),
        (&[("if-match", "\"x\"")], Failed, Failed),
        (&[("if-match", "junk")], Failed, Failed),
        (&[("if-match", "*")], Go, Go),
        (&[("if-match", "*"), ("if-unmodified-since", BEFORE)], Go, Go),
        (&[("if-unmodified-since", BEFORE)], Failed, Failed),
        (&[("if-unmodified-since", THEN)], Go, Go),
        (&[("if-unmodified-since", "junk")], Go, Go),
        (&[("if-none-match", "W/\"a,b\"")], NotModified, Failed),
        (&[("if-none-match", "*")], NotModified, Failed),
        (&[("if-none-match", "\"x\""), ("if-modified-since", LATER)], Go, Go),
        (&[("if-modified-since", THEN)], NotModified, Go),
        (&[("if-modified-since", BEFORE)], Go, Go),
        (&[("if-match", "\"x\""), ("if-none-match", "*")], Failed, Failed),
    ] {
        assert_eq!(judge(&fields(list), Method::Get, Some(&now())), get, "GET {list:?}");
        assert_eq!(judge(&fields(list), Method::Put, Some(&now())), put, "PUT {list:?}");
    }
    let absent = |name, value| judge(&fields(&[(name, value)]), Method::Put, None);
    assert_eq!(absent("if-match", "*"), Failed);
    assert_eq!(absent("if-none-match", "*"), Go);
}

fn range(range: &str) -> Selection {
    wanted(&fields(&[("range", range)]), 100, &now())
}

#[test]
fn ranges_are_found_merged_and_bounded() {
    let parts = |list: &[(u64, u64)]| Selection::Ranges(list.to_vec());
    for (text, expected) in [
        ("bytes=0-0", parts(&[(0, 1)])),
        ("Bytes=10-", parts(&[(10, 100)])),
        ("bytes=-10", parts(&[(90, 100)])),
        ("bytes=-1000", parts(&[(0, 100)])),
        ("bytes=90-1000", parts(&[(90, 100)])),
        ("bytes=50-59, 0-9", parts(&[(50, 60), (0, 10)])),
        ("bytes=50-59,0-9,55-70", parts(&[(0, 10), (50, 71)])),
        ("bytes=0-49,50-99", parts(&[(0, 100)])),
        ("bytes=200-,0-0", parts(&[(0, 1)])),
        ("bytes=100-", Selection::Nothing),
        ("bytes=-0", Selection::Nothing),
        ("bytes=9-1", Selection::All),
        ("bytes=a-b", Selection::All),
        ("bytes", Selection::All),
        ("items=0-1", Selection::All),
        ("bytes=0-99999999999999999999", parts(&[(0, 100)])),
        ("bytes=-99999999999999999999", parts(&[(0, 100)])),
        ("bytes=00000000000000000000010-000000000000000000019", parts(&[(10, 20)])),
        ("bytes=9223372036854775808-", Selection::Nothing),
        ("bytes=18446744073709551615-", Selection::Nothing),
        ("bytes=18446744073709551616-", Selection::Nothing),
        ("bytes=99999999999999999999-99999999999999999999", Selection::Nothing),
        ("bytes=99999999999999999999-", Selection::Nothing),
        ("bytes=99999999999999999999-,5-5", parts(&[(5, 6)])),
        ("bytes=99999999999999999999-99999999999999999998", Selection::All),
        ("bytes=99999999999999999999-1", Selection::All),
        ("bytes=+1-2", Selection::All),
        ("bytes=1 -2", Selection::All),
    ] {
        assert_eq!(range(text), expected, "{text}");
    }
    let many: Vec<String> = (0..40).map(|n| format!("{}-{}", 2 * n, 2 * n)).collect();
    assert_eq!(range(&format!("bytes={}", many.join(","))), Selection::All);
    let twice = fields(&[("range", "bytes=0-0"), ("range", "bytes=1-1")]);
    assert_eq!(wanted(&twice, 100, &now()), Selection::All);
}

#[test]
fn a_part_is_of_what_the_client_has_or_the_whole_comes() {
    for (validator, holds) in [
        ("\"a,b\"", true),
        ("W/\"a,b\"", false),
        ("\"x\"", false),
        (THEN, true),
        (LATER, false),
        ("junk", false),
    ] {
        let headers = fields(&[("range", "bytes=0-0"), ("if-range", validator)]);
        let part = wanted(&headers, 100, &now()) != Selection::All;
        assert_eq!(part, holds, "{validator}");
    }
}

#[test]
fn the_end_of_an_empty_file_is_all_of_it() {
    for (range, expected) in [
        ("bytes=-5", Selection::All),
        ("bytes=0-0,-5", Selection::All),
        ("bytes=-0", Selection::Nothing),
        ("bytes=0-", Selection::Nothing),
        ("bytes=0-4", Selection::Nothing),
    ] {
        assert_eq!(wire::http::select::ranges(range.as_bytes(), 0), expected, "{range}");
    }
}
