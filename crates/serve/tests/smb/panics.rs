//! A panic in a handler or a flush fails one request; the session continues.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use e2e::smb::Ask;
use wire::smb::create::{FileId, options};
use wire::smb::io::WRITE_THROUGH;
use wire::smb::status::NtStatus;

use crate::running::Running;

/// The failure of a request that panicked.
const FAULT: NtStatus = NtStatus::INTERNAL_ERROR;

impl Running {
    /// The next call of this name panics.
    fn plant(&mut self, call: &'static str) {
        self.fs.plant(call);
        self.planted += 1;
    }

    fn open(&mut self, path: &str) -> Result<FileId, NtStatus> {
        self.alice.create(&Ask::open(path)).expect("an answer")
    }

    fn make(&mut self, ask: Ask<'_>) -> Result<FileId, NtStatus> {
        self.alice.create(&ask).expect("an answer")
    }

    fn write(&mut self, file: FileId, data: &[u8], flags: u32) -> NtStatus {
        self.alice.write(file, 0, data, flags).expect("an answer")
    }

    fn read(&mut self, file: FileId) -> Result<Vec<u8>, NtStatus> {
        self.alice.read(file, 0, 100).expect("an answer")
    }

    fn close(&mut self, file: FileId) {
        assert_eq!(self.alice.close(file).expect("an answer"), NtStatus::SUCCESS);
    }
}

#[test]
fn a_panic_fails_its_request_and_no_other() {
    let mut running = Running::new();
    let file = running.make(Ask::make("f")).expect("a file");
    assert_eq!(running.write(file, b"before", 0), NtStatus::SUCCESS);
    for blocks in [false, true] {
        running.fs.blocks.store(blocks, SeqCst);
        running.plant("lookup");
        assert_eq!(running.open("f"), Err(FAULT), "pooled: {blocks}");
        let again = running.open("f").expect("the file");
        running.close(again);
        running.plant("mkdir");
        assert_eq!(running.make(Ask::make("d").dir()), Err(FAULT));
        let made = running.make(Ask::make("d").dir().with(options::DELETE_ON_CLOSE));
        running.close(made.expect("a directory"));
        running.plant("read");
        assert_eq!(running.read(file), Err(FAULT));
        assert_eq!(running.read(file), Ok(b"before".to_vec()));
        running.plant("write");
        assert_eq!(running.write(file, b"BEFORE", 0), FAULT);
        assert_eq!(running.read(file), Ok(b"before".to_vec()));
    }
    running.fs.flushes.store(true, SeqCst);
    for call in ["flush", "covered"] {
        running.plant(call);
        assert_eq!(running.write(file, b"before", WRITE_THROUGH), FAULT, "{call}");
        running.plant(call);
        assert_eq!(running.alice.flush(file).expect("an answer"), FAULT, "{call}");
    }
    running.fs.flushes.store(false, SeqCst);
    assert_eq!(running.alice.flush(file).expect("an answer"), NtStatus::SUCCESS);
    running.close(file);
    let engine = &running.scene.files.engine;
    let panics = engine.budgets.panics.load(Relaxed) + engine.flush.counts().panics;
    assert_eq!(panics, running.planted);
    assert!(!running.fs.is_planted());
}
