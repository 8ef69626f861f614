//! The pattern is the same from every angle, never repeats, and a wrong byte is found.

use super::*;

#[test]
fn any_slice_agrees_with_the_whole() {
    let content = Content::new(7);
    let mut whole = vec![0; 40_000];
    content.fill(3, 0, &mut whole);
    for (offset, len) in [(0, 1), (1, 1), (7, 9), (4095, 2), (4090, 4105), (8191, 1), (13, 30_000)]
    {
        let mut part = vec![0; len];
        content.fill(3, offset as u64, &mut part);
        assert_eq!(part, whole[offset..offset + len], "{offset}+{len}");
        assert_eq!(content.mismatch(3, offset as u64, &part), None);
    }
}

#[test]
fn one_wrong_bit_is_found_where_it_is() {
    let content = Content::new(7);
    let mut data = vec![0; 9000];
    for at in [0, 1, 95, 4096, 8999] {
        content.fill(1, 5, &mut data);
        data[at] ^= 0x10;
        assert_eq!(content.mismatch(1, 5, &data), Some(at));
    }
}

#[test]
fn files_blocks_and_seeds_differ() {
    let block = |seed, file, offset| {
        let mut out = vec![0; BLOCK];
        Content::new(seed).fill(file, offset, &mut out);
        out
    };
    let mut seen = std::collections::HashSet::new();
    for seed in 0..2 {
        for file in 0..8 {
            for n in 0..64 {
                assert!(seen.insert(block(seed, file, n * BLOCK as u64)));
            }
        }
    }
}

#[test]
fn every_byte_value_is_about_equally_common() {
    // What an entropy coder could use: for random bytes chi² has mean 255 and deviation 23.
    let mut data = vec![0; 1 << 20];
    Content::new(11).fill(0, 0, &mut data);
    let mut counts = [0u64; 256];
    data.iter().for_each(|b| counts[*b as usize] += 1);
    let expected = data.len() as f64 / 256.0;
    let chi2: f64 = counts.iter().map(|c| (*c as f64 - expected).powi(2) / expected).sum();
    assert!(chi2 < 400.0, "chi² {chi2}");
}
