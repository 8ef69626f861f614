//! What a client holds between requests has a limit, and is not in the way of others.

use e2e::api::wait_for;
use e2e::patience;
use e2e::smb::{Ask, Smb};
use vfs::fs::FileSystem;
use wire::smb::create::{FileId, access};
use wire::smb::rpc::{NDR, SRVSVC};
use wire::smb::status::NtStatus;

use crate::running::Running;
use crate::searches::{Maker, SINGLE, Search, open_dir};

const MIB: usize = 1 << 20;
/// Bytes of the service, on two cores.
const BYTES: usize = 24 * MIB;
/// Names of some 250 bytes in a directory: one batch takes as much as a third of a client's part.
const NAMES: usize = 600;

fn long_names(running: &Running) {
    let (maker, root) = (Maker(running.fs.clone()), running.fs.root());
    let dir = maker.dir(&root, "long");
    (0..NAMES).for_each(|n| maker.file(&dir, &format!("{n:03}{}", "x".repeat(240))));
    maker.dir(&root, "other");
    maker.file(&root, "file");
}

/// Lists, reads and sends an ECHO.
fn is_served(smb: &mut Smb) {
    let other = open_dir(smb, "other");
    assert_eq!(Search::of(other).all(smb).0, [".", ".."]);
    let ask = Ask { access: access::READ, ..Ask::open("file") };
    let file = smb.create(&ask).expect("an answer").expect("a file");
    assert_eq!(smb.read(file, 0, 9).expect("an answer"), Err(NtStatus::END_OF_FILE));
    assert_eq!(smb.echo().expect("an answer"), NtStatus::SUCCESS);
}

#[test]
fn unfinished_listings_make_nothing_wait_and_are_continued() {
    let running = Running::with_bytes(BYTES);
    long_names(&running);
    let mut clients: Vec<_> = (0..4).map(|_| running.again()).collect();
    let mut begun = Vec::new();
    for (number, smb) in clients.iter_mut().enumerate() {
        for _ in 0..50 {
            let file = open_dir(smb, "long");
            let one = Search { flags: SINGLE, ..Search::of(file) };
            let names: Vec<_> = (0..3).flat_map(|_| one.next(smb).expect("an entry")).collect();
            assert_eq!(names.len(), 3);
            begun.push((number, file, names));
        }
    }
    // The same client from another address, and this client once more.
    is_served(&mut running.from(9));
    is_served(&mut running.again());
    let budgets = &running.scene.files.engine.budgets;
    assert!(budgets.bytes() < BYTES as i64 / 2, "{} bytes", budgets.bytes());
    // Each continues where it was, whether its entries were dropped or not.
    for (number, file, mut names) in begun.into_iter().step_by(23) {
        names.extend(Search::of(file).all(&mut clients[number]).0);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), NAMES + 2);
    }
    drop(clients);
    let none = || (budgets.bytes() == 0).then_some(());
    wait_for("an empty account", patience(60), none);
}

/// A PDU that binds as many contexts as one may.
fn bind() -> Vec<u8> {
    let mut pdu = vec![5, 0, 11, 3, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    pdu.extend([4_280u16.to_le_bytes(), 4_280u16.to_le_bytes()].concat());
    pdu.extend([0, 0, 0, 0, 16, 0, 0, 0]);
    for number in 0..16u16 {
        pdu.extend(number.to_le_bytes());
        pdu.extend([1, 0]);
        pdu.extend(SRVSVC);
        pdu.extend(NDR);
    }
    let length = (pdu.len() as u16).to_le_bytes();
    pdu[8..10].copy_from_slice(&length);
    pdu
}

fn write(smb: &mut Smb, pipe: FileId, data: &[u8]) -> NtStatus {
    smb.write(pipe, 0, data, 0).expect("an answer")
}

#[test]
fn responses_of_pipes_are_in_the_account() {
    let running = Running::with_bytes(BYTES);
    long_names(&running);
    let mut smb = running.again();
    assert!(smb.connect_tree("IPC$").expect("an answer").is_ok());
    let (bind, mut written, mut pipes) = (bind(), 0, Vec::new());
    let refused = loop {
        let pipe = smb.create(&Ask::open("srvsvc")).expect("an answer").expect("a pipe");
        pipes.push(pipe);
        // A pipe takes so much that is not read; all together take the client's part.
        let before = written;
        let status = loop {
            match write(&mut smb, pipe, &bind) {
                NtStatus::SUCCESS => written += 1,
                status => break status,
            }
        };
        if written == before {
            break status;
        }
        assert!(pipes.len() < 100, "no end");
    };
    assert_eq!(refused, NtStatus::INSUFFICIENT_RESOURCES);
    let budgets = &running.scene.files.engine.budgets;
    // One response has more than that; a core reports what it holds now and then.
    let held = wait_for("the bytes of pipes", patience(60), || {
        let bytes = budgets.bytes();
        (bytes >= 300 * i64::from(written)).then_some(bytes)
    });
    println!("{} pipes, {written} responses, {held} bytes", pipes.len());
    assert!(held <= BYTES as i64 / 8, "{held} bytes");
    is_served(&mut running.from(9));
    // What is read makes room.
    let read = smb.read(pipes[0], 0, 4_096).expect("an answer").expect("a response");
    assert_eq!(read[..3], [5, 0, 12]);
    assert_eq!(write(&mut smb, pipes[0], &bind), NtStatus::SUCCESS);
    drop(smb);
    wait_for("an empty account", patience(60), || (budgets.bytes() == 0).then_some(()));
}
