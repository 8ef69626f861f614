//! The fields are where the bodies have them.

use super::*;
use crate::smb::create::FileId;
use crate::smb::{dir, info, io, ioctl};

const FILE: FileId = FileId { persistent: 1, volatile: 1 };

fn payload(command: Command, body: impl FnOnce(&mut Vec<u8>)) -> Payload {
    let mut message = vec![0; HEADER];
    body(&mut message);
    Payload::of(command, &message)
}

#[test]
fn each_command_has_its_payload_and_charge() {
    let read = io::ReadRequest { length: 70_000, offset: 0, file: FILE, minimum: 0 };
    let read = payload(Command::READ, |out| read.put(out));
    assert_eq!((read, read.charge()), (Payload { sent: 0, wanted: 70_000 }, 2));
    let write = io::WriteRequest { offset: 0, file: FILE, flags: 0, data: &[1; 100] };
    let write = payload(Command::WRITE, |out| write.put(out));
    assert_eq!((write, write.charge()), (Payload { sent: 100, wanted: 0 }, 1));
    let list =
        dir::Request { level: 37, flags: 0, file: FILE, pattern: b"*\0", output_max: 65_537 };
    let list = payload(Command::QUERY_DIRECTORY, |out| list.put(out));
    assert_eq!((list, list.charge()), (Payload { sent: 2, wanted: 65_537 }, 2));
    let control = ioctl::Request { code: 1, file: FILE, output_max: 9, flags: 1, input: &[1; 28] };
    let control = payload(Command::IOCTL, |out| control.put(out));
    assert_eq!(control, Payload { sent: 28, wanted: 9 });
    let (info_type, class, additional, flags) = (1, 18, 0, 0);
    let output_max = 1_000;
    let query = info::QueryRequest {
        info_type,
        class,
        output_max,
        additional,
        flags,
        file: FILE,
        input: &[2; 3],
    };
    let query = payload(Command::QUERY_INFO, |out| query.put(out));
    assert_eq!(query, Payload { sent: 3, wanted: 1_000 });
    let set = info::SetRequest { info_type, class, additional, file: FILE, data: &[3; 5] };
    let set = payload(Command::SET_INFO, |out| set.put(out));
    assert_eq!(set, Payload { sent: 5, wanted: 0 });
}

#[test]
fn nothing_is_one_credit_and_the_most_is_no_more_than_fits() {
    assert_eq!(Payload::of(Command::READ, &[]).charge(), 1);
    assert_eq!(Payload { sent: 0, wanted: u32::MAX.into() }.charge(), 65_536);
    assert_eq!(Payload { sent: 65_536, wanted: 0 }.charge(), 1);
}
