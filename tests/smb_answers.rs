//! What clients of SMB look at closely: requests that are cancelled, errors with data, symbolic
//! links.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::{fs, io};

use e2e::smb::scene::Scene;
use e2e::smb::{Ask, Offer, Smb, framed, message, new_name};
use e2e::tcp::address;
use wire::smb::class::{attributes, file_class};
use wire::smb::create::{FileId, access, options};
use wire::smb::header::{Command, HEADER, Header, flags};
use wire::smb::info::{QueryRequest, info_type};
use wire::smb::lock::{Element, Request as Lock, lock_flags};
use wire::smb::negotiate::{Dialect, Signing};
use wire::smb::status::NtStatus;
use wire::smb::{dir, security, session, utf16};

fn lock(file: FileId, flags: u32) -> Lock {
    Lock {
        lock_sequence: 0,
        file,
        locks: vec![Element { offset: 0, length: 9, flags, reserved: 0 }],
    }
}

/// Another client, which has `f` open.
struct Holder {
    smb: Smb,
    file: FileId,
}

impl Holder {
    fn new(scene: &Scene) -> Self {
        let mut smb = scene.anna().expect("let in");
        let file = smb.create(&Ask::make("f")).expect("an answer").expect("a file");
        Self { smb, file }
    }

    fn set(&mut self, flags: u32) {
        let lock = lock(self.file, flags);
        let set = self.smb.call(Command::LOCK, 0, &|out| lock.put(out)).expect("an answer");
        assert_eq!(set.status(), NtStatus::SUCCESS);
    }

    fn lock(&mut self) {
        self.set(lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY);
    }

    fn unlock(&mut self) {
        self.set(lock_flags::UNLOCK);
    }
}

#[test]
fn a_request_can_be_cancelled_before_its_interim_response() {
    let scene = Scene::new("smb-cancel", &[]);
    let mut holder = Holder::new(&scene);
    holder.lock();
    for dialect in [Dialect::SMB210, Dialect::SMB311] {
        let offer = Offer::only(dialect);
        let mut smb = scene.anna_from(address(8), &offer).expect("let in");
        let file = smb.create(&Ask::open("f")).expect("an answer").expect("the file");
        let wanted = lock(file, lock_flags::EXCLUSIVE);
        let request = smb.request(Command::LOCK, 0, &|out| wanted.put(out));
        let id = Header::decode(&request).expect("a header").message_id;
        let mut cancel = message(Command::CANCEL, (id, 0), (smb.session, smb.tree));
        session::Empty { reserved: 0 }.put_body(&mut cancel);
        // In one segment: it has not waited for half a second.
        let both = [request, cancel].map(|one| framed(&smb.protect(&[one]))).concat();
        smb.send_raw(&both).expect("sent");
        let answer = smb.answer().expect("an answer");
        assert_eq!(answer.status(), NtStatus::CANCELLED, "{dialect:?}");
        assert_eq!(answer.header.message_id, id);
        assert_eq!(smb.echo().expect("an answer"), NtStatus::SUCCESS);
    }
}

#[test]
fn no_two_answers_of_one_number_are_signed_by_gmac() {
    let scene = Scene::new("smb-interim", &[]);
    let mut holder = Holder::new(&scene);
    for signing in Signing::ALL {
        holder.lock();
        let offer = Offer { signings: vec![signing], ..Offer::only(Dialect::SMB311) };
        let mut smb = scene.anna_from(address(8), &offer).expect("let in");
        let file = smb.create(&Ask::open("f")).expect("an answer").expect("the file");
        let wanted = lock(file, lock_flags::EXCLUSIVE);
        let request = smb.request(Command::LOCK, 0, &|out| wanted.put(out));
        smb.send(&[request]).expect("sent");
        let told = smb.receive().expect("an answer").remove(0);
        assert_eq!(told.status(), NtStatus::PENDING);
        assert_eq!(told.header.has(flags::SIGNED), signing != Signing::AesGmac, "{signing:?}");
        holder.unlock();
        let answer = smb.answer().expect("an answer");
        assert_eq!(answer.status(), NtStatus::SUCCESS, "{signing:?}");
        assert!(answer.header.has(flags::SIGNED), "{signing:?}");
        // The lock goes with its open.
        assert_eq!(smb.close(file).expect("an answer"), NtStatus::SUCCESS);
    }
}

#[test]
fn a_buffer_that_is_too_small_gets_the_size_it_needs() {
    let scene = Scene::new("smb-small", &[]);
    for dialect in Dialect::SERVED {
        let mut smb = scene.anna_from(address(8), &Offer::only(dialect)).expect("let in");
        let ask = Ask { access: access::READ, ..Ask::open("") }.dir();
        let file = smb.create(&ask).expect("an answer").expect("the share");
        let mut ask = |output_max: u32| {
            let (info_type, class, input) = (info_type::SECURITY, 0, &[][..]);
            let additional = security::parts::OWNER | security::parts::DACL;
            let query =
                QueryRequest { info_type, class, output_max, additional, flags: 0, file, input };
            smb.call(Command::QUERY_INFO, 0, &|out| query.put(out)).expect("an answer")
        };
        let needed = dir::output(&ask(1_000).message).expect("a descriptor").len() as u32;
        let answer = ask(4);
        assert_eq!(answer.status(), NtStatus::BUFFER_TOO_SMALL, "{dialect:?}");
        let needed = needed.to_le_bytes();
        let body = match dialect {
            Dialect::SMB311 => [&[9, 0, 1, 0, 12, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0], &needed[..]],
            _ => [&[9, 0, 0, 0, 4, 0, 0, 0][..], &needed],
        };
        assert_eq!(answer.message[HEADER..], body.concat(), "{dialect:?}");
    }
}

/// Names of a directory with their attributes and numbers.
fn list(smb: &mut Smb, path: &str) -> Vec<(String, u32, u64)> {
    let ask = Ask { access: access::READ, ..Ask::open(path) }.dir();
    let file = smb.create(&ask).expect("an answer").expect("a directory");
    let pattern = utf16::encode("*");
    let (level, output_max) = (dir::Level::IdBoth as u8, 60_000);
    let query = dir::Request { level, flags: 0, file, pattern: &pattern, output_max };
    let answer = smb.call(Command::QUERY_DIRECTORY, 0, &|out| query.put(out)).expect("an answer");
    assert_eq!(answer.status(), NtStatus::SUCCESS);
    assert_eq!(smb.close(file).expect("an answer"), NtStatus::SUCCESS);
    let output = dir::output(&answer.message).expect("entries");
    let entries = dir::entries(dir::Level::IdBoth, output).expect("entries");
    let told = |one: &dir::Entry| {
        let name = utf16::decode(&one.name).expect("a name");
        (name, one.facts.attributes, one.fileid)
    };
    entries.iter().map(told).collect()
}

#[test]
fn a_link_is_shown_as_what_it_leads_to_and_removed_itself() {
    let scene = Scene::new("smb-links", &[]);
    let at = |name: &str| scene.share.join(name);
    fs::create_dir(at("dir")).expect("a directory");
    fs::write(at("dir/file"), b"kept").expect("a file");
    for name in ["dir", "dir/file"] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o777)).expect("a mode");
    }
    for (to, name) in [("dir/file", "file"), ("dir", "folder"), ("none", "broken"), ("/etc", "out")]
    {
        symlink(to, at(name)).expect("a link");
    }
    let mut smb = scene.anna().expect("let in");
    let (root, inside) = (list(&mut smb, ""), list(&mut smb, "dir"));
    let of = |list: &[(String, u32, u64)], name: &str| {
        let found = list.iter().find(|one| one.0 == name).unwrap_or_else(|| panic!("{list:?}"));
        (found.1, found.2)
    };
    assert_eq!(of(&root, "file"), of(&inside, "file"));
    assert_eq!(of(&root, "folder"), of(&root, "dir"));
    assert_eq!(of(&root, "dir").0, attributes::DIRECTORY);
    // What leads nowhere, or out of the share, is there and cannot be opened.
    for name in ["broken", "out"] {
        assert_eq!(of(&root, name).0 & attributes::DIRECTORY, 0, "{name}");
        assert!(smb.create(&Ask::open(name)).expect("an answer").is_err(), "{name}");
    }
    // Renamed and removed are the links; a folder's even if there is something in it.
    let file = smb.create(&Ask::open("file")).expect("an answer").expect("the file");
    let renamed = smb.set(file, file_class::RENAME, &new_name("moved", false));
    assert_eq!(renamed.expect("an answer"), NtStatus::SUCCESS);
    assert!(at("moved").is_symlink() && !at("file").is_symlink());
    let marked = smb.set(file, file_class::DISPOSITION, &[1]).expect("an answer");
    assert_eq!(
        (marked, smb.close(file).expect("an answer")),
        (NtStatus::SUCCESS, NtStatus::SUCCESS)
    );
    assert!(!at("moved").is_symlink());
    let folder = Ask::open("folder").dir().with(options::DELETE_ON_CLOSE | options::DIRECTORY);
    let folder = smb.create(&folder).expect("an answer").expect("the folder");
    assert_eq!(smb.close(folder).expect("an answer"), NtStatus::SUCCESS);
    assert!(!at("folder").is_symlink());
    assert_eq!(fs::read(at("dir/file")).expect("what they led to"), b"kept");
}

/// The names in the share.
fn names(scene: &Scene) -> Vec<String> {
    let entries = fs::read_dir(&scene.share).expect("the share");
    let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<_> = entries.map(|one| name(one).into_string().expect("a name")).collect();
    names.sort();
    names
}

fn rename(smb: &mut Smb, file: FileId, to: &str, replace: bool) -> NtStatus {
    smb.set(file, file_class::RENAME, &new_name(to, replace)).expect("an answer")
}

#[test]
fn a_file_that_another_has_renamed_is_removed_where_it_is() {
    let scene = Scene::new("smb-renamed", &[]);
    let mut smb = scene.anna().expect("let in");
    let mut other = scene.anna_from(address(8), &Offer::default()).expect("let in");
    for (name, options) in [("a", 0), ("b", options::DELETE_ON_CLOSE)] {
        let file = smb.create(&Ask::make(name).with(options)).expect("an answer").expect("a file");
        let too = other.create(&Ask::open(name)).expect("an answer").expect("the file");
        assert_eq!(rename(&mut other, too, "new", false), NtStatus::SUCCESS);
        assert_eq!(other.close(too).expect("an answer"), NtStatus::SUCCESS);
        assert_eq!(names(&scene), ["new"]);
        if options == 0 {
            let marked = smb.set(file, file_class::DISPOSITION, &[1]).expect("an answer");
            assert_eq!(marked, NtStatus::SUCCESS);
            // What is to be removed gets no other name.
            assert_eq!(rename(&mut smb, file, "newer", false), NtStatus::ACCESS_DENIED);
            let linked = smb.set(file, file_class::LINK, &new_name("link", false));
            assert_eq!(linked.expect("an answer"), NtStatus::ACCESS_DENIED);
            let again = other.create(&Ask::open("new")).expect("an answer");
            assert_eq!(again, Err(NtStatus::DELETE_PENDING));
        }
        assert_eq!(smb.close(file).expect("an answer"), NtStatus::SUCCESS);
        assert_eq!(names(&scene), [""; 0], "{name}");
    }
}

#[test]
fn names_of_one_file_are_renamed_and_removed_separately() {
    let scene = Scene::new("smb-names", &[]);
    let mut smb = scene.anna().expect("let in");
    let file = smb.create(&Ask::make("a")).expect("an answer").expect("a file");
    for name in ["b", "c", "A"] {
        let linked = smb.set(file, file_class::LINK, &new_name(name, false)).expect("an answer");
        let wanted = match name {
            "A" => NtStatus::OBJECT_NAME_COLLISION,
            _ => NtStatus::SUCCESS,
        };
        assert_eq!(linked, wanted, "{name}");
    }
    // Only its case changes; the other name is replaced, but only if that is asked.
    assert_eq!(rename(&mut smb, file, "A", false), NtStatus::SUCCESS);
    assert_eq!(names(&scene), ["A", "b", "c"]);
    assert_eq!(rename(&mut smb, file, "b", false), NtStatus::OBJECT_NAME_COLLISION);
    assert_eq!(rename(&mut smb, file, "B", true), NtStatus::SUCCESS);
    assert_eq!(names(&scene), ["b", "c"]);
    // Both are marked, and each goes with its own last open.
    let other = smb.create(&Ask::open("c")).expect("an answer").expect("the file");
    for one in [file, other] {
        let marked = smb.set(one, file_class::DISPOSITION, &[1]).expect("an answer");
        assert_eq!(marked, NtStatus::SUCCESS);
    }
    assert_eq!(smb.close(file).expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(names(&scene), ["c"]);
    assert_eq!(smb.close(other).expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(names(&scene), [""; 0]);
}
