//! SMB over TCP: each request is a task of its own, which waits for its place, in order within its
//! connection and in turn among connections, although all of them are of one client.

use std::sync::atomic::Ordering::SeqCst;

use e2e::smb::{Ask, Smb};
use serve::transport::budget::Limits;
use wire::smb::create::FileId;
use wire::smb::header::Command;
use wire::smb::io::ReadRequest;
use wire::smb::status::NtStatus;

use crate::running::Running;
use crate::{CONNECTIONS, POOL, assert_in_turn, assert_stands, offset};

/// READs of each connection.
const READS: usize = 3;

fn send_reads(smb: &mut Smb, file: FileId, connection: usize) {
    for number in 0..READS {
        let offset = offset(connection, number);
        let read = ReadRequest { length: 1, offset, file, minimum: 0 };
        let request = smb.request(Command::READ, 1, &|out| read.put(out));
        smb.send(&[request]).expect("sent");
    }
}

#[test]
fn smb_wakes_nothing_while_the_file_system_stands_still() {
    let mut running = Running::with_pool(Limits::default(), POOL);
    let file = running.alice.create(&Ask::make("f")).expect("an answer").expect("a file");
    let written = running.alice.write(file, 0, &[0; CONNECTIONS * READS], 0).expect("an answer");
    assert_eq!(written, NtStatus::SUCCESS);
    let mut clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut smb = running.again();
            let file = smb.create(&Ask::open("f")).expect("an answer").expect("a file");
            (smb, file)
        })
        .collect();
    running.fs.blocks.store(true, SeqCst);
    let held = running.fs.hold("read");
    for (connection, (smb, file)) in clients.iter_mut().enumerate() {
        send_reads(smb, *file, connection);
    }
    held.wait();
    let waiting = CONNECTIONS * READS - POOL.queue - POOL.threads;
    assert_stands(&running.scene.files.engine.pool, waiting);
    drop(held);
    for (smb, _) in &mut clients {
        for _ in 0..READS {
            let answer = smb.answer().expect("an answer");
            assert_eq!(answer.status(), NtStatus::SUCCESS);
        }
    }
    let begun = running.fs.reads.lock().expect("whole");
    assert_in_turn(&begun, READS, (POOL.threads, POOL.queue + POOL.threads));
}
