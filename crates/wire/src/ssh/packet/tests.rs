//! Packets that cannot be.

use super::*;

#[test]
fn lengths_that_no_packet_has_are_refused() {
    for length in [0u32, 1, 5, 11, 13, 300_000, u32::MAX] {
        let mut input = [length.to_be_bytes().as_slice(), &[4; 60]].concat();
        assert_eq!(Opener::plain().open(&mut input), Err(Broken::Length), "{length}");
    }
    // Padding that leaves no payload, or is too short.
    for pad in [0u8, 3, 11, 12, 255] {
        let mut input = [&[0, 0, 0, 12, pad][..], &[0; 11]].concat();
        assert_eq!(Opener::plain().open(&mut input), Err(Broken::Length), "{pad}");
    }
    let mut input = [&[0, 0, 0, 12, 10][..], &[0; 11]].concat();
    assert_eq!(Opener::plain().open(&mut input), Ok(Opened::Packet(5..6, 16)));
}

#[test]
fn packets_are_aligned_and_padded() {
    for size in 1..100 {
        let mut out = Vec::new();
        let start = Sealer::begin(&mut out);
        out.resize(out.len() + size, 1);
        Sealer::plain().finish(&mut out, start).unwrap();
        assert_eq!(out.len() % 8, 0);
        assert!((4..12).contains(&out[4]));
        assert_eq!(Opener::plain().open(&mut out), Ok(Opened::Packet(5..5 + size, out.len())));
    }
}
