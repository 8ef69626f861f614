//! What is taken for a pattern.

use super::is_pattern;

#[test]
fn patterns() {
    assert!(is_pattern(b"a/b*") && is_pattern(b"?") && !is_pattern(b"a*/b"));
}
