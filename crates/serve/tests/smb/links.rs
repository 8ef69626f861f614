//! Links that lead nowhere, in a circle or out of the share are listed, renamed and removed as what
//! they are, and refused where data is wanted.

use e2e::smb::{Ask, new_name};
use vfs::attr::{FileType, SetAttr};
use vfs::cred::Cred;
use vfs::fs::{Context, FileSystem, Special};
use wire::smb::class::file_class;
use wire::smb::create::{Disposition, access, options};
use wire::smb::status::NtStatus;

use crate::running::Running;

impl Running {
    fn with<T>(&self, what: impl FnOnce(&dyn FileSystem, Context<'_>) -> T) -> T {
        let cred = Cred::root();
        what(&*self.fs, Context { cred: &cred, may_block: true })
    }

    fn link(&self, name: &str, target: &str) {
        let (name, target) = (name.as_bytes(), target.as_bytes());
        self.with(|fs, cx| fs.symlink(cx, &fs.root(), name, target, &SetAttr::default()))
            .expect("a link");
    }

    fn kind(&self, name: &str) -> Option<FileType> {
        let found = self.with(|fs, cx| fs.lookup(cx, &fs.root(), name.as_bytes()));
        found.ok().map(|(entry, _)| entry.attr.kind)
    }
}

#[test]
fn a_link_that_leads_nowhere_is_renamed_and_removed() {
    let mut running = Running::new();
    let links = [
        ("dangling", "no-such", NtStatus::OBJECT_NAME_NOT_FOUND),
        ("circle", "circle", NtStatus::REPARSE_POINT_NOT_RESOLVED),
        ("out", "../../etc/passwd", NtStatus::ACCESS_DENIED),
        ("top", "/etc/passwd", NtStatus::ACCESS_DENIED),
    ];
    for (name, target, refused) in links {
        running.link(name, target);
        assert_eq!(running.made(&Ask::open(name)), refused, "{name}");
        let is_there = running.made(&Ask::make(name));
        assert_eq!(is_there, NtStatus::OBJECT_NAME_COLLISION, "{name}");
        let ask = Ask { access: access::DELETE | access::READ_ATTRIBUTES, ..Ask::open(name) };
        let file = running.create(&ask).expect("the link");
        let read = running.alice.read(file, 0, 9).expect("an answer");
        assert_eq!(read, Err(NtStatus::ACCESS_DENIED), "{name}");
        let moved = format!("{name}-moved");
        let renamed = running.alice.set(file, file_class::RENAME, &new_name(&moved, false));
        assert_eq!(renamed.expect("an answer"), NtStatus::SUCCESS, "{name}");
        running.alice.close(file).expect("an answer");
        assert_eq!(running.kind(&moved), Some(FileType::Symlink));
        let ask = Ask { access: access::DELETE, ..Ask::open(&moved) };
        assert_eq!(running.made(&ask.with(options::DELETE_ON_CLOSE)), NtStatus::SUCCESS, "{name}");
        assert_eq!((running.kind(&moved), running.kind(name)), (None, None));
    }
}

#[test]
fn what_is_written_through_a_dangling_link_is_made_where_it_leads() {
    let mut running = Running::new();
    running.link("dangling", "made");
    let ask = Ask { disposition: Disposition::OpenIf, ..Ask::open("dangling") };
    assert_eq!(running.made(&ask), NtStatus::SUCCESS);
    assert_eq!(running.kind("made"), Some(FileType::Regular));
    assert_eq!(running.kind("dangling"), Some(FileType::Symlink));
}

#[test]
fn pipes_and_devices_have_a_name_and_no_data() {
    let mut running = Running::new();
    for kind in [FileType::Fifo, FileType::Socket, FileType::Character, FileType::Block] {
        let special = Special { kind, rdev: (250, 250) };
        let set = SetAttr { mode: Some(0o666), ..SetAttr::default() };
        running.with(|fs, cx| fs.mknod(cx, &fs.root(), b"x", special, &set)).expect("made");
        assert_eq!(running.made(&Ask::open("x")), NtStatus::ACCESS_DENIED, "{kind:?}");
        let all = Ask { access: access::MAXIMUM_ALLOWED, ..Ask::open("x") };
        let file = running.create(&all).expect("its name");
        let written = running.alice.write(file, 0, b"data", 0).expect("an answer");
        assert_eq!(written, NtStatus::ACCESS_DENIED, "{kind:?}");
        running.alice.close(file).expect("an answer");
        let ask = Ask { access: access::DELETE, ..Ask::open("x") };
        assert_eq!(running.made(&ask.with(options::DELETE_ON_CLOSE)), NtStatus::SUCCESS);
        assert_eq!(running.kind("x"), None, "{kind:?}");
    }
}
