//! Tables of firmware, good and bad.

use base::random::{Random, SeededRandom};

use super::*;

/// A structure: its type, fixed area behind the header, strings.
fn structure(kind: u8, fixed: &[u8], strings: &[&str]) -> Vec<u8> {
    let mut bytes = vec![kind, 4 + fixed.len() as u8, 1, 0];
    bytes.extend(fixed);
    for string in strings {
        bytes.extend(string.as_bytes());
        bytes.push(0);
    }
    bytes.extend(if strings.is_empty() { &[0, 0][..] } else { &[0] });
    bytes
}

fn module(size: u16, speed: u16, extended: u32) -> Vec<u8> {
    let mut fixed = vec![0; 0x1c - 4];
    fixed[0x0c - 4..0x0e - 4].copy_from_slice(&size.to_le_bytes());
    fixed[0x10 - 4] = 1;
    fixed[0x12 - 4] = 0x1a;
    fixed[0x15 - 4..0x17 - 4].copy_from_slice(&speed.to_le_bytes());
    fixed.extend(extended.to_le_bytes());
    structure(17, &fixed, &["DIMM_A1"])
}

#[test]
fn sizes_of_modules() {
    let size = |raw, extended| parse(&module(raw, 2_666, extended), true).memory[0].size;
    assert_eq!(size(0, 0), None);
    assert_eq!(size(0xffff, 0), None);
    assert_eq!(size(512, 0), Some(512 << 20));
    assert_eq!(size(0x8000 | 64, 0), Some(64 << 10));
    assert_eq!(size(0x7fff, 64 << 10), Some(64 << 30));
    let one = &parse(&module(0, 0, 0), true).memory[0];
    assert!(one.empty && one.speed_mts.is_none());
    assert_eq!((one.kind.as_deref(), one.locator.as_deref()), (Some("DDR4"), Some("DIMM_A1")));
}

#[test]
fn strings_that_are_missing() {
    let with = |index: u8| parse(&structure(2, &[index, 0, 0, 0], &["A", "B"]), true).board;
    let maker = |index| with(index).and_then(|board| board.manufacturer);
    assert_eq!(
        (maker(0), maker(1), maker(2), maker(3)),
        (None, Some("A".into()), Some("B".into()), None)
    );
    // A structure that is cut off ends the table.
    let mut table = structure(2, &[1, 0, 0, 0], &["A"]);
    let whole = table.len();
    table.extend(structure(1, &[1, 0, 0, 0], &["B"]));
    assert!(parse(&table, true).system.is_some());
    assert!(parse(&table[..table.len() - 1], true).system.is_none());
    assert!(parse(&table[..whole], true).board.is_some());
    assert!(parse(&[2, 3, 0, 0, 0, 0], true).board.is_none());
    // Behind the end of the table there is nothing more.
    let mut ended = structure(127, &[], &[]);
    ended.extend(table);
    assert_eq!(parse(&ended, true), Table::default());
}

#[test]
fn identifiers_of_systems() {
    let mut fixed = vec![0; 4];
    fixed.extend(0x10..0x20);
    let uuid = |little| parse(&structure(1, &fixed, &[]), little).system.and_then(|one| one.uuid);
    assert_eq!(uuid(true).as_deref(), Some("13121110-1514-1716-1819-1a1b1c1d1e1f"));
    assert_eq!(uuid(false).as_deref(), Some("10111213-1415-1617-1819-1a1b1c1d1e1f"));
    assert!(has_little_endian_uuids(b"_SM_\0\x1f\x02\x08"));
    assert!(!has_little_endian_uuids(b"_SM_\0\x1f\x02\x05"));
    assert!(has_little_endian_uuids(b"_SM3_\0\x18\x03\x00"));
}

/// What every table must keep to, however wrong: used by the fuzz target, too.
fn check(bytes: &[u8]) {
    let table = parse(bytes, true);
    assert!(table.memory.len() <= KIND_MAX && table.slots.len() <= KIND_MAX);
    let text = serde_json::to_string(&table).expect("JSON");
    // A string may be named by several fields of a structure.
    assert!(text.len() <= 4_096 + 64 * bytes.len() + 1_024 * KIND_MAX);
    assert!(!text.contains('\u{0}'));
}

#[test]
fn mutated_tables() {
    let mut seed = structure(1, &[1; 0x17], &["A", "Storage"]);
    seed.extend(module(0x7fff, 0xffff, 9));
    seed.extend(structure(4, &[7; 0x2c], &["CPU", "B", "C", "D", "E", "F", "G"]));
    seed.extend(structure(9, &[1; 13], &["PCIE1"]));
    seed.extend(structure(127, &[], &[]));
    let mut random = SeededRandom::new(42);
    for _ in 0..20_000 {
        let mut table = seed.clone();
        for _ in 0..=random.below(6) {
            let at = random.below(table.len() as u64) as usize;
            match random.below(4) {
                0 => table[at] = random.below(256) as u8,
                1 => table.insert(at, random.below(256) as u8),
                2 if at > 0 => table.truncate(at),
                _ => table[at] ^= 1 << random.below(8),
            }
        }
        check(&table);
    }
}
