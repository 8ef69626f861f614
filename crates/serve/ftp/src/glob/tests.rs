//! Patterns of names.

use base::random::{Random, SeededRandom};

use super::Glob;

fn fits(pattern: &str, name: &str) -> bool {
    Glob::new(pattern.as_bytes()).fits(name.as_bytes())
}

#[test]
fn patterns() {
    for (pattern, name, expected) in [
        ("*", "a", true),
        ("*", "", true),
        ("*", ".a", false),
        (".*", ".a", true),
        ("*.txt", "a.txt", true),
        ("*.txt", "a.txt.gz", false),
        ("a*b*c", "aXbYbZc", true),
        ("a*b*c", "aXc", false),
        ("a**c", "ac", true),
        ("?", "", false),
        ("??", "ab", true),
        ("", "", true),
        ("a", "ab", false),
        ("ab", "a", false),
    ] {
        assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
    }
    let worst = "*a".repeat(100);
    assert!(!fits(&worst, &"b".repeat(255)), "and soon");
}

#[test]
fn the_longest_names_and_patterns() {
    let name = "a".repeat(255);
    assert!(fits(&name, &name) && fits(&"?".repeat(255), &name));
    assert!(fits(&format!("{name}*"), &name) && fits(&format!("*{name}"), &name));
    assert!(!fits(&format!("{name}?"), &name), "no name is so long");
    assert!(!fits(&"?".repeat(256), &name) && !fits(&"?".repeat(4096), &name));
    for count in [63, 64, 65, 127, 128, 129, 191, 192, 193, 254] {
        assert!(fits(&"?".repeat(count), &name[..count]) && !fits(&"?".repeat(count), &name));
        assert!(fits(&format!("{}*", "a".repeat(count)), &name));
        assert!(!fits(&format!("*{}b", "a".repeat(count)), &name));
    }
}

/// What the pattern means, by trying.
fn means(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|at| means(rest, &name[at..])),
        Some((letter, rest)) => name.split_first().is_some_and(|(first, others)| {
            (*letter == b'?' || letter == first) && means(rest, others)
        }),
    }
}

#[test]
fn it_is_as_trying_everything() {
    let mut random = SeededRandom::new(5);
    let mut text = |letters: &[u8]| -> Vec<u8> {
        let length = random.below(9);
        (0..length).map(|_| letters[random.below(letters.len() as u64) as usize]).collect()
    };
    for _ in 0..20_000 {
        let (pattern, name) = (text(b"ab*?*"), text(b"ab"));
        let found = Glob::new(&pattern).fits(&name);
        let (shown, of) = (String::from_utf8_lossy(&pattern), String::from_utf8_lossy(&name));
        assert_eq!(found, means(&pattern, &name), "{shown} {of}");
    }
}
