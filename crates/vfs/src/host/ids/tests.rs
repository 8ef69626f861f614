//! Handles fit, come apart as they were put together, and cannot be made without the key.

use super::*;

fn keys(secret: u8, tag: u32, fsid: u64) -> Keys {
    Keys::new(&[secret; 32], tag, fsid)
}

fn kernel(len: usize) -> Ident {
    let bytes: Vec<u8> = (0..len as u8).collect();
    Ident::Kernel(KernelHandle::new(1, &bytes).expect("short enough"))
}

#[test]
fn come_apart_as_put_together() {
    let inode = |ino| Ident::Inode { ino, birth: ino << 32 };
    let keys = keys(1, 2, 3);
    for (ident, parent) in [
        (kernel(8), Some(kernel(8))),
        (kernel(12), None),
        // btrfs, the longest: exactly 64 bytes at most.
        (kernel(20), Some(kernel(20))),
        (inode(5), Some(inode(6))),
        (inode(u64::MAX >> 32), None),
    ] {
        let parsed = Parsed { ident, is_dir: parent.is_none(), parent };
        let handle = keys.seal(&parsed).expect("fits");
        assert_eq!(keys.open(&handle), Ok(parsed));
        assert_eq!(tag_of(&handle), Some(2));
        let form = matches!(ident, Ident::Kernel(_));
        assert_eq!(Ident::from_bytes(&ident.to_bytes(), form), Some(ident));
    }
    let long = Parsed { ident: kernel(32), is_dir: false, parent: Some(kernel(32)) };
    assert_eq!(keys.seal(&long), None);
}

#[test]
fn other_keys_do_not_open() {
    let parsed = Parsed { ident: kernel(8), is_dir: true, parent: None };
    let handle = keys(1, 2, 3).seal(&parsed).expect("fits");
    for other in [keys(9, 2, 3), keys(1, 9, 3), keys(1, 2, 9)] {
        assert_eq!(other.open(&handle), Err(Status::BadHandle));
    }
    // Of a file system that was there before.
    let later = keys(1, 2, 9).after(&[1; 32], &[4, 3]);
    assert_eq!(later.open(&handle), Err(Status::Stale));
    assert_eq!(keys(1, 2, 3).after(&[1; 32], &[4]).open(&handle), Ok(parsed));
}

#[test]
fn the_longest_fits_exactly_or_shorter() {
    let parsed = Parsed { ident: kernel(20), is_dir: false, parent: Some(kernel(20)) };
    let handle = keys(1, 2, 3).seal(&parsed).expect("fits");
    assert!(handle.as_bytes().len() <= 64);
}

/// A kernel handle as btrfs makes them.
fn btrfs(inode: u64, subvolume: u64, generation: u32) -> Ident {
    let bytes = [&inode.to_le_bytes()[..], &subvolume.to_le_bytes(), &generation.to_le_bytes()];
    Ident::Kernel(KernelHandle::new(0x4d, &bytes.concat()).expect("short enough"))
}

#[test]
fn handles_of_snapshots_open_with_the_keys_of_theirs_only() {
    let parsed = Parsed { ident: btrfs(257, 300, 7), is_dir: false, parent: None };
    let of = |number| keys(1, 2, 3).of_snapshot(Some(number));
    let (one, live) = (of(5).seal(&parsed).expect("fits"), keys(1, 2, 3));
    assert_eq!((snapshot_of(&one), of(5).open(&one)), (Some(5), Ok(parsed)));
    let plain = live.seal(&parsed).expect("fits");
    assert_eq!(snapshot_of(&plain), None);
    assert_ne!(one, of(6).seal(&parsed).expect("fits"));
    for (keys, handle) in [(of(6), one), (keys(1, 2, 3), one), (of(5), plain)] {
        assert_eq!(keys.open(&handle), Err(Status::BadHandle));
    }
    assert!(has_form(&one) && tag_of(&one) == Some(2));
}

#[test]
fn handles_of_a_subvolume_are_those_of_the_one_in_its_place() {
    let parsed =
        |subvolume| Parsed { ident: btrfs(257, subvolume, 7), is_dir: false, parent: None };
    let of = |subvolume| keys(1, 2, 3).of_subvolume(Some(subvolume));
    let handle = of(300).seal(&parsed(300)).expect("fits");
    assert_eq!(of(300).open(&handle), Ok(parsed(300)));
    assert_eq!(of(301).open(&handle), Ok(parsed(301)));
    assert_eq!(of(301).seal(&parsed(301)), Some(handle));
    // By what changes are announced, shares by other paths know the file, too.
    let elsewhere = keys(9, 8, 7);
    let other = elsewhere.seal(&parsed(300)).expect("fits");
    assert_eq!(of(300).change_slot(&handle), elsewhere.change_slot(&other));
    assert_ne!(of(301).change_slot(&handle), elsewhere.change_slot(&other));
    // Another inode, another generation: other files.
    for ident in [btrfs(258, 300, 7), btrfs(257, 300, 8)] {
        let other = Parsed { ident, is_dir: false, parent: None };
        assert_ne!(of(300).seal(&other), Some(handle));
    }
}
