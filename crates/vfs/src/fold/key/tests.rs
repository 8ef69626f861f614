//! One key for case and for canonical equivalence.

use super::*;

/// Characters that are one letter, composed and decomposed, in both cases.
const ALIKE: [[&str; 4]; 5] = [
    ["\u{e9}", "e\u{301}", "\u{c9}", "E\u{301}"],
    ["\u{1ead}", "a\u{323}\u{302}", "\u{1eac}", "A\u{302}\u{323}"],
    ["\u{e5}", "a\u{30a}", "\u{212b}", "A\u{30a}"],
    ["\u{3c9}", "\u{3c9}", "\u{2126}", "\u{3a9}"],
    ["\u{ac01}", "\u{1100}\u{1161}\u{11a8}", "\u{ac00}\u{11a8}", "\u{ac01}"],
];

#[test]
fn composed_and_decomposed_names_have_one_key() {
    for group in ALIKE {
        for name in group {
            assert_eq!(fold(name.as_bytes()), fold(group[0].as_bytes()), "{name}");
        }
    }
    // Compatibility is not equivalence, and what is no UTF-8 stays as it is.
    assert_ne!(fold("\u{fb01}".as_bytes()), fold(b"fi"));
    assert_ne!(fold(b"e\xcc"), fold(b"E\xcc"));
}

#[test]
fn a_name_in_another_case_is_nearer_than_one_composed_otherwise() {
    let wanted = NameQuery::new("caf\u{e9}".as_bytes());
    assert_eq!(wanted.rank("caf\u{e9}".as_bytes()), None);
    assert_eq!(wanted.rank("CAF\u{c9}".as_bytes()), Some(0));
    assert_eq!(wanted.rank("cafe\u{301}".as_bytes()), Some(1));
    assert_eq!(wanted.rank("CAFE\u{301}".as_bytes()), Some(1));
    assert_eq!(wanted.rank(b"cafe"), None);
}
