//! The examples of the RFC, the way back, and what is no base 64.

use super::*;
use crate::random::{Random, SeededRandom};

#[test]
fn as_in_the_rfc() {
    for (plain, text) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ] {
        assert_eq!(encode(plain.as_bytes()), text);
        let letters = text.trim_end_matches('=').as_bytes();
        assert_eq!(decode(letters), Some(plain.as_bytes().to_vec()), "{text}");
    }
}

#[test]
fn all_bytes_come_back() {
    let mut random = SeededRandom::new(1);
    for size in 0..100 {
        let mut bytes = vec![0; size];
        random.fill(&mut bytes);
        let text = encode(&bytes);
        assert_eq!(decode(text.trim_end_matches('=').as_bytes()), Some(bytes));
    }
}

#[test]
fn what_is_no_letter_is_refused() {
    for wrong in ["Zm9*", "Zm9v Zm9v", "Zg==", "Zm9-", "Zm9_", "Zm9vY"] {
        assert_eq!(decode(wrong.as_bytes()), None, "{wrong}");
    }
}

#[test]
fn bits_after_the_last_byte_are_ignored() {
    assert_eq!(decode(b"Zh"), Some(b"f".to_vec()));
}
