//! QEMU's tools on units: an image is converted into one and out again, and is the same.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use e2e::iscsi::Access;
use e2e::process::{DEADLINE, run, succeed};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{has, skip};

/// Bytes of the image and of the unit.
const SIZE: u64 = 32 << 20;
const MIB: u64 = 1 << 20;

/// A line of `qemu-img`.
fn qemu(words: &[&str]) -> Command {
    let mut command = Command::new("qemu-img");
    command.args(words);
    command
}

/// An image with data, holes, and zeros that are written.
fn image(path: &Path) {
    let file = File::create(path).expect("an image");
    file.set_len(SIZE).expect("its size");
    let block = |seed: u64| -> Vec<u8> {
        let word = |n: u64| (n ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        (0..MIB / 8).flat_map(word).collect()
    };
    for at in [0, 1, 7, 20, SIZE / MIB - 1] {
        file.write_all_at(&block(at), at * MIB).expect("data");
    }
    file.write_all_at(&vec![0; MIB as usize], 10 * MIB).expect("zeros");
    file.write_all_at(b"a few bytes", 15 * MIB + 12_345).expect("data");
}

#[test]
fn an_image_goes_into_a_unit_and_comes_out_the_same() {
    if !has("qemu-img") {
        skip!("qemu-img", "not installed: qemu-img");
    }
    let scratch = Scratch::new("iscsi-tools");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let mut options = Options::new(&dir, &state);
    options.args = ["--lun", "disk=32M"].map(Into::into).to_vec();
    let mut server = Server::start(&options);
    let unit = Access::of(&state).url(server.at(3260), 0);
    let info = run(&mut qemu(&["info", "-f", "raw", &unit]), DEADLINE);
    let said = String::from_utf8_lossy(&info.stderr).into_owned();
    if said.contains("Unknown protocol") || said.contains("failed to open module") {
        skip!("qemu-img", "not installed: qemu-block-extra");
    }
    assert!(info.status.success(), "{said}");
    let size = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(size.contains(&format!("({SIZE} bytes)")), "{size}");

    let [before, raw, packed] = ["before.img", "after.img", "after.qcow2"]
        .map(|name| scratch.path().join(name).display().to_string());
    image(Path::new(&before));
    // What is in it before does not shine through the holes of the image.
    let noise = vec![0xa5; SIZE as usize];
    let other = scratch.path().join("noise.img");
    fs::write(&other, noise).expect("an image");
    let into = |from: &str| qemu(&["convert", "-n", "-f", "raw", "-O", "raw", from, &unit]);
    succeed(&mut into(&other.display().to_string()));
    succeed(&mut into(&before));
    succeed(&mut qemu(&["compare", "-f", "raw", "-F", "raw", &before, &unit]));
    succeed(&mut qemu(&["convert", "-f", "raw", "-O", "raw", &unit, &raw]));
    succeed(&mut qemu(&["convert", "-f", "raw", "-O", "qcow2", "-W", &unit, &packed]));
    assert!(fs::read(&raw).expect("an image") == fs::read(&before).expect("an image"));
    succeed(&mut qemu(&["compare", "-f", "raw", "-F", "qcow2", &unit, &packed]));
    // And one that differs is not the same.
    let file = File::options().write(true).open(&raw).expect("the image");
    file.write_all_at(b"x", 20 * MIB).expect("a byte");
    let differs = run(&mut qemu(&["compare", "-f", "raw", "-F", "raw", &raw, &unit]), DEADLINE);
    assert_eq!(differs.status.code(), Some(1), "{differs:?}");
    assert!(server.stop().success());
}
