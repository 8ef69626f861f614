//! Limits of all, and of each.

use super::*;

#[test]
fn one_part_leaves_room_to_others() {
    let all = Memory::new(100, 60);
    let [one, two] = [MemoryPart::new(&all), MemoryPart::new(&all)];
    assert!(one.has_room() && one.has_plenty());
    one.charge(30);
    assert!(one.has_room() && !one.has_plenty());
    one.charge(30);
    assert!(!one.has_room() && two.has_room());
    two.charge(40);
    assert!(!two.has_room(), "there is no more");
    one.give(60);
    assert!(one.has_room() && two.has_room());
    two.give(40);
    assert_eq!(all.used(), 0);
}
