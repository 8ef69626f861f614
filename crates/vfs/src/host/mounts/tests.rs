//! Tests of the numbers of file systems, and of what is read of mounts.

use super::*;

fn mount(source: &str) -> Mount {
    let root = "/".to_owned();
    Mount { root, kind: "fuse.test-of-numbers".to_owned(), source: source.to_owned() }
}

#[test]
fn a_line_of_mountinfo_is_read() {
    let line = "36 35 98:0 /sub /mnt\\040a rw,noatime master:1 - fuse.sshfs host:/a\\040b rw";
    let found = Mount::parse(line).expect("a mount");
    assert_eq!(
        (&*found.root, &*found.kind, &*found.source),
        ("/sub", "fuse.sshfs", "host:/a\\040b")
    );
    assert_eq!(Mount::parse("36 35 98:0 / /mnt rw"), None);
}

#[test]
fn a_number_is_the_same_at_each_mount_and_for_all_of_one_file_system() {
    // Device numbers that no file system has.
    let first = Number::of(u64::MAX - 1, &mount("stays"));
    assert_eq!(Number::of(u64::MAX - 1, &mount("stays")).get(), first.get());
    let number = first.get();
    drop(first);
    assert_eq!(Number::of(u64::MAX - 2, &mount("stays")).get(), number);
    assert_ne!(Number::of(u64::MAX - 3, &mount("another")).get(), number);
}

#[test]
fn two_file_systems_that_are_open_have_two_numbers() {
    let first = Number::of(u64::MAX - 4, &mount("twice"));
    let second = Number::of(u64::MAX - 5, &mount("twice"));
    assert_ne!(first.get(), second.get());
    // The one that is mounted again has its number back.
    let number = first.get();
    drop(first);
    assert_eq!(Number::of(u64::MAX - 6, &mount("twice")).get(), number);
}
