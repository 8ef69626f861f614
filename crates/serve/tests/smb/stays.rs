//! SET_INFO as MS-FSA §2.1.5.15 has it: what a client sets stays as it set it, or is refused.

use e2e::smb::{Ask, new_name};
use wire::smb::class::{Basic, attributes, file_class, mode};
use wire::smb::codec::{Field, Reader};
use wire::smb::create::{FileId, access};
use wire::smb::dir::output;
use wire::smb::header::Command;
use wire::smb::info::{QueryRequest, info_type};
use wire::smb::status::NtStatus;

use crate::running::Running;

/// 2001-09-09, as FILETIME.
const BEFORE: u64 = 126_444_736_000_000_000;
/// Leave a time alone from now on, and follow it again.
const LEAVE: u64 = u64::MAX;
const FOLLOW: u64 = u64::MAX - 1;

fn basic(fields: [u64; 4], attributes: u32) -> Vec<u8> {
    let [created, accessed, written, changed] = fields;
    let mut out = Vec::new();
    Basic { created, accessed, written, changed, attributes, reserved: 0 }.put(&mut out);
    out
}

impl Running {
    fn set(&mut self, file: FileId, class: u8, content: &[u8]) -> NtStatus {
        self.alice.set(file, class, content).expect("an answer")
    }

    fn get<T: Field>(&mut self, file: FileId, class: u8) -> T {
        let (info_type, output_max, input) = (info_type::FILE, 1_000, &[][..]);
        let (additional, flags) = (0, 0);
        let query = QueryRequest { info_type, class, output_max, additional, flags, file, input };
        let answer = self.alice.call(Command::QUERY_INFO, 0, &|out| query.put(out));
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), NtStatus::SUCCESS);
        let output = output(&answer.message).expect("content");
        Reader::new(output, "content").get().expect("a class")
    }

    fn times(&mut self, file: FileId) -> Basic {
        self.get(file, file_class::BASIC)
    }

    fn put(&mut self, file: FileId) {
        let written = self.alice.write(file, 0, b"data", 0).expect("an answer");
        assert_eq!(written, NtStatus::SUCCESS);
        assert_eq!(self.alice.flush(file).expect("an answer"), NtStatus::SUCCESS);
    }
}

#[test]
fn a_time_that_an_open_has_set_is_not_changed_by_its_writes() {
    let mut running = Running::new();
    let file = running.create(&Ask::make("f")).expect("a file");
    running.put(file);
    let all = basic([BEFORE, BEFORE + 1, BEFORE + 20, BEFORE + 3], 0);
    assert_eq!(running.set(file, file_class::BASIC, &all), NtStatus::SUCCESS);
    running.put(file);
    assert_eq!(running.set(file, file_class::END_OF_FILE, &9u64.to_le_bytes()), NtStatus::SUCCESS);
    let now = running.times(file);
    assert_eq!((now.created, now.written, now.changed), (BEFORE, BEFORE + 20, BEFORE + 3));
    // Others' writes are seen.
    let other = running.create(&Ask::open("f")).expect("the file");
    running.put(other);
    assert!(running.times(file).written > BEFORE + 20);
    // From now on its own are too.
    assert_eq!(running.set(file, file_class::BASIC, &all), NtStatus::SUCCESS);
    let follow = basic([0, 0, FOLLOW, FOLLOW], 0);
    assert_eq!(running.set(file, file_class::BASIC, &follow), NtStatus::SUCCESS);
    assert_eq!(running.times(file).written, BEFORE + 20);
    running.put(file);
    assert!(running.times(file).written > BEFORE + 20);
    running.alice.close(file).expect("an answer");
    running.alice.close(other).expect("an answer");
}

#[test]
fn a_time_that_an_open_leaves_alone_is_as_it_was() {
    let mut running = Running::new();
    let file = running.create(&Ask::make("f")).expect("a file");
    let set = basic([0, 0, BEFORE, 0], 0);
    assert_eq!(running.set(file, file_class::BASIC, &set), NtStatus::SUCCESS);
    running.alice.close(file).expect("an answer");
    let file = running.create(&Ask::open("f")).expect("the file");
    let leave = basic([LEAVE, LEAVE, LEAVE, LEAVE], 0);
    assert_eq!(running.set(file, file_class::BASIC, &leave), NtStatus::SUCCESS);
    running.put(file);
    assert_eq!(running.times(file).written, BEFORE);
    running.alice.close(file).expect("an answer");
    let file = running.create(&Ask::open("f")).expect("the file");
    assert_eq!(running.times(file).written, BEFORE);
}

#[test]
fn fields_at_the_borders_of_their_numbers() {
    let mut running = Running::new();
    let file = running.create(&Ask::make("f")).expect("a file");
    let dir = running.create(&Ask::make("d").dir()).expect("a directory");
    let invalid = NtStatus::INVALID_PARAMETER;
    for (class, content, status) in [
        (file_class::POSITION, i64::MAX as u64, NtStatus::SUCCESS),
        (file_class::POSITION, 1 << 63, invalid),
        (file_class::END_OF_FILE, 1 << 63, invalid),
        (file_class::END_OF_FILE, u64::MAX, invalid),
        (file_class::ALLOCATION, 1 << 63, invalid),
        (file_class::ALLOCATION, u64::MAX, invalid),
        (file_class::ALLOCATION, i64::MAX as u64, NtStatus::DISK_FULL),
        (file_class::ALLOCATION, 1 << 20, NtStatus::SUCCESS),
    ] {
        let content = content.to_le_bytes();
        assert_eq!(running.set(file, class, &content), status, "{class} {content:?}");
    }
    assert_eq!(running.get::<u64>(file, file_class::POSITION), i64::MAX as u64);
    for class in [file_class::END_OF_FILE, file_class::ALLOCATION] {
        assert_eq!(running.set(dir, class, &0u64.to_le_bytes()), invalid, "{class}");
    }
    for time in [1 << 63, u64::MAX - 2] {
        for field in 0..4 {
            let mut fields = [0; 4];
            fields[field] = time;
            assert_eq!(running.set(file, file_class::BASIC, &basic(fields, 0)), invalid, "{field}");
        }
    }
    // Shorter than its class.
    for (class, length) in [
        (file_class::BASIC, 39),
        (file_class::END_OF_FILE, 7),
        (file_class::ALLOCATION, 7),
        (file_class::POSITION, 7),
        (file_class::MODE, 3),
        (file_class::DISPOSITION, 0),
        (file_class::DISPOSITION_EX, 3),
        (file_class::RENAME, 19),
        (file_class::LINK, 19),
    ] {
        let status = running.set(file, class, &vec![0; length]);
        assert_eq!(status, NtStatus::INFO_LENGTH_MISMATCH, "{class}");
    }
}

#[test]
fn the_mode_of_an_open_stays() {
    let mut running = Running::new();
    let file = running.create(&Ask::make("f")).expect("a file");
    assert_eq!(running.get::<u32>(file, file_class::MODE), 0);
    let through = mode::WRITE_THROUGH.to_le_bytes();
    assert_eq!(running.set(file, file_class::MODE, &through), NtStatus::SUCCESS);
    assert_eq!(running.get::<u32>(file, file_class::MODE), mode::WRITE_THROUGH);
    let unknown = 0x8000_0000u32.to_le_bytes();
    assert_eq!(running.set(file, file_class::MODE, &unknown), NtStatus::INVALID_PARAMETER);
}

#[test]
fn what_is_read_only_is_not_replaced() {
    let mut running = Running::new();
    let file = running.create(&Ask::make("f")).expect("a file");
    let other = running.create(&Ask::make("other")).expect("a file");
    let set = basic([0; 4], attributes::READ_ONLY);
    assert_eq!(running.set(other, file_class::BASIC, &set), NtStatus::SUCCESS);
    running.alice.close(other).expect("an answer");
    for class in [file_class::RENAME, file_class::LINK] {
        for (replace, status) in
            [(false, NtStatus::OBJECT_NAME_COLLISION), (true, NtStatus::ACCESS_DENIED)]
        {
            let refused = running.set(file, class, &new_name("other", replace));
            assert_eq!(refused, status, "{class} {replace}");
        }
    }
    let read = Ask { access: access::READ, ..Ask::open("other") };
    assert_eq!(running.made(&read), NtStatus::SUCCESS);
}

#[test]
fn a_link_takes_the_place_of_a_file_if_that_is_asked() {
    let mut running = Running::new();
    let file = running.create(&Ask::make("f")).expect("a file");
    running.put(file);
    assert_eq!(running.made(&Ask::make("other")), NtStatus::SUCCESS);
    let link = |replace| new_name("other", replace);
    let refused = running.set(file, file_class::LINK, &link(false));
    assert_eq!(refused, NtStatus::OBJECT_NAME_COLLISION);
    assert_eq!(running.set(file, file_class::LINK, &link(true)), NtStatus::SUCCESS);
    let other = running.create(&Ask::open("other")).expect("the link");
    assert_eq!(running.alice.read(other, 0, 9).expect("an answer"), Ok(b"data".to_vec()));
    // It is that file already.
    assert_eq!(running.set(file, file_class::LINK, &link(true)), NtStatus::SUCCESS);
    let dir = running.create(&Ask::make("d").dir()).expect("a directory");
    let refused = running.set(dir, file_class::LINK, &new_name("e", false));
    assert_eq!(refused, NtStatus::FILE_IS_A_DIRECTORY);
}
