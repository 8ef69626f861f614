//! Quoting and dates.

use super::{shell_quote, url_encode};

#[test]
fn words_survive_a_shell() {
    assert_eq!(shell_quote("127.0.0.1:/export/data"), "127.0.0.1:/export/data");
    assert_eq!(shell_quote("my data"), "'my data'");
    assert_eq!(shell_quote("it's"), r"'it'\''s'");
    assert_eq!(shell_quote(""), "''");
}

#[test]
fn names_survive_a_url() {
    assert_eq!(url_encode(b"data-1.x_~"), "data-1.x_~");
    assert_eq!(url_encode(b"a b/\xff?"), "a%20b%2F%FF%3F");
}
