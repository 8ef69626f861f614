//! Chunks as the kernel has them, and what is left behind a place.

use super::*;

/// A chunk of a mirror on two devices.
fn chunk(length: u64, flags: u64, stripes: &[(u64, u64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [length, 2, 64 << 10, flags] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([0; 12]);
    bytes.extend((stripes.len() as u16).to_le_bytes());
    bytes.extend(1u16.to_le_bytes());
    for (devid, start) in stripes {
        bytes.extend(devid.to_le_bytes());
        bytes.extend(start.to_le_bytes());
        bytes.extend([0; 16]);
    }
    bytes
}

/// As a search gives it.
fn found(offset: u64, chunk: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    bytes.extend(offset.to_le_bytes());
    bytes.extend(228u32.to_le_bytes());
    bytes.extend((chunk.len() as u32).to_le_bytes());
    bytes.extend(chunk);
    bytes
}

const MIRROR: u64 = 1 << 4;

#[test]
fn only_what_is_in_use_of_chunks_counts() {
    let spaces = [
        Space { flags: 1 | MIRROR, total: 1_000, used: 500 },
        Space { flags: 4 | MIRROR, total: 100, used: 10 },
    ];
    let bytes = [
        found(7, &chunk(1_000, 1 | MIRROR, &[(1, 2_000), (2, 50)])),
        found(9, &chunk(100, 4 | MIRROR, &[(2, 5_000), (3, 60)])),
    ]
    .concat();
    let mut parts = Vec::new();
    let last = items(&bytes, 2, |_, chunk| parts.extend(part(chunk, 2, &spaces, || None)));
    assert_eq!(last, Some(9));
    let chunks = Chunks(parts);
    assert_eq!(chunks.before(0), (0, 510));
    assert_eq!(chunks.before(550), (250, 510));
    // Between the two there is nothing to do.
    assert_eq!(chunks.before(2_000), chunks.before(4_999));
    assert_eq!(chunks.before(5_050), (505, 510));
    assert_eq!(chunks.before(u64::MAX), (510, 510));
}

#[test]
fn what_is_in_use_of_a_chunk_counts_before_that_of_its_kind() {
    let spaces = [Space { flags: 1 | MIRROR, total: 2_000, used: 1_000 }];
    let bytes = [
        found(7, &chunk(1_000, 1 | MIRROR, &[(1, 0)])),
        found(9, &chunk(1_000, 1 | MIRROR, &[(1, 1_000)])),
    ]
    .concat();
    let (mut parts, used) = (Vec::new(), |at| if at == 7 { Some(990) } else { Some(10) });
    items(&bytes, 2, |at, chunk| parts.extend(part(chunk, 1, &spaces, || used(at))));
    assert_eq!(Chunks(parts).before(1_000), (990, 1_000));
}

#[test]
fn what_is_cut_off_ends_the_list() {
    let bytes = found(7, &chunk(1_000, 1, &[(1, 2_000)]));
    for end in 0..bytes.len() {
        assert_eq!(items(&bytes[..end], 1, |_, _| panic!("a part of an item")), None);
        let _nothing = part(&bytes[..end], 1, &[], || None);
    }
    assert_eq!(items(&bytes, 0, |_, _| ()), None);
}
