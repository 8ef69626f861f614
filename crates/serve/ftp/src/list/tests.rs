//! Patterns of names.

use super::{glob, is_pattern};

#[test]
fn patterns() {
    for (pattern, name, fits) in [
        ("*", "a", true),
        ("*", ".a", false),
        (".*", ".a", true),
        ("*.txt", "a.txt", true),
        ("*.txt", "a.txt.gz", false),
        ("a*b*c", "aXbYbZc", true),
        ("a*b*c", "aXc", false),
        ("?", "", false),
        ("??", "ab", true),
        ("", "", true),
        ("a", "ab", false),
    ] {
        assert_eq!(glob(pattern.as_bytes(), name.as_bytes()), fits, "{pattern} {name}");
    }
    let worst = "*a".repeat(100);
    assert!(!glob(worst.as_bytes(), "b".repeat(255).as_bytes()), "and soon");
    assert!(is_pattern(b"a/b*") && !is_pattern(b"a*/b"));
}
