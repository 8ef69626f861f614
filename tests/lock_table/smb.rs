//! A client of SMB that sees what it is notified of between answers.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::time::Duration;

use e2e::smb::scene::Scene;
use e2e::smb::{Answer, Ask, Body, Offer, SHARED, Smb, caching, new_name, set_info};
use e2e::tcp::HERE;
use wire::smb::class::file_class;
use wire::smb::create::{CloseRequest, FileId, access};
use wire::smb::header::Command;
use wire::smb::io::{ReadRequest, WriteRequest};
use wire::smb::lease::{Ack, LeaseAck, LeaseBreak, Notice, lease_flags};
use wire::smb::lock::{Element, Request as Lock, lock_flags};
use wire::smb::session::Empty;
use wire::smb::status::NtStatus;

use crate::lock_table::second::Operation;
use crate::lock_table::{Outcome, Progress, RENAMED, refused};

/// Longest wait for an answer.
const ANSWER: Duration = e2e::patience(60);

/// A connection.
pub(super) struct SmbClient {
    smb: Smb,
    notices: VecDeque<LeaseBreak>,
    /// Lease keys so far.
    keys: u32,
}

/// The name of a status.
fn name_of(status: NtStatus) -> String {
    let known = NtStatus::ALL.iter().find(|(number, _)| *number == status.0);
    known.map_or_else(|| format!("{:#x}", status.0), |(_, name)| (*name).to_owned())
}

fn done(status: NtStatus) -> Outcome {
    if status == NtStatus::SUCCESS { Ok(()) } else { Err(refused(name_of(status))) }
}

impl SmbClient {
    /// A client with this number.
    pub fn new(scene: &Scene, number: u8) -> Self {
        let offer = Offer { client: [number; 16], ..Offer::default() };
        let smb = scene.anna_from(HERE, &offer).expect("SMB");
        Self { smb, notices: VecDeque::new(), keys: 0 }
    }

    /// Takes what is a notification out of what has come.
    fn sort(&mut self, answers: Vec<Answer>) -> Vec<Answer> {
        let is_notice = |answer: &Answer| {
            answer.header.command == Command::OPLOCK_BREAK && answer.header.message_id == u64::MAX
        };
        let (notices, answers) = answers.into_iter().partition(is_notice);
        let notices: Vec<Answer> = notices;
        for notice in notices {
            match Notice::decode(&notice.message).expect("a break") {
                Notice::Lease(broken) => self.notices.push_back(broken),
                Notice::Other(other) => panic!("{other:?}"),
            }
        }
        answers
    }

    /// Sends a request and takes its answer; that it takes longer is noted.
    fn call(&mut self, command: Command, body: Body<'_>, progress: &Progress) -> Answer {
        let request = self.smb.request(command, 0, body);
        self.smb.send(&[request]).expect("sent");
        loop {
            let answers = self.smb.receive().expect("an answer");
            for answer in self.sort(answers) {
                match answer.status() {
                    NtStatus::PENDING => progress.delayed(),
                    _ if answer.header.command == command => return answer,
                    _ => {}
                }
            }
        }
    }

    fn call_at_once(&mut self, command: Command, body: Body<'_>) -> Answer {
        self.call(command, body, &Progress::default())
    }

    /// What it is notified of, if that comes within this time.
    pub fn next_break(&mut self, within: Duration) -> Option<LeaseBreak> {
        if self.notices.is_empty() {
            let wait = |smb: &Smb, time| smb.stream().set_read_timeout(Some(time)).expect("a time");
            wait(&self.smb, within);
            let came = self.smb.receive();
            wait(&self.smb, ANSWER);
            match came {
                // The rest are answers to acknowledgements.
                Ok(answers) => drop(self.sort(answers)),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(e) => panic!("{e}"),
            }
        }
        self.notices.pop_front()
    }

    /// What it has been notified of already.
    pub fn noticed(&mut self) -> Option<LeaseBreak> {
        self.notices.pop_front()
    }

    /// Whatever was sent before this, it has come after this: a notification follows the answers
    /// of the batch in which it was noticed.
    pub fn catch_up(&mut self) {
        for _ in 0..2 {
            self.call_at_once(Command::ECHO, &|out| Empty { reserved: 0 }.put_body(out));
        }
    }

    /// Acknowledges a break, if that must be.
    pub fn acknowledge(&mut self, broken: &LeaseBreak) {
        if broken.flags & lease_flags::ACK_REQUIRED != 0 {
            let (key, state) = (broken.key, broken.to);
            let ack = Ack::Lease(LeaseAck { reserved: 0, flags: 0, key, state, duration: 0 });
            let request = self.smb.request(Command::OPLOCK_BREAK, 0, &|out| ack.put(out));
            self.smb.send(&[request]).expect("sent");
        }
    }

    fn create(&mut self, ask: &Ask<'_>, progress: &Progress) -> Outcome<FileId> {
        let answer = self.call(Command::CREATE, &|out| ask.put(out), progress);
        done(answer.status())?;
        Ok(caching::opened(&answer).expect("an open").0)
    }

    pub fn open(&mut self, ask: &Ask<'_>) -> FileId {
        self.create(ask, &Progress::default()).expect("nothing is in the way")
    }

    /// Opens a file with a lease of this state, which must be granted.
    pub fn open_with_lease(&mut self, name: &str, state: u32) -> FileId {
        self.keys += 1;
        let mut key = [0; 16];
        key[..4].copy_from_slice(&self.keys.to_be_bytes());
        let body = caching::body(&Ask::open(name), &[caching::lease(key, state)]);
        let answer = self.call_at_once(Command::CREATE, &body);
        let (file, granted) = caching::opened(&answer).expect("an open");
        assert_eq!(granted, state, "nothing is in the way");
        file
    }

    pub fn close(&mut self, file: FileId) {
        let close = CloseRequest { flags: 0, reserved: 0, file };
        self.call_at_once(Command::CLOSE, &|out| close.put_body(out));
    }

    /// LOCK of all bytes, exclusive, at once or not at all.
    pub fn lock(&mut self, file: FileId, progress: &Progress) -> Outcome {
        let flags = lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY;
        let locks = vec![Element { offset: 0, length: 1 << 62, flags, reserved: 0 }];
        let lock = Lock { lock_sequence: 0, file, locks };
        done(self.call(Command::LOCK, &|out| lock.put(out), progress).status())
    }

    fn set(&mut self, file: FileId, class: u8, content: &[u8], progress: &Progress) -> Outcome {
        let body = set_info(file, class, content);
        done(self.call(Command::SET_INFO, &body, progress).status())
    }

    /// Marks the name of an open for deletion.
    pub fn mark(&mut self, file: FileId) {
        self.set(file, file_class::DISPOSITION, &[1], &Progress::default()).expect("marked");
    }

    pub fn perform(&mut self, operation: Operation, name: &str, progress: &Progress) -> Outcome {
        let rights = match operation {
            Operation::Read | Operation::Lock => access::READ_DATA,
            Operation::Write => access::WRITE_DATA,
            Operation::Open => access::READ_DATA | access::WRITE_DATA,
            Operation::Rename | Operation::Remove => access::DELETE | access::READ_ATTRIBUTES,
        };
        let ask = Ask { access: rights, share: SHARED, ..Ask::open(name) };
        let file = self.create(&ask, progress)?;
        let outcome = match operation {
            Operation::Open => Ok(()),
            Operation::Read => {
                let read = ReadRequest { length: 9, offset: 0, file, minimum: 0 };
                done(self.call(Command::READ, &|out| read.put(out), progress).status())
            }
            Operation::Write => {
                let write = WriteRequest { offset: 0, file, flags: 0, data: b"new" };
                done(self.call(Command::WRITE, &|out| write.put(out), progress).status())
            }
            Operation::Lock => self.lock(file, progress),
            Operation::Rename => {
                self.set(file, file_class::RENAME, &new_name(RENAMED, true), progress)
            }
            Operation::Remove => self.set(file, file_class::DISPOSITION, &[1], progress),
        };
        self.close(file);
        outcome
    }
}
