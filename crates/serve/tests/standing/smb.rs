//! SMB over TCP: each request is a task of its own, which waits for its place.

use std::sync::atomic::Ordering::SeqCst;

use e2e::smb::{Ask, Smb};
use serve::transport::budget::Limits;
use wire::smb::create::FileId;
use wire::smb::header::Command;
use wire::smb::io::ReadRequest;
use wire::smb::status::NtStatus;

use crate::running::Running;
use crate::{CONNECTIONS, POOL, assert_stands};

fn send_read(smb: &mut Smb, file: FileId) {
    let read = ReadRequest { length: 1, offset: 0, file, minimum: 0 };
    let request = smb.request(Command::READ, 1, &|out| read.put(out));
    smb.send(&[request]).expect("sent");
}

#[test]
fn smb_wakes_nothing_while_the_file_system_stands_still() {
    let mut running = Running::with_pool(Limits::default(), POOL);
    let file = running.alice.create(&Ask::make("f")).expect("an answer").expect("a file");
    let written = running.alice.write(file, 0, b"0", 0).expect("an answer");
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
    for (smb, file) in &mut clients {
        send_read(smb, *file);
    }
    held.wait();
    assert_stands(&running.scene.files.engine.pool, CONNECTIONS - POOL.queue - POOL.threads);
    drop(held);
    for (smb, _) in &mut clients {
        let answer = loop {
            let answer = smb.receive().expect("an answer").remove(0);
            if answer.status() != NtStatus::PENDING {
                break answer;
            }
        };
        assert_eq!(answer.status(), NtStatus::SUCCESS);
    }
}
