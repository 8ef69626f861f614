//! Properties of WebDAV, which are in extended attributes: on a disk with a file system that has
//! them. What a file has is handed on to the one that replaces it, however it comes.

use std::fs;

use e2e::disk::Disk;
use e2e::scratch::{Scratch, make_folder};
use e2e::server::{Options, Server};
use e2e::{http, skip};

use super::cases::USER;
use super::world::serve_plain;

/// The kind of file system: its journal is written on request, or half a minute
/// later.
const KIND: &str = "xfs";
/// Times that a loss is looked for: a program that calls sync(2), or drops the kernel's caches, has
/// the journal of each file system written.
const TRIES_UNTIL_LOST: usize = 20;

const SET: &[u8] = b"<propertyupdate xmlns='DAV:'><set><prop><author xmlns='urn:x'>anna</author>\
    </prop></set></propertyupdate>";
const FIND: &[u8] = b"<propfind xmlns='DAV:'><prop><author xmlns='urn:x'/></prop></propfind>";

fn start(disk: &Disk, scratch: &Scratch, skip: Option<&'static str>) -> Server {
    let (share, state) = (disk.path().join("share"), scratch.folder("state", None));
    let mut options = Options::new(&share, &state);
    options.env.extend(skip.map(|site| ("PLIMSOLL_TEST_SKIP_FLUSH", site.to_owned())));
    Server::start(&options)
}

/// Sets a property and cuts the power; whether it is there.
fn kept(disk: &mut Disk, scratch: &Scratch, skip: Option<&'static str>) -> bool {
    let server = start(disk, scratch, skip);
    serve_plain(&scratch.path().join("state"));
    let file = disk.path().join("share/f");
    fs::write(&file, b"one").expect("a file");
    fs::File::open(&file).and_then(|file| file.sync_all()).expect("on disk");
    fs::File::open(disk.path().join("share")).and_then(|dir| dir.sync_all()).expect("on disk");
    let (code, answer) = http::ask(server.at(80), USER, "PROPPATCH /share/f", &[], SET);
    assert!(code == 207 && answer.contains("200 OK"), "{answer}");
    disk.cut_power();
    drop(server);
    disk.crash();
    let server = start(disk, scratch, skip);
    let (code, answer) = http::ask(server.at(80), USER, "PROPFIND /share/f", &["Depth: 0"], FIND);
    assert_eq!(code, 207, "{answer}");
    answer.contains(">anna<")
}

#[test]
fn properties_outlive_a_power_cut_and_leaving_out_their_flush_is_noticed() {
    let mut disk = match Disk::new(KIND) {
        Ok(disk) => disk,
        Err(why) => skip!("crash-files-properties", "{why}"),
    };
    make_folder(&disk.path().join("share"), None);
    let scratch = Scratch::new("crash-properties");
    assert!(kept(&mut disk, &scratch, None), "a property that was acknowledged is gone");
    let is_lost = |_| {
        let mut disk = Disk::new(KIND).expect("another disk");
        make_folder(&disk.path().join("share"), None);
        let scratch = Scratch::new("crash-properties-skip");
        !kept(&mut disk, &scratch, Some("xattr"))
    };
    assert!((0..TRIES_UNTIL_LOST).any(is_lost), "without the flush xattr no property was lost");
}
