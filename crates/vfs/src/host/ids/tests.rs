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
