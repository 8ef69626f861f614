//! Numbers of signed requests.

use super::*;

#[test]
fn a_number_that_is_signed_twice_is_noticed() {
    let numbers = SignedNumbers::default();
    for number in [0, 3, 63, 64, 64, u64::MAX, u64::MAX] {
        numbers.note(number);
        assert!(!numbers.has_repeated(), "{number}: higher ones are not remembered");
    }
    numbers.note(3);
    assert!(numbers.has_repeated());
    numbers.note(5);
    assert!(numbers.has_repeated(), "the key stays known");
}
