//! SMB over TCP.

use std::sync::atomic::Ordering::SeqCst;

use e2e::smb::{Ask, framed};
use probe::phases::Phase;
use wire::smb::create::FileId;
use wire::smb::header::Command;
use wire::smb::io::{ReadRequest, WRITE_THROUGH};
use wire::smb::status::NtStatus;

use crate::running::Running;
use crate::{Bench, stop_clock};

/// Bytes of the file; more than sockets take for a client that reads nothing.
const SIZE: u32 = 4 << 20;
/// Bytes of one request.
const PIECE: u32 = 1 << 20;

impl Running {
    fn read(&mut self, file: FileId) {
        let read = self.alice.read(file, 0, 4096).expect("an answer");
        assert_eq!(read.expect("data").len(), 4096);
    }

    fn write(&mut self, file: FileId) {
        let written = self.alice.write(file, 0, b"on disk", WRITE_THROUGH).expect("an answer");
        assert_eq!(written, NtStatus::SUCCESS);
    }

    /// READs, each in a frame of its own, and what else is asked, in one send.
    fn send_reads(&mut self, file: FileId, offsets: &[u32], length: u32, more: &[Command]) {
        let mut bytes = Vec::new();
        for offset in offsets {
            let asked = ReadRequest { length, offset: u64::from(*offset), file, minimum: 0 };
            let put = |out: &mut Vec<u8>| asked.put(out);
            let read = self.alice.request(Command::READ, length as usize, &put);
            bytes.extend(framed(&self.alice.protect(&[read])));
        }
        for command in more {
            let put = |out: &mut Vec<u8>| out.extend([4, 0, 0, 0]);
            let request = self.alice.request(*command, 0, &put);
            bytes.extend(framed(&self.alice.protect(&[request])));
        }
        self.alice.send_raw(&bytes).expect("sent");
    }
}

#[test]
fn smb_has_a_delay_where_it_was_planted() {
    if !stop_clock("smb") {
        return;
    }
    let mut running = Running::new();
    let buffer = socket2::SockRef::from(running.alice.stream()).set_recv_buffer_size(16 << 10);
    buffer.expect("a small buffer");
    let file = running.alice.create(&Ask::make("f")).expect("an answer").expect("a file");
    for at in (0..SIZE).step_by(PIECE as usize) {
        let data = vec![7; PIECE as usize];
        let written = running.alice.write(file, u64::from(at), &data, 0).expect("an answer");
        assert_eq!(written, NtStatus::SUCCESS);
    }
    let bench = Bench::of(&running.fs, &running.scene.files.engine, &running.scene.runtimes);

    bench.delay_inline("read");
    running.read(file);
    bench.assert_in(Phase::Inline, "read");

    // What comes with it is answered behind it.
    bench.delay_inline("read");
    running.send_reads(file, &[0], 100, &[Command::ECHO]);
    (0..2).for_each(|_| drop(running.alice.receive().expect("an answer")));
    bench.assert_in(Phase::Inline, "read");
    bench.assert_in(Phase::Queue, "echo");

    bench.block(true);
    bench.delay_elsewhere("read");
    running.read(file);
    bench.assert_in(Phase::Pool, "read");
    bench.delay_pool(|| running.read(file));
    bench.assert_in(Phase::PoolWait, "read");

    bench.fs.flushes.store(true, SeqCst);
    for blocks in [true, false] {
        bench.block(blocks);
        bench.delay_elsewhere("flush");
        running.write(file);
        bench.assert_in(Phase::Flush, "write");
    }

    let count = bench.count("read");
    running.send_reads(file, &[0], PIECE, &[]);
    running.alice.stream().peek(&mut [0]).expect("the begin of the answer");
    Bench::pass(&bench.runtimes);
    running.alice.receive().expect("an answer");
    bench.assert_sent("read", (count, 1));
}
