//! P_Keys, their partitions, and the two numbers that name none.

use super::*;

#[test]
fn two_numbers_name_one_partition() {
    let limited: Pkey = "0x7fff".parse().expect("a P_Key");
    let full: Pkey = "ffff".parse().expect("a P_Key");
    assert_eq!(limited.partition(), full.partition());
    assert_eq!((limited.full(), full.limited()), (0xffff, 0x7fff));
    assert!(full.is_full() && !limited.is_full());
    assert_eq!(limited.to_string(), "0x7fff (limited 0x7fff, full 0xffff)");
    assert_eq!(limited.to_string(), full.to_string());
}

#[test]
fn the_partition_zero_is_refused() {
    for number in [0x0000, 0x8000] {
        let why = Pkey::new(number).expect_err("invalid").to_string();
        assert!(why.contains("is invalid") && why.contains("0x0001 to 0x7fff"), "{why}");
    }
    for text in ["", "0x", "0x10000", "-1", "0x80 01"] {
        assert_eq!(text.parse::<Pkey>(), Err(NotPkey::Text(text.to_owned())));
    }
}
