//! Each signature is recognised at its place, and none of it where it is not.

use std::fs::File;
use std::os::unix::fs::FileExt;

use e2e::scratch::Scratch;

use super::{MAGICS, identify};

const SIZE: u64 = 8 << 20;

fn blank(scratch: &Scratch) -> File {
    let path = scratch.path().join("disk");
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path);
    let file = file.expect("a file");
    file.set_len(SIZE).expect("sparse");
    file
}

#[test]
fn each_magic_number_is_recognised_at_its_offset_alone() {
    let scratch = Scratch::new("signature");
    for magic in MAGICS {
        let file = blank(&scratch);
        assert_eq!(identify(&file, SIZE).expect("read"), None);
        file.write_all_at(magic.bytes, magic.offset).expect("written");
        assert_eq!(identify(&file, SIZE).expect("read"), Some(magic.name), "{}", magic.offset);
        let file = blank(&scratch);
        file.write_all_at(magic.bytes, magic.offset + (1 << 20) + 3).expect("written");
        assert_eq!(identify(&file, SIZE).expect("read"), None, "{} elsewhere", magic.name);
    }
}

#[test]
fn signatures_at_the_end_are_recognised() {
    let scratch = Scratch::new("signature-end");
    let md = 0xa92b_4efc_u32.to_le_bytes();
    let zfs = 0x00ba_b10c_u64;
    let cases: [(&str, u64, &[u8]); 6] = [
        ("MD member", SIZE - (16 << 9), &md),
        ("MD member", SIZE - 0x1_0000, &md),
        ("GPT partition table", SIZE - 512, b"EFI PART"),
        ("ZFS", (128 << 10) + 3072, &zfs.to_le_bytes()),
        ("ZFS", SIZE - (256 << 10) + (128 << 10), &zfs.to_be_bytes()),
        ("ZFS", SIZE - (512 << 10) + (255 << 10), &zfs.to_le_bytes()),
    ];
    for (name, offset, bytes) in cases {
        let file = blank(&scratch);
        file.write_all_at(bytes, offset).expect("written");
        assert_eq!(identify(&file, SIZE).expect("read"), Some(name), "{offset}");
    }
}

#[test]
fn a_device_of_any_size_is_read_within_its_end() {
    let scratch = Scratch::new("signature-size");
    let file = blank(&scratch);
    for size in (0..70_000).step_by(509).chain([1, 511, 512, 4_095, 262_144, 524_288]) {
        file.set_len(size).expect("sparse");
        assert_eq!(identify(&file, size).expect("read"), None, "{size}");
    }
}
