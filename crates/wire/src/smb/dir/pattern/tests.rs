//! Patterns against a reference that tries every way, and what the worst of them costs.

use base::random::{Random, SeededRandom};

use super::*;

fn encoded(text: &str) -> Vec<u8> {
    utf16::encode(text)
}

fn matches(pattern: &str, name: &str) -> bool {
    Pattern::decode(&encoded(pattern)).unwrap().matches(&encoded(name))
}

/// The rules of MS-FSA §2.1.4.4, one after the other, with all ways tried.
fn reference(pattern: &[u8], name: &[u8], at: usize) -> bool {
    let Some((first, rest)) = pattern.split_first() else { return at == name.len() };
    let here = name.get(at).copied();
    let last_dot = name.iter().rposition(|byte| *byte == b'.');
    match first {
        b'*' => (at..=name.len()).any(|to| reference(rest, name, to)),
        // Up to and with the last dot, or to the end behind it or without one.
        b'<' => {
            let most = last_dot.filter(|dot| at <= *dot).map_or(name.len(), |dot| dot + 1);
            (at..=most).any(|to| reference(rest, name, to))
        }
        b'?' => here.is_some() && reference(rest, name, at + 1),
        b'>' => match here {
            Some(b'.') | None => reference(rest, name, at),
            Some(_) => reference(rest, name, at + 1),
        },
        b'"' => match here {
            Some(b'.') => reference(rest, name, at + 1),
            None => reference(rest, name, at),
            Some(_) => false,
        },
        unit => {
            here.is_some_and(|here| here.eq_ignore_ascii_case(unit))
                && reference(rest, name, at + 1)
        }
    }
}

#[test]
fn patterns_of_windows_match_as_there() {
    for (pattern, name, expected) in [
        ("*", "", true),
        ("*.txt", "a.TXT", true),
        ("a?c", "abc", true),
        ("a?", "a", false),
        ("<.txt", "a.b.txt", true),
        ("<", "a.b", false),
        ("<<", "a.b", true),
        ("a>>>", "a", true),
        ("a\"", "a", true),
        ("a\"b", "a.b", true),
        ("größe*", "GRÖßE.doc", true),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
}

#[test]
fn random_patterns_match_as_in_the_reference() {
    let mut random = SeededRandom::new(0x5eed_0d07);
    let mut pick = |from: &[u8], most: u64| -> Vec<u8> {
        let length = random.next_u64() % (most + 1);
        (0..length).map(|_| from[(random.next_u64() % from.len() as u64) as usize]).collect()
    };
    let mut matched = 0;
    for _ in 0..60_000 {
        let (pattern, name) = (pick(b"*?<>\".aAb", 8), pick(b"aAb..", 9));
        let expected = reference(&pattern, &name, 0);
        matched += usize::from(expected);
        let [pattern, name] = [pattern, name].map(|text| String::from_utf8(text).unwrap());
        assert_eq!(matches(&pattern, &name), expected, "{pattern:?} {name:?}");
    }
    assert!(matched > 2_000, "{matched}");
}

#[test]
fn positions_cross_words() {
    for length in [0, 1, 62, 63, 64, 65, 127, 128, 129, 191, 192, 253, 254, NAME_MAX] {
        let name = "x".repeat(length);
        assert!(matches(&name, &name) || length == 0, "{length}");
        assert!(matches(&"?".repeat(length), &name), "{length}");
        assert!(!matches(&"?".repeat(length + 1), &name), "{length}");
        assert!(matches(&format!("*{}*", "?".repeat(length)), &name), "{length}");
        assert!(!matches(&format!("*{name}y"), &name), "{length}");
        assert!(matches(&">".repeat(NAME_MAX), &name), "{length}");
    }
    assert!(!matches("*x", &"x".repeat(NAME_MAX + 1)), "no name is so long");
}
