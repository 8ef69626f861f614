//! What is a head, what is not, and what could be two.

use super::*;

fn parse(text: &str) -> Result<Head, HeadError> {
    let length = whole(text.as_bytes(), 0)?.expect("a whole head");
    assert_eq!(length, text.len());
    Head::parse(text.as_bytes())
}

fn with(fields: &str) -> Result<Head, HeadError> {
    parse(&format!("PUT /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n"))
}

#[test]
fn a_request_is_taken_apart() {
    let head = parse("GET /a%20b?x HTTP/1.1\r\nHost: h:80\r\nAccept:  */* \r\n\r\n").unwrap();
    assert_eq!(head.method, Method::Get);
    assert_eq!((head.target.path.as_slice(), head.target.query.as_str()), (&b"/a b"[..], "x"));
    assert_eq!((head.host.as_str(), head.headers.text("accept")), ("h:80", Some("*/*")));
    assert!(head.keep_alive && head.modern && head.framing == Framing::Length(0));
    assert_eq!(parse("\r\nBREW / HTTP/1.0\r\n\r\n").unwrap().method, Method::Other);
    assert!(!parse("GET / HTTP/1.0\r\n\r\n").unwrap().keep_alive);
    assert_eq!(parse("GET http://other/x HTTP/1.1\r\nHost: h\r\n\r\n").unwrap().host, "other");
}

#[test]
fn the_end_of_a_body_is_never_in_doubt() {
    assert_eq!(with("Content-Length: 7\r\n").unwrap().framing, Framing::Length(7));
    assert_eq!(with("Transfer-Encoding: Chunked\r\n").unwrap().framing, Framing::Chunked);
    for (fields, error) in [
        ("Content-Length: 7\r\nTransfer-Encoding: chunked\r\n", HeadError::Framing),
        ("Content-Length: 7\r\nContent-Length: 7\r\n", HeadError::Framing),
        ("Content-Length: 7, 7\r\n", HeadError::Framing),
        ("Content-Length: +7\r\n", HeadError::Framing),
        ("Content-Length: -1\r\n", HeadError::Framing),
        ("Content-Length: 0x7\r\n", HeadError::Framing),
        ("Content-Length:\r\n", HeadError::Framing),
        ("Content-Length: 99999999999999999999\r\n", HeadError::Framing),
        ("Transfer-Encoding: gzip, chunked\r\n", HeadError::Coding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", HeadError::Coding),
        ("Transfer-Encoding: xchunked\r\n", HeadError::Coding),
        ("Transfer-Encoding : chunked\r\n", HeadError::Malformed),
        ("Content-Length\t: 7\r\n", HeadError::Malformed),
        ("X: a\r\n Content-Length: 7\r\n", HeadError::Malformed),
        ("X: a\rY: b\r\n", HeadError::Malformed),
        ("X: a\0b\r\n", HeadError::Malformed),
        ("X: a\nContent-Length: 7\r\n", HeadError::Malformed),
        ("Expect: tea\r\n", HeadError::Expectation),
        ("Host: other\r\n", HeadError::Host),
    ] {
        assert_eq!(with(fields).map(|head| head.framing), Err(error), "{fields:?}");
    }
    let old = "PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(parse(old), Err(HeadError::Framing));
    assert_eq!(parse("GET / HTTP/1.1\r\n\r\n"), Err(HeadError::Host));
    assert_eq!(parse("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), Err(HeadError::Host));
    assert_eq!(parse("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), Err(HeadError::Version));
}

#[test]
fn a_head_is_found_whatever_the_pieces_and_bounded() {
    let text = b"GET / HTTP/1.1\r\nHost: h\r\n\r\nmore";
    let end = text.len() - 4;
    for len in 0..=text.len() {
        for seen in 0..=len {
            let found = whole(&text[..len], seen).unwrap();
            // What was looked at before is not looked at again.
            if seen < end {
                assert_eq!(found, (len >= end).then_some(end), "{len} {seen}");
            }
        }
    }
    assert_eq!(whole(b"GET / HTTP/1.1\n\n", 0), Err(HeadError::Malformed));
    assert_eq!(whole(&[b'a'; HTTP_HEAD_MAX], 0), Err(HeadError::TooLarge));
}
