//! What is packed, and what a hostile side may call so.

use base::limits::DSYNC_PIECE;
use base::random::{Random, SeededRandom};

use super::{Packer, Unpacker};

#[test]
fn what_shrinks_is_packed_and_comes_back() {
    let (packer, unpacker) = (Packer::default(), Unpacker::default());
    let mut random = SeededRandom::new(1);
    let mut noise = vec![0; DSYNC_PIECE];
    random.fill(&mut noise);
    for length in [0, 1, 100, 5_000, 70_000, DSYNC_PIECE] {
        assert_eq!(packer.pack(&noise[..length]), None, "{length} bytes of noise");
        let text: Vec<u8> = b"A line of a log.\n".iter().cycle().take(length).copied().collect();
        let Some(packed) = packer.pack(&text) else {
            assert!(length <= 100, "{length} bytes of text");
            continue;
        };
        assert!(packed.len() * 8 <= text.len() * 7, "{length}");
        let back = unpacker.bytes(&packed, length as u32).expect("it");
        assert_eq!(&*back, text);
    }
    // A sample that shrinks, of a piece that does not.
    let mut odd = noise.clone();
    odd[DSYNC_PIECE / 2 - 8_192..DSYNC_PIECE / 2 + 8_192].fill(0);
    assert_eq!(packer.pack(&odd), None);
}

#[test]
fn packed_data_that_differs_from_its_length_is_refused() {
    let (packer, unpacker) = (Packer::default(), Unpacker::default());
    let zeros = vec![0; DSYNC_PIECE];
    let packed = packer.pack(&zeros).expect("packed");
    let refusal = |bytes: &[u8], length| unpacker.bytes(bytes, length).err();
    assert!(refusal(&packed, DSYNC_PIECE as u32).is_none());
    assert!(refusal(&packed, DSYNC_PIECE as u32 - 1).is_some(), "less than there is");
    assert!(refusal(&packed, 1).is_some());
    assert!(refusal(&packed[..packed.len() - 1], DSYNC_PIECE as u32).is_some(), "cut off");
    assert!(refusal(b"no zstd at all", 14).is_some());
    assert!(refusal(&packed, u32::MAX).is_some(), "more than a piece");
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 1).expect("packed");
    assert!(refusal(&bomb, DSYNC_PIECE as u32).is_some(), "no more than it says is made of it");
    let half = packer.pack(&zeros[..1_000]).expect("packed");
    assert!(refusal(&half, 2_000).is_some(), "more than there is");
    assert!(refusal(&[], 5).is_some());
}
