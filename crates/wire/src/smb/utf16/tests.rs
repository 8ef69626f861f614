//! Names of a file system converted and back: all of them, and no two alike.

use std::collections::HashMap;

use base::random::{Random, SeededRandom};

use super::*;

/// Characters that MS-FSCC §2.1.5.2 permits in no name.
const FORBIDDEN: &[u8] = b"\"*/:<>?\\|";
/// Names of random bytes, and of random units.
const NAMES: usize = 20_000;

/// What names are made of: reserved characters, blanks and dots, control characters, private
/// characters and surrogates as bytes of a file system, letters composed and not, and bytes that
/// are no UTF-8.
const PIECES: [&[u8]; 32] = [
    b"a",
    b"Z",
    b" ",
    b".",
    b"\\",
    b":",
    b"*",
    b"?",
    b"\"",
    b"<",
    b">",
    b"|",
    b"\x01",
    b"\x1f",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xc3",
    b"\xa9",
    b"\xc3\xa9",
    b"e\xcc\x81",
    b"\xe2\x82",
    b"\xf0\x9f\x98\x80",
    b"\xed\xa0\xbd",
    b"\xed\xb8\x80",
    b"\xef\x80\x81",
    b"\xef\x80\xa6",
    b"\xef\x80\xa8",
    b"\xef\x80\xa9",
    b"\xef\x80\xaa",
    b"\xef\x82\x80",
    b"\xef\x83\xbf",
];

fn sent(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_name(name, &mut out);
    out
}

/// A name comes back as it was, and is sent as one that clients accept.
fn check(name: &[u8]) -> Vec<u8> {
    let out = sent(name);
    assert_eq!(decode_name(&out).as_deref(), Ok(name), "{name:x?}: {out:x?}");
    assert!(out.len() <= 2 * name.len(), "{name:x?}");
    let is_bad = |unit: u16| unit < 0x20 || FORBIDDEN.iter().any(|byte| u16::from(*byte) == unit);
    assert!(!units(&out).expect("whole units").any(is_bad), "{name:x?}: {out:x?}");
    assert!(!out.ends_with(&[b' ', 0]) && !out.ends_with(&[b'.', 0]), "{name:x?}: {out:x?}");
    out
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
        && !matches!(name, b"." | b"..")
}

#[test]
fn all_short_names() {
    let mut all: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let bytes = (1..=255).filter(|byte| *byte != b'/');
    let two = bytes.clone().flat_map(|one| bytes.clone().map(move |two| vec![one, two]));
    for name in bytes.clone().map(|byte| vec![byte]).chain(two).filter(|name| is_name(name)) {
        let other = all.insert(check(&name), name.clone());
        assert_eq!(other, None, "sent as {name:x?}");
    }
}

#[test]
fn names_of_any_bytes_up_to_the_longest() {
    let mut random = SeededRandom::new(16);
    let mut all: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    for number in 0..NAMES {
        let (length, mut name) = (1 + random.below(255) as usize, Vec::new());
        let length = if number % 2 == 0 { length } else { 1 + length % 5 };
        while name.len() < length {
            match random.below(4) {
                0 => name.push(random.next_u64() as u8),
                _ => name.extend_from_slice(PIECES[random.below(PIECES.len() as u64) as usize]),
            }
        }
        name.truncate(length);
        if is_name(&name) {
            let other = all.insert(check(&name), name.clone());
            assert!(other.is_none_or(|other| other == name), "sent as {name:x?}");
        }
    }
    for byte in [0xff, b'\\', b'.'] {
        check(&[byte; 255]);
    }
}

#[test]
fn a_name_that_is_taken_is_listed_as_it_was_made() {
    let mut random = SeededRandom::new(17);
    let pieces: [&[u16]; 14] = [
        &[0x61],
        &[0x20],
        &[0x2e],
        &[0xe9],
        &[0xd83d],
        &[0xde00],
        &[0xd83d, 0xde00],
        &[0xf001],
        &[0xf026],
        &[0xf028],
        &[0xf029],
        &[0xf02a],
        &[0xf0c3],
        &[0xf0a9],
    ];
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..NAMES {
        let count = 1 + random.below(6);
        let units = (0..count).flat_map(|_| pieces[random.below(14) as usize]);
        let made: Vec<u8> = units.flat_map(|unit| unit.to_le_bytes()).collect();
        let Ok(name) = decode_name(&made) else {
            refused += 1;
            continue;
        };
        taken += 1;
        let listed = sent(&name);
        // Only a blank and a dot at the end are sent otherwise: Windows would cut them off.
        let (front, last) = made.split_last_chunk::<2>().expect("a unit");
        if is_name(&name) && !matches!(last, [b' ' | b'.', 0]) {
            assert_eq!(listed, made, "{name:x?}");
        } else {
            assert_eq!(listed.get(..front.len()), Some(front), "{name:x?}");
        }
    }
    assert!(taken > refused && refused > 0, "{taken} taken, {refused} refused");
}

#[test]
fn characters_of_the_private_area_stay_where_they_stand_for_nothing() {
    for text in ["p\u{f028}q", "p\u{f029}q", "p\u{f02a}", "\u{f000}", "\u{f07f}", "\u{f100}"] {
        assert_eq!(decode_name(&encode(text)).as_deref(), Ok(text.as_bytes()), "{text:?}");
        assert_eq!(sent(text.as_bytes()), encode(text), "{text:?}");
    }
    // A backslash, and the character that stands for it.
    assert_eq!(sent(b"a\\b"), encode("a\u{f026}b"));
    assert_eq!(sent("a\u{f026}b".as_bytes()), encode("a\u{f0ef}\u{f080}\u{f0a6}b"));
    // It would be listed as U+00E9.
    assert!(decode_name(&encode("\u{f0c3}\u{f0a9}")).is_err());
}
