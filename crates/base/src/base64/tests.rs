//! The examples of the RFC, the way back, and what is no base 64.

use super::*;
use crate::random::{Random, SeededRandom};

#[test]
fn as_in_the_rfc() {
    for (plain, text, left) in [
        ("", "", 0),
        ("f", "Zg==", 4),
        ("fo", "Zm8=", 2),
        ("foo", "Zm9v", 0),
        ("foob", "Zm9vYg==", 4),
        ("fooba", "Zm9vYmE=", 2),
        ("foobar", "Zm9vYmFy", 0),
    ] {
        assert_eq!(encode(plain.as_bytes()), text);
        let bytes = plain.as_bytes().to_vec();
        let letters = text.trim_end_matches('=').bytes();
        assert_eq!(decode(letters), Some(Decoded { bytes, left }), "{text}");
    }
}

#[test]
fn all_bytes_come_back() {
    let mut random = SeededRandom::new(1);
    for size in 0..100 {
        let mut bytes = vec![0; size];
        random.fill(&mut bytes);
        let text = encode(&bytes);
        assert_eq!(decode(text.trim_end_matches('=').bytes()).map(|d| d.bytes), Some(bytes));
    }
}

#[test]
fn what_is_no_letter_is_refused() {
    for wrong in ["Zm9*", "Zm9v Zm9v", "Zg==", "Zm9-", "Zm9_"] {
        assert_eq!(decode(wrong.bytes()), None, "{wrong}");
    }
    assert_eq!(decode("Zm9vY".bytes()).map(|d| d.left), Some(6));
}
