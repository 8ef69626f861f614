//! A Linux client that reads by READ_PLUS (RFC 7862 §15.10) sees the bytes that are there, whatever
//! the holes. Debian's kernel for User Mode Linux sends none: PLIMSOLL_UML_KERNEL names one that
//! does, for instance what `tests/uml/build-kernel` makes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use e2e::api::{self, Api};
use e2e::netns::HOST;
use e2e::process::succeed;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::skip;
use e2e::uml::{self, Guest};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A file: its size, and where data is, as offset and length.
type Shape = (&'static str, u64, &'static [(u64, u64)]);

/// Reads of the client are 1 MiB at most; holes end at the file system's blocks.
const SHAPES: [Shape; 13] = [
    ("empty", 0, &[]),
    ("no-hole", 3 * MIB + 5, &[(0, 3 * MIB + 5)]),
    ("all-hole", 8 * MIB, &[]),
    ("tiny-hole", 1, &[]),
    ("hole-of-odd-size", 5 * MIB + 777, &[]),
    ("hole-first", 4 * MIB, &[(4 * MIB - 64 * KIB, 64 * KIB)]),
    ("hole-first-in-one-read", 256 * KIB, &[(128 * KIB, 128 * KIB)]),
    ("hole-last", 4 * MIB, &[(0, 64 * KIB)]),
    ("eof-in-a-hole", 3 * MIB + 777, &[(0, 4 * KIB), (2 * MIB, MIB)]),
    ("eof-in-data", 2 * MIB + 99, &[(2 * MIB, 99)]),
    ("data-over-a-read's-end", 3 * MIB, &[(MIB - 4 * KIB, 8 * KIB), (2 * MIB - 3, 6)]),
    ("hole-over-a-read's-end", 3 * MIB, &[(0, MIB - 4 * KIB), (MIB + 4 * KIB, MIB)]),
    ("one-byte-far-out", 300 * MIB, &[(299 * MIB + 12345, 1)]),
];
/// Pieces of a file with many, each a block of data and a hole of three; then some with a hole of
/// one.
const PIECES: u64 = 300;
/// A file system's block, as a rule.
const BLOCK: u64 = 4 * KIB;

fn make(dir: &Path, name: &str, size: u64, data: &[(u64, u64)]) {
    let file = File::create(dir.join(name)).expect("a file");
    file.set_len(size).expect("its size");
    for (offset, length) in data {
        // Never zero, and different from place to place.
        let bytes: Vec<u8> = (0..*length).map(|n| ((offset + n) * 31 % 251) as u8 + 1).collect();
        file.write_all_at(&bytes, *offset).expect("data");
    }
    file.sync_all().expect("on disk");
}

fn make_all(dir: &Path) -> Vec<String> {
    for (name, size, data) in SHAPES {
        make(dir, name, size, data);
    }
    let many: Vec<_> = (0..PIECES).map(|n| (n * 4 * BLOCK, BLOCK)).collect();
    make(dir, "many", PIECES * 4 * BLOCK, &many);
    let dense: Vec<_> = (0..PIECES).map(|n| ((2 * n + 1) * BLOCK, BLOCK)).collect();
    make(dir, "many-from-a-hole", (2 * PIECES + 1) * BLOCK, &dense);
    let names = SHAPES.iter().map(|(name, ..)| *name).chain(["many", "many-from-a-hole"]);
    names.map(str::to_owned).collect()
}

fn sums(dir: &Path, names: &[String]) -> String {
    let said = succeed(Command::new("sha256sum").args(names).current_dir(dir));
    String::from_utf8(said).expect("sums")
}

/// How many of this operation the client has had answered.
fn count(guest: &mut Guest, op: &str) -> u64 {
    let awk = format!("awk '/^\t *{op}:/ {{ print $3 }}' /proc/self/mountstats");
    guest.run(&awk).trim().parse().expect("a count")
}

#[test]
fn a_linux_client_reads_files_with_holes_by_read_plus() {
    if let Some(why) = uml::unavailable() {
        skip!("kernel-6.12", "{why}");
    }
    if uml::is_debian() {
        skip!(
            "kernel-6.12",
            "PLIMSOLL_UML_KERNEL names no kernel; tests/uml/build-kernel makes one"
        );
    }
    let _turn = uml::turn();
    let namespace = match uml::namespace(1) {
        Ok(namespace) => namespace,
        Err(why) => skip!("kernel-6.12", "{why}"),
    };
    let scratch = Scratch::new("kernel-read-plus");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let names = make_all(&dir);
    let mut options = Options::new(&dir, &state);
    (options.address, options.namespace) = (HOST, Some(&namespace));
    let mut server = Server::start(&options);
    let (api, start) = (Api::new(&state), api::now());

    let mut guest = Guest::boot(&namespace, 0, scratch.path());
    guest.mount("nfs", server.nfs_port(), &server.export(), "vers=4.2");
    let here = sums(&dir, &names);
    let list = names.join(" ").replace('\'', "\\'");
    assert_eq!(guest.run(&format!("cd /mnt/nfs; sha256sum {list}")), here, "in order");
    // Past the client's memory, in pieces that fit nothing.
    for how in ["bs=1000", "bs=70000", "bs=3M", "bs=64k iflag=direct"] {
        let script = format!(
            "cd /mnt/nfs; for f in {list}; do
                 case $f in one-byte*) continue;; esac
                 echo 1 >/proc/sys/vm/drop_caches
                 printf '%s  %s\\n' $(dd if=\"$f\" {how} 2>/dev/null | sha256sum | cut -d' ' -f1) \"$f\"
             done"
        );
        let there = guest.run(&script);
        let wanted: String =
            here.lines().filter(|l| !l.contains("one-byte")).map(|l| format!("{l}\n")).collect();
        assert_eq!(there, wanted, "{how}");
    }
    let sent = count(&mut guest, "READ_PLUS");
    assert!(sent > 0, "the client never sent READ_PLUS\n{}", guest.said());
    assert_eq!(count(&mut guest, "READ"), 0, "it has not fallen back");

    let end = api::now() + 1;
    api.wait_for_second(end);
    assert_eq!(api.count("nfs4.ops[op=read_plus]", (start, end + 1)), sent, "as the server counts");
    assert!(server.stop().success(), "SIGTERM ends it cleanly");
}
