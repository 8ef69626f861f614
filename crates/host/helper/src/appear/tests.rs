//! What is new in a list of links.

use e2e::scratch::Scratch;

use super::*;

#[test]
fn a_link_is_new_by_its_name_or_its_number() {
    let scratch = Scratch::new("appear");
    let put = |name: &str, number: &str| {
        std::fs::create_dir_all(scratch.path().join(name)).expect("a folder");
        std::fs::write(scratch.path().join(name).join("ifindex"), number).expect("written");
    };
    put("e0", "2\n");
    put("e1", "3\n");
    // A file of the bonding driver.
    std::fs::write(scratch.path().join("bonding_masters"), "").expect("written");
    let before = links(scratch.path());
    assert_eq!(before.keys().collect::<Vec<_>>(), ["e0", "e1"]);
    std::fs::remove_dir_all(scratch.path().join("e0")).expect("removed");
    put("e1", "4\n");
    put("e2", "5\n");
    let now = links(scratch.path());
    assert_eq!(new(&before, &now).into_iter().collect::<Vec<_>>(), ["e1", "e2"]);
    assert!(new(&now, &now).is_empty() && !links(Path::new(LINKS)).is_empty());
}
