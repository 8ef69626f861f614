//! What of a lock is shown.

use super::*;

#[test]
fn a_token_is_shortened_so_that_it_distinguishes_locks_and_opens_none() {
    let token = "opaquelocktoken:0f3c2a11-7be4-4d1c-9a55-2f60b1c4d8e7";
    assert_eq!(short(token), "0f3c2a11-7be4");
    assert_eq!(short("short"), "short");
}

#[test]
fn the_owner_is_text_whatever_the_client_sends() {
    assert_eq!(
        text("<owner xmlns=\"DAV:\"><href>mailto:anna</href>\n at home</owner>"),
        "mailto:anna at home"
    );
    assert_eq!(text("plain"), "plain");
    assert_eq!(text(""), "");
}
