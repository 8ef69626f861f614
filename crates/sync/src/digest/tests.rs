//! Sums of hashes know no order, and carry as numbers do.

use super::Digest;

#[test]
fn pieces_come_in_any_order() {
    let pieces: Vec<(u64, Vec<u8>)> = (0..50).map(|n| (n * 7, vec![n as u8; 7])).collect();
    let (mut there, mut back) = (Digest::default(), Digest::default());
    pieces.iter().for_each(|(at, bytes)| there.piece(*at, bytes));
    pieces.iter().rev().for_each(|(at, bytes)| back.piece(*at, bytes));
    assert_eq!(there, back);
    let mut other = Digest::default();
    pieces.iter().for_each(|(at, bytes)| other.piece(at + 1, bytes));
    assert_ne!(there.finish(), other.finish(), "where a piece lies counts");
    let mut twice = there;
    twice.piece(0, &pieces[0].1);
    twice.piece(0, &pieces[0].1);
    assert_ne!(there.finish(), twice.finish(), "a piece that comes twice does not go away");
}

#[test]
fn sums_carry() {
    let mut digest = Digest([u64::MAX, u64::MAX, 5, 0]);
    let mut one = [0; 32];
    one[0] = 1;
    digest.add(one);
    assert_eq!(digest, Digest([0, 0, 6, 0]));
    let mut most = Digest([u64::MAX; 4]);
    most.add([0xff; 32]);
    assert_eq!(most, Digest([u64::MAX - 1, u64::MAX, u64::MAX, u64::MAX]));
}
