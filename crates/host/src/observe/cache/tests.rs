//! Pages of files that were written and dropped again.

use super::*;
use crate::observe::tests::Machine;

#[test]
fn both_ways_count_the_same() {
    let machine = Machine::new();
    machine.file("plimsoll-lab.0/f", &"x".repeat(5 * page_size() as usize + 1));
    let file = File::open(machine.at("plimsoll-lab.0/f")).unwrap();
    assert_eq!(mincore(&file).unwrap(), 6);
    assert_eq!(of(&file).unwrap().all, 6);
    match cachestat(&file) {
        Ok((resident, _)) => assert_eq!(resident, 6),
        Err(e) => assert_eq!(e.raw_os_error(), Some(libc::ENOSYS), "{e}"),
    }
}

#[test]
fn test_files_alone_are_counted() {
    let machine = Machine::new();
    assert_eq!(of_test_files(&machine.at("")), None);
    machine.file("plimsoll-lab.0/f", "x");
    machine.file("plimsoll-lab.1", "x");
    machine.file("other/f", "x");
    machine.file("other.txt", "x");
    assert_eq!(of_test_files(&machine.at("")).unwrap().all, 2);
    for n in 0..=FILES_MAX {
        std::fs::write(machine.at(&format!("plimsoll-lab.0/{n}")), "").unwrap();
    }
    assert_eq!(of_test_files(&machine.at("")), None, "too many to look at");
}
