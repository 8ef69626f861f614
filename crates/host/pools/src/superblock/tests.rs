//! Superblocks of any bytes are read without a panic.

use base::random::Random;

use super::{SIZE, Superblock, uuid};

#[test]
fn a_uuid_has_its_dashes() {
    let bytes: Vec<u8> = (0..16).collect();
    assert_eq!(uuid(&bytes), "00010203-0405-0607-0809-0a0b0c0d0e0f");
}

#[test]
fn any_bytes_are_read_without_a_panic() {
    let mut random = base::random::SeededRandom::new(41);
    let mut parsed = 0;
    for round in 0..2_000 {
        let mut bytes = vec![0; if round % 3 == 0 { round } else { SIZE }];
        random.fill(&mut bytes);
        if let Some(magic) = bytes.get_mut(0x40..0x48).filter(|_| round % 2 == 0) {
            magic.copy_from_slice(b"_BHRfS_M");
        }
        parsed += usize::from(Superblock::parse(&bytes).is_some());
    }
    assert!((600..2_000).contains(&parsed), "{parsed}");
}
