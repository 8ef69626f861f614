//! The header of a request is decoded once, whichever way the request is carried out.

use std::sync::atomic::Ordering::SeqCst;

use e2e::smb::{Ask, Protection, Smb};
use wire::smb::create::{Disposition, FileId};
use wire::smb::header::{Command, requests_decoded};
use wire::smb::session::Empty;
use wire::smb::status::NtStatus;

use crate::running::Running;

/// Requests of [`Smb::send`] at once.
const COMPOUND: usize = 3;

fn echoes(smb: &mut Smb) -> NtStatus {
    let empty = Empty { reserved: 0 };
    let echo = |_| smb.request(Command::ECHO, 0, &|out| empty.put_body(out));
    let requests: Vec<_> = (0..COMPOUND).map(echo).collect();
    smb.send(&requests).expect("sent");
    let answers = smb.receive().expect("an answer");
    assert_eq!(answers.len(), COMPOUND);
    answers[0].status()
}

/// A case: its name, the headers that it decodes, and what does that.
type Case = (&'static str, usize, fn(&mut Smb, FileId) -> NtStatus);

const CASES: [Case; 5] = [
    ("ECHO", 1, |smb, _| smb.echo().expect("an answer")),
    ("WRITE", 1, |smb, file| smb.write(file, 0, b"data", 0).expect("an answer")),
    ("READ", 1, |smb, file| {
        let read = smb.read(file, 0, 4).expect("an answer");
        read.map_or_else(|status| status, |_| NtStatus::SUCCESS)
    }),
    ("FLUSH", 1, |smb, file| smb.flush(file).expect("an answer")),
    ("a compound", COMPOUND, |smb, _| echoes(smb)),
];

#[test]
fn the_header_of_a_request_is_decoded_once() {
    let running = Running::new();
    let mut smb = running.again();
    let ask = Ask { disposition: Disposition::OpenIf, ..Ask::open("f") };
    let before = requests_decoded();
    let file = smb.create(&ask).expect("an answer").expect("a file");
    assert_eq!(requests_decoded() - before, 1, "CREATE");
    for blocks in [false, true] {
        // On the pool, if it must not wait.
        running.fs.blocks.store(blocks, SeqCst);
        for protection in [Protection::Signed, Protection::Sealed] {
            smb.protection = protection;
            for (name, requests, run) in CASES {
                let before = requests_decoded();
                assert_eq!(run(&mut smb, file), NtStatus::SUCCESS, "{name}, {protection:?}");
                let decoded = requests_decoded() - before;
                assert_eq!(decoded, requests as u64, "{name}, {protection:?}, blocks: {blocks}");
            }
        }
    }
}
