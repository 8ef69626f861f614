//! The fuzz targets without a fuzzer: every seed of `fuzz/corpus`, which must be taken as a
//! message, and seeded mutations of them, which must not panic. The same run every time.

use std::path::Path;

use base::random::{Random, SeededRandom};

/// Mutated inputs, all targets together.
const MUTATIONS: usize = 500_000;
/// Largest input that mutation makes.
const INPUT_MAX: usize = 4096;

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut seeds: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| {
            let path = entry.expect("folder entry").path();
            let name = path.file_name().expect("file name").to_string_lossy().into_owned();
            (name, std::fs::read(&path).expect("seed"))
        })
        .collect();
    seeds.sort();
    seeds
}

/// One change: of a bit, a byte, a word (lengths and discriminants are words), or of the shape.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut SeededRandom) {
    let at = random.below(bytes.len() as u64) as usize;
    match random.below(7) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
        1 if !bytes.is_empty() => bytes[at] = random.next_u64() as u8,
        2 | 3 if bytes.len() >= 4 => {
            let words = [0, 1, 2, 3, 7, 64, 65, 255, 256, 400, 401, 1 << 31, u32::MAX];
            let word = words[random.below(words.len() as u64) as usize];
            let at = (at & !3).min(bytes.len() - 4);
            bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
        4 => bytes.truncate(at),
        5 => {
            let from = random.below(other.len() as u64 + 1) as usize;
            bytes.truncate(at & !3);
            bytes.extend_from_slice(&other[from & !3..]);
        }
        _ => {
            let end = (at + random.below(32) as usize).min(bytes.len());
            bytes.extend_from_within(at..end);
        }
    }
    bytes.truncate(INPUT_MAX);
}

#[test]
fn seeds_are_messages() {
    for (name, target) in wire::fuzz::TARGETS {
        let seeds = seeds(name);
        assert!(seeds.len() >= 4, "{name} has {} seeds", seeds.len());
        for (file, bytes) in seeds {
            // What a fuzzer found is kept under its own name and need not be valid.
            let found = file.starts_with("crash-") || file.starts_with("slow-");
            assert!(target(&bytes) || found, "{name}/{file} is not a message");
        }
    }
}

#[test]
fn mutated_seeds_do_not_panic() {
    let mut random = SeededRandom::new(0x706c_696d_736f_6c6c);
    let (mut taken, mut refused) = (0, 0);
    for (name, target) in wire::fuzz::TARGETS {
        let seeds = seeds(name);
        for _ in 0..MUTATIONS / wire::fuzz::TARGETS.len() {
            let pick = |random: &mut SeededRandom| random.below(seeds.len() as u64) as usize;
            let mut bytes = seeds[pick(&mut random)].1.clone();
            for _ in 0..=random.below(4) {
                let other = &seeds[pick(&mut random)].1;
                mutate(&mut bytes, other, &mut random);
            }
            *(if target(&bytes) { &mut taken } else { &mut refused }) += 1;
        }
    }
    // Both sides of every decoder were reached in earnest.
    assert!(taken > MUTATIONS / 20 && refused > MUTATIONS / 20, "{taken} taken, {refused} refused");
}
