//! Answers of the API as they come, and where one is asked.

use super::*;

#[test]
fn plain_and_chunked_answers() {
    let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"pid\":7}";
    assert_eq!(body(plain).unwrap()["pid"], 7);
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        4\r\n{\"pi\r\n5;x=y\r\nd\":7}\r\n0\r\n\r\n";
    assert_eq!(body(chunked).unwrap()["pid"], 7);
    assert_eq!(body(b"HTTP/1.1 401 No\r\n\r\n{}"), None);
    assert_eq!(
        body(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"),
        None
    );
    assert_eq!(body(b"nonsense"), None);
}

#[test]
fn addresses_of_an_api() {
    let at = |url: &str| host_and_port(url);
    assert_eq!(at("https://nas"), Some(("nas".into(), 215)));
    assert_eq!(at("https://nas:10215/"), Some(("nas".into(), 10_215)));
    assert_eq!(at("https://[::1]:10215"), Some(("::1".into(), 10_215)));
    assert_eq!(at("https://[::1]"), Some(("::1".into(), 215)));
    for wrong in ["http://nas", "nas", "https://", "https://nas/x", "https://a:b@nas"] {
        assert_eq!(at(wrong), None, "{wrong}");
    }
}
