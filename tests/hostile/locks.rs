//! One address takes all ranges of a file that it can get; another one opens and locks it.

use std::net::{IpAddr, Ipv4Addr};

use e2e::nfs4;
use e2e::smb::scene::{SHARE, Scene, UID};
use e2e::smb::{Ask, Offer, Smb};
use wire::smb::create::FileId;
use wire::smb::header::Command;
use wire::smb::lock::{Element, Request as Lock, lock_flags};
use wire::smb::status::NtStatus;

/// Ranges of one LOCK.
const RANGES: u64 = 64;

fn lock(smb: &mut Smb, file: FileId, from: u64) -> NtStatus {
    let flags = lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY;
    let one = |n| Element { offset: 2 * n, length: 1, flags, reserved: 0 };
    let lock = Lock { lock_sequence: 0, file, locks: (from..from + RANGES).map(one).collect() };
    smb.call(Command::LOCK, 0, &|out| lock.put(out)).expect("an answer").status()
}

/// Takes ranges of the file `f` until there are no more.
fn take_all(smb: &mut Smb, from: &mut u64) {
    loop {
        let file = smb.create(&Ask::open("f")).expect("an answer").expect("an open");
        let first = *from;
        while lock(smb, file, *from) == NtStatus::SUCCESS {
            *from += RANGES;
            assert!(*from < 1 << 20, "no end");
        }
        if *from == first {
            break;
        }
    }
}

#[test]
fn one_address_leaves_ranges_of_a_file_to_others() {
    let scene = Scene::new("locks-part", &[]);
    let from = |n| IpAddr::V4(Ipv4Addr::new(127, 0, 0, n));
    let (mut taken, mut held) = (0, Vec::new());
    for client in 0..3 {
        let mut smb = scene.anna_from(from(2), &Offer::default()).expect("SMB");
        if client == 0 {
            let file = smb.create(&Ask::make("f")).expect("an answer").expect("a file");
            smb.close(file).expect("CLOSE");
        }
        take_all(&mut smb, &mut taken);
        // What it holds is held as long as its connection is.
        held.push(smb);
    }
    assert!((4_000..=6_144).contains(&taken), "{taken} ranges");
    // By another protocol, and by the same one.
    let at = scene.server.nfs();
    let mut nfs = nfs4::Client::connect(at, (UID, 4322), "other", 1).expect("a session");
    nfs.reclaim_complete().expect("RECLAIM_COMPLETE");
    let root = nfs.walk(&format!("/export/{SHARE}")).expect("the share");
    let file = nfs.open(&root, "f", "owner", false).expect("OPEN");
    nfs.lock(&file, "locker", (1 << 30, 100), false).expect("LOCK");
    let mut other = scene.anna_from(from(3), &Offer::default()).expect("SMB");
    let file = other.create(&Ask::open("f")).expect("an answer").expect("an open");
    assert_eq!(lock(&mut other, file, 1 << 20), NtStatus::SUCCESS);
    drop(held);
}
