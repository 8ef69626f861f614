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
    match cached_pages(file.as_fd(), 0, 0) {
        Ok(pages) => assert_eq!(pages.resident, 6),
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

/// Whether pages of this folder's files can leave memory, and are counted.
fn has_disk(machine: &Machine) -> bool {
    machine.file("probe", "x");
    let dropped = drop_files(&[machine.at("probe")], None);
    let has = dropped.before.resident == 1 && dropped.after.resident == 0;
    if !has {
        println!("SKIP drop-files: no disk here, or a kernel that does not count pages");
    }
    has
}

#[test]
fn dropped_files_are_on_the_disk_and_out_of_memory() {
    let machine = Machine::new();
    let pages = 300;
    let text = "x".repeat(pages * page_size() as usize);
    machine.file("plimsoll-lab.0/f", &text);
    machine.file("other", &text);
    std::os::unix::fs::symlink(machine.at("other"), machine.at("plimsoll-lab.0/link")).unwrap();
    if !has_disk(&machine) {
        return;
    }
    let dropped = drop_test_files(&machine.at("")).unwrap();
    let all = pages as u64;
    assert_eq!((dropped.files, dropped.before.resident, dropped.after.all), (1, all, all));
    assert_eq!((dropped.after.resident, dropped.failed), (0, None));
    assert_eq!(std::fs::read_to_string(machine.at("plimsoll-lab.0/f")).unwrap(), text);
    let other = of(&File::open(machine.at("other")).unwrap()).unwrap();
    assert_eq!(other.resident, all, "no test file, and not by a link");
    let none = machine.at("plimsoll-lab.1");
    std::fs::create_dir(&none).unwrap();
    assert!(drop_test_files(&none).unwrap_err().contains("no test files"));
}

#[test]
fn a_mapping_keeps_what_is_dropped() {
    let machine = Machine::new();
    machine.file("plimsoll-lab.0/f", &"x".repeat(64 * page_size() as usize));
    if !has_disk(&machine) {
        return;
    }
    let file = File::open(machine.at("plimsoll-lab.0/f")).unwrap();
    let length = 16 * page_size() as usize;
    let (read, flags) = (libc::PROT_READ, libc::MAP_SHARED | libc::MAP_POPULATE);
    // SAFETY: a new mapping, placed by the kernel, and filled by it.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), length, read, flags, file.as_raw_fd(), 0) };
    assert_ne!(at, libc::MAP_FAILED);
    let kept = drop_test_files(&machine.at("")).unwrap();
    // SAFETY: the mapping above, once.
    unsafe { libc::munmap(at, length) };
    assert!(kept.after.resident >= 16, "{kept:?}");
    assert_eq!(drop_test_files(&machine.at("")).unwrap().after.resident, 0);
}
