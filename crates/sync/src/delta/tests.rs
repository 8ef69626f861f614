//! The reported parts make the new file out of the old one, whatever was changed.

use std::io;

use base::limits::{DSYNC_BLOCKS_MAX, DSYNC_PIECE};
use base::random::{Random, SeededRandom};
use wire::dsync::Basis;

use super::*;

/// Builds a copy of `new` from `old` and the reported parts: the copy, and how many of its bytes
/// were new.
fn rebuilt(old: &[u8], new: &[u8], block: usize, range: (u64, u64)) -> (Vec<u8>, usize) {
    let index = Index::new(block, old.chunks_exact(block).map(sum).collect());
    let (mut made, mut sent) = (new[..range.0 as usize].to_vec(), 0);
    let read = |bytes: &mut [u8], at: u64| {
        let rest = &new[at as usize..];
        // Short reads, as files may give them.
        let n = bytes.len().min(rest.len()).min(10_007);
        bytes[..n].copy_from_slice(&rest[..n]);
        Ok::<_, io::Error>(n)
    };
    walk(&index, range, read, |part| {
        match part {
            Part::New(at, bytes) => {
                assert_eq!(at as usize, made.len());
                assert!(!bytes.is_empty() && bytes.len() <= DSYNC_PIECE);
                made.extend_from_slice(bytes);
                sent += bytes.len();
            }
            Part::Had(at, from, length, sums) => {
                assert_eq!(at as usize, made.len());
                assert!(length as usize <= DSYNC_PIECE);
                let had = &old[from as usize..][..length as usize];
                assert!(had.chunks(block).map(sum).eq(sums.iter().cloned()), "their sums");
                made.extend_from_slice(had);
            }
        }
        Ok::<_, io::Error>(())
    })
    .expect("a walk");
    (made, sent)
}

fn random_bytes(random: &mut SeededRandom, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes
}

fn edit(random: &mut SeededRandom, bytes: &mut Vec<u8>) {
    let at = random.below(bytes.len() as u64 + 1) as usize;
    let length = random.below(9_000) as usize;
    let end = (at + length).min(bytes.len());
    match random.below(4) {
        0 => drop(bytes.drain(at..end)),
        1 => drop(bytes.splice(at..at, random_bytes(random, length))),
        2 => random.fill(&mut bytes[at..end]),
        _ => bytes.extend_from_within(at..end),
    }
}

#[test]
fn any_edit_is_found() {
    let mut random = SeededRandom::new(6);
    for _ in 0..60 {
        let length = 1 + random.below(900_000) as usize;
        let old = random_bytes(&mut random, length);
        let mut new = old.clone();
        for _ in 0..random.below(6) {
            edit(&mut random, &mut new);
        }
        let end = new.len() as u64;
        let (made, sent) = rebuilt(&old, &new, 4096, (0, end));
        assert!(made == new, "{length} bytes");
        // Each edit costs what is new of it, two blocks at its borders, and the end.
        assert!(sent <= 6 * (9_000 + 2 * 4096) + 4096, "{sent} of {length}");
    }
}

#[test]
fn the_same_file_costs_its_last_block_at_most() {
    let mut random = SeededRandom::new(7);
    let old = random_bytes(&mut random, 1_000_001);
    let (made, sent) = rebuilt(&old, &old, 4096, (0, old.len() as u64));
    assert!(made == old && sent < 4096, "{sent}");
    // Equal blocks are no trap.
    let zeros = vec![0; 3 << 20];
    let (made, sent) = rebuilt(&zeros, &zeros, 4096, (0, zeros.len() as u64));
    assert!(made == zeros && sent == 0);
}

#[test]
fn a_part_of_a_file_and_small_ones() {
    let mut random = SeededRandom::new(8);
    let old = random_bytes(&mut random, 100_000);
    let mut new = old.clone();
    new[50_000] ^= 1;
    let (made, _) = rebuilt(&old, &new, 4096, (4_000, 90_000));
    assert!(made == new[..90_000]);
    for length in [0, 1, 4095, 4096, 4097] {
        let (made, _) = rebuilt(&old, &new[..length], 4096, (0, length as u64));
        assert!(made == new[..length], "{length}");
    }
}

#[test]
fn a_file_that_has_become_shorter_ends() {
    let index = Index::new(4096, Vec::new());
    let mut told = 0;
    let read = |bytes: &mut [u8], at: u64| {
        let n = bytes.len().min(5_000usize.saturating_sub(at as usize));
        Ok::<_, io::Error>(n)
    };
    walk(&index, (0, 1 << 30), read, |part| {
        let Part::New(_, bytes) = part else { panic!("nothing is there") };
        told += bytes.len();
        Ok::<_, io::Error>(())
    })
    .expect("a walk");
    assert_eq!(told, 5_000);
}

#[test]
fn a_weak_sum_moves_on() {
    let bytes = random_bytes(&mut SeededRandom::new(9), 10_000);
    let mut weak = Weak::of(&bytes[..4096]);
    for at in 0..5_000 {
        assert_eq!(weak.value(), Weak::of(&bytes[at..at + 4096]).value(), "{at}");
        weak.roll(4096, bytes[at], bytes[at + 4096]);
    }
}

#[test]
fn a_weak_sum_is_the_sum_of_the_sums() {
    let whole = ROWS * COLUMNS;
    let bytes = random_bytes(&mut SeededRandom::new(10), 5 * whole);
    for length in [0, 1, COLUMNS, whole - 1, whole, whole + COLUMNS + 1, 5 * whole] {
        let (mut a, mut b) = (0u32, 0u32);
        for byte in &bytes[..length] {
            a = a.wrapping_add(u32::from(*byte));
            b = b.wrapping_add(a);
        }
        let weak = Weak::of(&bytes[..length]);
        assert_eq!((weak.a, weak.b), (a, b), "{length}");
    }
    let full = Weak::of(&vec![u8::MAX; whole]);
    assert_eq!(full.a, 255 * whole as u32, "what fits no more would be lost");
}

#[test]
fn files_are_cut_within_limits() {
    assert_eq!(basis(1000), None);
    assert_eq!(basis(64 << 10), Some(Basis { block: 4096, count: 16 }));
    let large = basis(4 << 30).expect("a basis");
    assert_eq!((large.block, large.count), (65_536, 65_536));
    assert_eq!(basis(u64::MAX), None);
    for size in [64 << 10, 1_000_000, 1 << 32, 100 << 30] {
        assert!(is_basis(&basis(size).expect("a basis")), "{size}");
    }
    for (block, count) in [(0, 1), (4096, 0), (5000, 1), (1 << 20, 1), (2048, 1)] {
        assert!(!is_basis(&Basis { block, count }), "{block}");
    }
    assert!(!is_basis(&Basis { block: 4096, count: DSYNC_BLOCKS_MAX as u32 + 1 }));
}
