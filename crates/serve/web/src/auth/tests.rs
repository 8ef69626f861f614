//! Parsing of credentials, and the page after sign-in.

use super::*;

#[test]
fn credentials_are_read_as_the_rfc_has_them() {
    let read = |field| basic(field);
    let aladdin = Some(("Aladdin".to_owned(), "open sesame".to_owned()));
    assert_eq!(read("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), aladdin);
    assert_eq!(read("bAsIc QWxhZGRpbjpvcGVuIHNlc2FtZQ"), aladdin);
    // RFC 7617 §2.1: the pound sign in UTF-8, and a colon in the password.
    assert_eq!(read("Basic dGVzdDoxMjPCow=="), Some(("test".to_owned(), "123£".to_owned())));
    assert_eq!(read("Basic YTpiOmM="), Some(("a".to_owned(), "b:c".to_owned())));
    for field in
        ["Basic", "Basic !", "Basic YWJj", "Basic A", "Bearer YTpi", "Basic YTpi====", "Basic /w=="]
    {
        assert_eq!(read(field), None, "{field}");
    }
}

#[test]
fn no_client_is_sent_to_another_site() {
    for (to, home_is) in [
        ("/a b/", "/a b/"),
        ("", "/"),
        ("//evil", "/"),
        ("https://evil", "/"),
        ("/\\evil", "/"),
        ("/a\r\nSet-Cookie: x", "/"),
    ] {
        assert_eq!(home(to), home_is, "{to:?}");
    }
}
