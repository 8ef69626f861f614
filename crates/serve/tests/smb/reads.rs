//! READ: less than the MinimumCount of a request is an error and no data (MS-SMB2 §2.2.19,
//! §3.3.5.12), and so is nothing where something was asked for.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering::SeqCst;

use base::limits::SEND_FILE_MIN;
use e2e::smb::{Ask, Offer, Protection, Smb};
use e2e::tcp::HERE;
use serve::smb::{Server, Settings};
use serve::transport::listener::listen;
use vfs::share::Service;
use wire::smb::create::FileId;
use wire::smb::header::Command;
use wire::smb::io::{ReadRequest, read_data};
use wire::smb::status::NtStatus;

use crate::running::Running;
use crate::scene::{Scene, Scratch, Serving};

/// Bytes of the file.
const SIZE: u32 = 3 * SEND_FILE_MIN as u32 + 17;
const BIG: u32 = SEND_FILE_MIN as u32;

/// Length, offset, minimum, and how many bytes come.
const READS: [(u32, u32, u32, Option<u32>); 14] = [
    (10, 0, 0, Some(10)),
    (10, 0, 10, Some(10)),
    (10, 0, 11, None),
    (10, SIZE - 4, 0, Some(4)),
    (10, SIZE - 4, 4, Some(4)),
    (10, SIZE - 4, 5, None),
    (10, SIZE, 0, None),
    (0, 0, 0, Some(0)),
    (0, 0, 1, None),
    (BIG, 0, BIG, Some(BIG)),
    (BIG, 0, BIG + 1, None),
    (2 * BIG, SIZE - BIG - 9, BIG + 9, Some(BIG + 9)),
    (2 * BIG, SIZE - BIG - 9, BIG + 10, None),
    (2 * BIG, SIZE - 9, 10, None),
];

fn content() -> Vec<u8> {
    (0..SIZE).map(|n| (n / 7 % 251) as u8).collect()
}

/// A new file with that content.
fn file(smb: &mut Smb) -> FileId {
    let file = smb.create(&Ask::make("f")).expect("an answer").expect("a file");
    for (n, part) in content().chunks(SEND_FILE_MIN).enumerate() {
        let at = (n * SEND_FILE_MIN) as u64;
        assert_eq!(smb.write(file, at, part, 0).expect("an answer"), NtStatus::SUCCESS);
    }
    file
}

fn assert_reads(smb: &mut Smb, file: FileId, how: &str) {
    let content = content();
    for (length, at, minimum, expected) in READS {
        let asked = ReadRequest { length, offset: at.into(), file, minimum };
        let body = |out: &mut Vec<u8>| asked.put(out);
        let answer = smb.call(Command::READ, length as usize, &body).expect("an answer");
        let said = format!("{how}: {asked:?}");
        let Some(count) = expected else {
            assert_eq!(answer.status(), NtStatus::END_OF_FILE, "{said}");
            continue;
        };
        assert_eq!(answer.status(), NtStatus::SUCCESS, "{said}");
        let data = read_data(&answer.message).expect("data");
        assert!(*data == content[at as usize..(at + count) as usize], "{said}: {}", data.len());
    }
}

#[test]
fn less_than_the_minimum_is_the_end_of_the_file() {
    let mut running = Running::new();
    let file = file(&mut running.alice);
    for blocks in [false, true] {
        running.fs.blocks.store(blocks, SeqCst);
        assert_reads(&mut running.alice, file, if blocks { "pooled" } else { "inline" });
    }
}

#[test]
fn less_than_the_minimum_of_a_mapped_file_is_the_end_of_it() {
    let folder = Scratch::in_memory();
    let scene = Scene::over(Service::Smb, &[("share", folder.share())]);
    let socket = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
    let at = socket.local_addr().expect("an address");
    let settings = Settings { signing_required: false, ..Settings::default() };
    let server = Server::new(settings, [7; 16]);
    let _tasks = Serving(server.start(&scene.files, &scene.runtimes, vec![socket]));
    let alice = Smb::open((HERE, at), &Offer::default(), ("alice", "secret"), "share");
    let mut alice = alice.expect("alice");
    // Only data that is neither signed nor encrypted is sent from where it is mapped.
    alice.protection = Protection::None;
    let file = file(&mut alice);
    assert_reads(&mut alice, file, "mapped");
}
