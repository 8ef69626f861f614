//! SMB: requests of one connection are done at once, and answered in any order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use e2e::smb::{Ask, Offer, framed};
use e2e::tcp::HERE;
use serve::pool::Pool;
use serve::transport::Budgets;
use serve::transport::budget::Limits;
use wire::smb::create::FileId;
use wire::smb::header::Command;
use wire::smb::io::{ReadRequest, WriteRequest, read_data};
use wire::smb::status::NtStatus;

use crate::running::Running;
use crate::{BLOCK, BLOCKS, Op, Outcome, POOL, Serves, Session};

/// The service, with its file.
pub struct Smb(Running);

impl Smb {
    /// Starts it.
    pub fn start() -> Self {
        let mut running = Running::with_pool(Limits::default(), POOL);
        let file = running.alice.create(&Ask::make("f")).expect("an answer").expect("a file");
        let zeros = vec![0; BLOCKS as usize * BLOCK];
        let written = running.alice.write(file, 0, &zeros, 0).expect("an answer");
        assert_eq!(written, NtStatus::SUCCESS);
        assert_eq!(running.alice.close(file).expect("an answer"), NtStatus::SUCCESS);
        Self(running)
    }
}

impl Serves for Smb {
    fn at(&self) -> SocketAddr {
        self.0.at
    }

    fn open(&self, at: SocketAddr) -> io::Result<Box<dyn Session>> {
        let who = ("alice", "secret");
        let mut smb = e2e::smb::Smb::open((HERE, at), &Offer::default(), who, "share")?;
        let opened = smb.create(&Ask::open("f"))?;
        let file = opened.map_err(|status| io::Error::other(format!("{status:?}")))?;
        Ok(Box::new(Requests { smb, file, sent: Vec::new() }))
    }

    fn budgets(&self) -> Arc<Budgets> {
        Arc::clone(&self.0.scene.files.engine.budgets)
    }

    fn pool(&self) -> Arc<Pool> {
        Arc::clone(&self.0.scene.files.engine.pool)
    }

    fn kept(&self) -> i64 {
        // Alice's.
        1
    }

    fn is_held(&self) -> bool {
        self.0.server.files_open() > 0
    }

    fn set_blocks(&self, blocks: bool) {
        self.0.fs.blocks.store(blocks, SeqCst);
    }

    fn content(&self) -> Option<Vec<u8>> {
        let mut smb = self.0.again();
        let file = smb.create(&Ask::open("f")).expect("an answer");
        let count = BLOCKS * BLOCK as u32;
        Some(smb.read(file.expect("a file"), 0, count).expect("an answer").expect("data"))
    }
}

struct Requests {
    smb: e2e::smb::Smb,
    file: FileId,
    /// Those that were sent last, with their numbers.
    sent: Vec<(u64, Op)>,
}

impl Session for Requests {
    fn send(&mut self, ops: &[Op]) -> io::Result<()> {
        self.sent.clear();
        let (file, mut bytes) = (self.file, Vec::new());
        for op in ops {
            self.sent.push((self.smb.next_id, *op));
            let request = match *op {
                Op::Read(block) => {
                    let (length, offset) = (BLOCK as u32, u64::from(block) * BLOCK as u64);
                    let read = ReadRequest { length, offset, file, minimum: 0 };
                    self.smb.request(Command::READ, BLOCK, &|out| read.put(out))
                }
                Op::Write(block, value) => {
                    let (offset, data) = (u64::from(block) * BLOCK as u64, [value; BLOCK]);
                    let write = WriteRequest { offset, file, flags: 0, data: &data };
                    self.smb.request(Command::WRITE, BLOCK, &|out| write.put(out))
                }
            };
            bytes.extend(framed(&self.smb.protect(&[request])));
        }
        self.smb.send_raw(&bytes)
    }

    fn answer(&mut self) -> io::Result<(usize, Outcome)> {
        let answer = self.smb.answer()?;
        assert_eq!(answer.status(), NtStatus::SUCCESS);
        let id = answer.header.message_id;
        let number = self.sent.iter().position(|(sent, _)| *sent == id).expect("a request");
        let data = match self.sent[number].1 {
            Op::Read(_) => read_data(&answer.message).map_err(io::Error::other)?.to_vec(),
            Op::Write(..) => Vec::new(),
        };
        Ok((number, Some(data)))
    }
}
