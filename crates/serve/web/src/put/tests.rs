//! Parsing of Content-Range.

use super::*;

#[test]
fn a_content_range_is_understood_or_refused() {
    assert_eq!(content_range("bytes 0-99/200"), Some((0, 100, Some(200))));
    assert_eq!(content_range("bytes 5-5/*"), Some((5, 6, None)));
    for text in
        ["bytes */200", "bytes 9-1/20", "bytes 0-200/200", "0-1/2", "bytes 0-/9", "bytes 0-1"]
    {
        assert_eq!(content_range(text), None, "{text}");
    }
}
