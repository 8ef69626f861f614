//! Owners and groups by name: sent before they are used, translated where they are known.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::JoinHandle;

use crate::common::{Scratch, is_root, meta, notes, plain};
use sync::destination::{self, ReportTo};
use sync::link::{Link, read_frame, write_now};
use sync::run::pair;
use sync::tree::Tree;
use sync::tree::host::HostTree;
use sync::{Counts, Options, Why, source};
use wire::dsync::{
    Bytes, Directory, DirectoryEnd, Entries, Entry, Kind, Message, Meta, Owner, frame,
};
use wire::xdr::Seq;

/// Numbers without a user or group here.
const STRANGER: u32 = 3_141_592;
const OTHER: u32 = 2_718_281;

fn owner(group: bool, number: u32, name: &[u8]) -> Message<'static> {
    Message::Owner(Owner { group, number, name: Bytes(name.to_vec()) })
}

fn destination_at(to: &Path, options: &Options) -> (Link, JoinHandle<Result<Counts, Why>>) {
    let (link, far) = pair().expect("sockets");
    let (to, options) = (to.to_owned(), options.clone());
    let done = std::thread::spawn(move || {
        let tree = HostTree::open_for_change(&to)?;
        destination::run(tree, &options, far, ReportTo::Local(notes().0), true)
    });
    (link, done)
}

/// A tree of one FIFO with these owners, of which these names are sent.
fn send_owners(to: &Path, options: &Options, names: &[Message<'_>]) -> (u32, u32) {
    let (mut link, done) = destination_at(to, options);
    let top = Some(meta(Kind::DIRECTORY, 0));
    let fifo = Entry {
        name: Bytes(b"p".to_vec()),
        meta: Meta { uid: STRANGER, gid: OTHER, ..meta(Kind::FIFO, 0) },
    };
    let tree = [
        Message::Directory(Directory { name: Bytes(Vec::new()), meta: top }),
        Message::Entries(Entries { entries: Seq(vec![fifo]) }),
        Message::DirectoryEnd(DirectoryEnd { failed: None }),
        Message::ScanEnd(()),
    ];
    for message in names.iter().chain(&tree) {
        write_now(&mut link.write, message).expect("said");
    }
    loop {
        let body = read_frame(&mut link.read).expect("a frame").expect("one more");
        if let Message::Done(counts) = frame::message(&body).expect("a message") {
            assert_eq!(counts.failures, 0);
            break;
        }
    }
    (link.close)();
    assert!(done.join().expect("no panic").is_ok());
    let meta = fs::metadata(to.join("p")).expect("it");
    (meta.uid(), meta.gid())
}

#[test]
fn names_that_are_known_here_decide() {
    if !is_root() {
        return println!("SKIP dsync-owners: needs root");
    }
    let scratch = Scratch::new("owners");
    let tree = HostTree::open(&scratch.join("")).expect("a tree");
    let (user, group) = (tree.owner_name(false, 65_534), tree.owner_name(true, 65_534));
    let (Some(user), Some(group)) = (user, group) else {
        return println!("SKIP dsync-owners: nobody has no name here");
    };
    let names = [owner(false, STRANGER, &user), owner(true, OTHER, &group)];
    let to = |name: &str| scratch.join(name);
    assert_eq!(send_owners(&to("names"), &plain(), &names), (65_534, 65_534));
    // One of them only; a user's name is none of a group's number.
    assert_eq!(send_owners(&to("one"), &plain(), &names[..1]), (65_534, OTHER));
    let unknown = [owner(false, STRANGER, b"nobody-has-this-name"), owner(true, STRANGER, &group)];
    assert_eq!(send_owners(&to("unknown"), &plain(), &unknown), (STRANGER, OTHER));
    let numeric = Options { names: false, ..plain() };
    assert_eq!(send_owners(&to("numbers"), &numeric, &names), (STRANGER, OTHER));
    // Root is root, whatever it is called elsewhere.
    let root = [owner(false, 0, &user), owner(true, 0, &group)];
    send_owners(&to("root"), &plain(), &root);
    let meta = fs::metadata(to("root")).expect("it");
    assert_eq!((meta.uid(), meta.gid()), (0, 0));
}

#[test]
fn a_source_sends_each_name_once_and_before_it_is_used() {
    if !is_root() {
        return println!("SKIP dsync-owners: needs root");
    }
    let scratch = Scratch::new("owners-told");
    let from = scratch.join("from");
    fs::create_dir(&from).expect("a folder");
    for (name, id) in [("a", 65_534), ("b", 65_534), ("c", STRANGER), ("d", 0)] {
        fs::write(from.join(name), name).expect("a file");
        std::os::unix::fs::chown(from.join(name), Some(id), Some(id)).expect("given");
    }
    for names in [true, false] {
        let (mut link, far) = pair().expect("sockets");
        let (place, options) = (from.clone(), Options { names, ..plain() });
        let done = std::thread::spawn(move || {
            source::run(HostTree::open(&place)?, &options, far, &notes().0)
        });
        let (mut told, mut entries) = (Vec::new(), 0);
        while entries == 0 {
            let body = read_frame(&mut link.read).expect("a frame").expect("one more");
            match frame::message(&body).expect("a message") {
                Message::Owner(owner) => told.push((owner.group, owner.number)),
                Message::Entries(list) => entries += list.entries.0.len(),
                _ => {}
            }
        }
        assert_eq!(entries, 4);
        let expected = if names { vec![(false, 65_534), (true, 65_534)] } else { Vec::new() };
        assert_eq!(told, expected);
        (link.close)();
        assert!(done.join().expect("no panic").is_err());
    }
}
