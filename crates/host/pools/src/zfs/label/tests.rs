//! Only labels of the pool that is destroyed are overwritten.

use std::path::PathBuf;

use e2e::scratch::Scratch;

use super::*;

/// Not a multiple of the size of a label.
const SIZE: u64 = (8 << 20) + 4096;

/// A name and a value of 64 bits, or of other bytes.
fn pair(name: &str, (kind, value): (u32, &[u8])) -> Vec<u8> {
    let padded = name.len().next_multiple_of(4);
    let size = (4 * 5 + padded + value.len()) as u32;
    let mut bytes = [size, size, name.len() as u32].map(u32::to_be_bytes).concat();
    bytes.extend(name.bytes().chain(std::iter::repeat(0)).take(padded));
    bytes.extend([kind, 1].map(u32::to_be_bytes).concat());
    bytes.extend(value);
    bytes
}

/// A list as ZFS has it.
fn packed(pool: Option<u64>) -> Vec<u8> {
    let mut bytes = vec![XDR, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    bytes.extend(pair("version", (UINT64, &5000_u64.to_be_bytes())));
    // A string that looks like the name.
    let text = [&9_u32.to_be_bytes()[..], POOL, &[0; 3]].concat();
    bytes.extend(pair("name", (9, &text)));
    bytes.extend(pool.iter().flat_map(|pool| pair("pool_guid", (UINT64, &pool.to_be_bytes()))));
    bytes.extend(pair("guid", (UINT64, &77_u64.to_be_bytes())));
    bytes.extend([0; 8]);
    bytes
}

/// A device with these lists in its labels.
fn device(scratch: &Scratch, lists: [&[u8]; 4]) -> PathBuf {
    let path = scratch.path().join("disk");
    let file = File::create(&path).expect("made");
    file.set_len(SIZE).expect("sparse");
    for (offset, list) in places(SIZE).zip(lists) {
        file.write_all_at(list, offset + LIST.0).expect("written");
        file.write_all_at(&0x00ba_b10c_u64.to_le_bytes(), offset + (128 << 10)).expect("written");
    }
    path
}

/// Whether labels with these lists are overwritten; nothing is written if not.
fn is_wiped(lists: [&[u8]; 4], may_lack: bool) -> bool {
    let scratch = Scratch::new("zfs-label");
    let path = device(&scratch, lists);
    let before = std::fs::read(&path).expect("read");
    let done = wipe(&path, 7, may_lack);
    let after = std::fs::read(&path).expect("read");
    match done {
        Ok(true) => assert!(after.iter().all(|byte| *byte == 0)),
        Ok(false) => panic!("it has labels"),
        Err(_) => assert!(before == after),
    }
    done.is_ok()
}

#[test]
fn labels_of_another_pool_are_left() {
    let (own, other, none) = (&packed(Some(7))[..], &packed(Some(8))[..], &packed(None)[..]);
    assert!(is_wiped([own; 4], false));
    assert!(!is_wiped([other; 4], false));
    assert!(!is_wiped([own, own, own, other], false));
    assert!(!is_wiped([other; 4], true));
    // Caches and spares.
    assert!(!is_wiped([none; 4], false));
    assert!(is_wiped([none; 4], true) && is_wiped([own; 4], true));
    assert!(is_wiped([own, &[], &[], &[]], false), "the others are damaged");
    assert!(!is_wiped([&[]; 4], true), "of which pool they are is not known");
    for length in BEFORE_PAIRS..own.len() {
        let cut = number(&own[..length]);
        assert!(cut.is_none() || cut == Some(7), "{length} bytes");
    }
    assert_eq!(number(&[0xff; 64]), None);
}

#[test]
fn a_device_without_labels_is_left() {
    let scratch = Scratch::new("zfs-label-none");
    let path = scratch.path().join("disk");
    std::fs::write(&path, vec![3; SIZE as usize]).expect("written");
    assert_eq!(wipe(&path, 7, true).ok(), Some(false));
    assert_eq!(std::fs::read(&path).expect("read"), vec![3; SIZE as usize]);
}
