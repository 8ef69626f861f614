//! Header fields.

use super::*;

#[test]
fn header_fields_are_found_in_any_case_and_bounded() {
    let mut headers = Headers::default();
    assert!(headers.push(b"If-None-Match", b"  \"a\", \"b\" "));
    assert!(headers.push(b"CONNECTION", b"close, TE"));
    assert!(headers.push(b"connection", b"x"));
    assert_eq!(headers.text("if-none-match"), Some("\"a\", \"b\""));
    assert!(headers.has("connection", "te") && headers.has("connection", "X"));
    assert_eq!(headers.members("connection").count(), 3);
    assert_eq!(headers.get("none"), None);
    let fit = (0..2 * HTTP_HEADERS_MAX).filter(|_| headers.push(b"a", b"b")).count();
    assert_eq!(fit, HTTP_HEADERS_MAX - 3);
}
