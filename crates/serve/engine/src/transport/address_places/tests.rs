//! Places of addresses.

use super::*;

#[test]
fn each_address_has_its_own_places() {
    let all = AddressPlaces::new(2);
    let [one, two]: [IpAddr; 2] = [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
    let take = |address| all.of(address).try_acquire_owned();
    let held = [take(one), take(one)].map(|place| place.expect("it has two"));
    assert!(take(one).is_err(), "and no more");
    assert!(take(two).is_ok(), "others have theirs");
    drop(held);
    assert!(take(one).is_ok());
    let known = all.of.lock().unwrap().len();
    assert!(known <= 2, "{known}");
    (0..100).for_each(|host| drop(take([198, 51, 100, host].into())));
    assert_eq!(all.of.lock().unwrap().len(), 1, "nobody has one of the others");
}
