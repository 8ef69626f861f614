//! Quoting and dates.

use super::{shell_quote, url_encode, utc};

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

#[test]
fn dates() {
    assert_eq!(utc(0), "1970-01-01 00:00:00");
    assert_eq!(utc(951_782_400), "2000-02-29 00:00:00");
    assert_eq!(utc(1_795_219_199), "2026-11-20 23:59:59");
    assert_eq!(utc(-1), "1969-12-31 23:59:59");
}
