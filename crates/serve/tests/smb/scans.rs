//! CREATE and QUERY_DIRECTORY as MS-FSA §2.1.5.1 and §2.1.5.6.3 have them, and names as MS-FSCC
//! §2.1.5.2.

use e2e::smb::Ask;
use wire::smb::create::{Disposition, FileId, access, options};
use wire::smb::dir::{Level, Request as QueryDirectory, entries, output, query_flags};
use wire::smb::header::Command;
use wire::smb::status::NtStatus;
use wire::smb::utf16;

use crate::running::Running;

impl Running {
    /// CREATE.
    pub fn create(&mut self, ask: &Ask<'_>) -> Result<FileId, NtStatus> {
        self.alice.create(ask).expect("an answer")
    }

    /// CREATE of what is closed again.
    pub fn made(&mut self, ask: &Ask<'_>) -> NtStatus {
        match self.create(ask) {
            Ok(file) => self.alice.close(file).expect("an answer"),
            Err(refused) => refused,
        }
    }

    fn scan(&mut self, file: FileId, pattern: &str, flags: u8) -> Result<Vec<String>, NtStatus> {
        let (pattern, level) = (utf16::encode(pattern), Level::Names);
        let (level_number, output_max) = (level as u8, 60_000);
        let ask =
            QueryDirectory { level: level_number, flags, file, pattern: &pattern, output_max };
        let answer = self.alice.call(Command::QUERY_DIRECTORY, 0, &|out| ask.put(out));
        let answer = answer.expect("an answer");
        if answer.status() != NtStatus::SUCCESS {
            return Err(answer.status());
        }
        let listed = entries(level, output(&answer.message).expect("entries")).expect("entries");
        Ok(listed.iter().map(|one| utf16::decode(&one.name).expect("text")).collect())
    }
}

#[test]
fn no_directory_is_made_in_the_place_of_something() {
    let mut running = Running::new();
    assert_eq!(running.made(&Ask::make("dir").dir()), NtStatus::SUCCESS);
    assert_eq!(running.made(&Ask::make("file")), NtStatus::SUCCESS);
    let replaces = [Disposition::Supersede, Disposition::Overwrite, Disposition::OverwriteIf];
    for disposition in replaces {
        for path in ["dir", "file", "new"] {
            let ask = Ask { disposition, ..Ask::open(path) }.dir();
            let refused = running.made(&ask);
            assert_eq!(refused, NtStatus::INVALID_PARAMETER, "{disposition:?} {path}");
        }
    }
    assert_eq!(running.made(&Ask::open("new")), NtStatus::OBJECT_NAME_NOT_FOUND);
}

#[test]
fn only_a_directory_is_named_with_a_separator_at_the_end() {
    let mut running = Running::new();
    assert_eq!(running.made(&Ask::make("dir\\").dir()), NtStatus::SUCCESS);
    assert_eq!(running.made(&Ask::make("file")), NtStatus::SUCCESS);
    let read = Ask { access: access::READ, ..Ask::open("dir\\") };
    assert_eq!(running.made(&read), NtStatus::SUCCESS);
    let wrong =
        [Ask::open("file\\"), Ask::make("new\\"), Ask::open("dir\\").with(options::NON_DIRECTORY)];
    for ask in wrong {
        assert_eq!(running.made(&ask), NtStatus::OBJECT_NAME_INVALID, "{ask:?}");
    }
}

#[test]
fn a_scan_that_finds_nothing_is_a_first_one_once() {
    let mut running = Running::new();
    running.made(&Ask::make("a"));
    let root = Ask { access: access::READ, ..Ask::open("") }.dir();
    let file = running.create(&root).expect("the share");
    assert_eq!(running.scan(file, "zzz*", 0), Err(NtStatus::NO_SUCH_FILE));
    assert_eq!(running.scan(file, "zzz*", 0), Err(NtStatus::NO_MORE_FILES));
    // Another pattern is for a scan that begins again.
    assert_eq!(running.scan(file, "a*", 0), Err(NtStatus::NO_MORE_FILES));
    assert_eq!(running.scan(file, "a*", query_flags::RESTART), Ok(vec!["a".to_owned()]));
    assert_eq!(running.scan(file, "", query_flags::RESTART), Ok(vec!["a".to_owned()]));
    assert_eq!(running.scan(file, "zzz*", query_flags::RESTART), Err(NtStatus::NO_MORE_FILES));
    assert_eq!(running.scan(file, "zzz*", query_flags::REOPEN), Err(NtStatus::NO_SUCH_FILE));
    for pattern in ["a\\b", "a:b", "a\u{1}", "a|b"] {
        let refused = running.scan(file, pattern, query_flags::REOPEN);
        assert_eq!(refused, Err(NtStatus::OBJECT_NAME_INVALID), "{pattern:?}");
    }
}

#[test]
fn control_characters_are_in_no_name() {
    let mut running = Running::new();
    for control in 1..0x20u8 {
        let name = format!("k{}", char::from(control));
        let refused = running.made(&Ask::make(&name));
        assert_eq!(refused, NtStatus::OBJECT_NAME_INVALID, "U+{control:04X}");
    }
}

#[test]
fn a_name_composed_otherwise_is_opened_and_may_be_made() {
    let mut running = Running::new();
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}");
    assert_eq!(running.made(&Ask::make(decomposed)), NtStatus::SUCCESS);
    assert_eq!(running.made(&Ask::open(composed)), NtStatus::SUCCESS);
    assert_eq!(running.made(&Ask::open("CAF\u{c9}")), NtStatus::SUCCESS);
    let or_made = Ask { disposition: Disposition::OpenIf, ..Ask::open(composed) };
    assert_eq!(running.made(&or_made), NtStatus::SUCCESS);
    let root = Ask { access: access::READ, ..Ask::open("") }.dir();
    let file = running.create(&root).expect("the share");
    assert_eq!(running.scan(file, "caf*", 0), Ok(vec![decomposed.to_owned()]));
    // As on Windows, both may be there; what differs in case alone may not.
    assert_eq!(running.made(&Ask::make("CAFE\u{301}")), NtStatus::OBJECT_NAME_COLLISION);
    assert_eq!(running.made(&Ask::make(composed)), NtStatus::SUCCESS);
    let both = running.scan(file, "caf*", query_flags::REOPEN).expect("both");
    assert_eq!(both.len(), 2);
}
