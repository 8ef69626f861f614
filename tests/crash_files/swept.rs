//! Uploads that are cut off by a kill or a power cut: the final name has what it had, and what they
//! have left goes with the next listing.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use e2e::api::wait_for;
use e2e::http;
use e2e::skip;
use e2e::ssh_sftp::{CREAT, TRUNC, WRITE};
use sim::forget;

use crate::cases::{BASIC, Case, OLD, Speakers, Thing, big};
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(30);
/// How much comes of each file.
const HALF: usize = 700_000;

static BEFORE: Case = Case {
    name: "cut-off",
    before: &[
        ("ftp", Thing::Old),
        ("sftp", Thing::Old),
        ("http", Thing::Old),
        ("parts", Thing::Old),
    ],
    act: |_, _| {},
    after: &[
        ("ftp", Thing::Old),
        ("sftp", Thing::Old),
        ("http", Thing::Old),
        ("parts", Thing::Old),
    ],
    needs: &[],
};

/// Connections with half an upload each.
struct Halves {
    _ftp: std::net::TcpStream,
    _http: std::net::TcpStream,
    _speakers: Speakers,
}

/// Files that uploads have made, and their bytes.
fn uploads(dir: &Path) -> Vec<u64> {
    let entries = fs::read_dir(dir).expect("the folder").flatten();
    let ours = entries.filter(|e| e.file_name().to_string_lossy().starts_with(".plimsoll-upload-"));
    ours.map(|entry| entry.metadata().map_or(0, |found| found.len())).collect()
}

/// Begins an upload over each protocol and lets half of it come; how many there are.
fn begin(mut speakers: Speakers, dir: &Path) -> (Halves, usize) {
    let data = &big()[..HALF];
    let mut ftp = speakers.ftp.begin("STOR /share/cut-off/ftp").expect("begun");
    ftp.write_all(data).expect("sent");
    let mut http = http::begin(speakers.http, BASIC, "PUT /share/cut-off/http", &[], big().len());
    http.write_all(data).expect("sent");
    let length = format!("Upload-Length: {}", big().len());
    let begin = "POST /share/cut-off/parts?upload";
    let (code, begun) = http::ask(speakers.http, BASIC, begin, &[&length], b"");
    assert_eq!(code, 201, "{begun}");
    let place = format!("PATCH {}", http::field(&begun, "location"));
    let (code, _) = http::ask(speakers.http, BASIC, &place, &["Upload-Offset: 0"], data);
    assert_eq!(code, 204);
    let mut count = 3;
    if let Some(sftp) = &mut speakers.sftp {
        let handle = sftp.open("/share/cut-off/sftp", WRITE | CREAT | TRUNC);
        assert_eq!(sftp.write(&handle, 0, &data[..30_000]), 0);
        count += 1;
    }
    let under_way = || uploads(dir).iter().filter(|size| **size > 0).count() == count;
    wait_for("half of each upload", PATIENCE, || under_way().then_some(()));
    (Halves { _ftp: ftp, _http: http, _speakers: speakers }, count)
}

/// The names have what they had; a listing by FTP shows nothing else, and removes the rest.
fn swept(world: &World, dir: &Path, left: usize) {
    for (name, _) in BEFORE.before {
        assert!(fs::read(dir.join(name)).expect("the old file") == OLD, "{name}");
    }
    assert_eq!(uploads(dir).len(), left, "what they have left");
    let mut speakers = world.speakers();
    let listing = speakers.ftp.data();
    assert_eq!(speakers.ftp.say("NLST /share/cut-off").0, 150);
    let names = std::io::read_to_string(listing).expect("names");
    assert!(names.lines().count() == BEFORE.before.len() && !names.contains("plimsoll"), "{names}");
    assert_eq!(speakers.ftp.reply().0, 226);
    wait_for("nothing to be left", PATIENCE, || uploads(dir).is_empty().then_some(()));
    for (name, _) in BEFORE.before {
        assert!(fs::read(dir.join(name)).expect("the old file") == OLD, "{name}");
    }
}

#[test]
fn uploads_that_a_kill_cuts_off_leave_the_old_file_and_are_swept() {
    if let Err(why) = forget::available() {
        skip!("crash-files-kill", "{why}");
    }
    let mut world = World::new(None, false);
    world.prepare(&BEFORE);
    world.start();
    let dir = world.share().join(BEFORE.name);
    let (halves, count) = begin(world.speakers(), &dir);
    drop(world.server.take());
    drop(halves);
    world.start();
    swept(&world, &dir, count);
}

#[test]
fn uploads_that_a_power_cut_cuts_off_leave_the_old_file_and_are_swept() {
    if let Err(why) = forget::available() {
        skip!("crash-files-cut", "{why}");
    }
    let mut world = World::new(None, false);
    world.prepare(&BEFORE);
    world.start();
    let dir = world.share().join(BEFORE.name);
    let (halves, _) = begin(world.speakers(), &dir);
    // Of some uploads the names were never flushed: here all of them were, as a file system may
    // do by itself at any time.
    fs::File::open(&dir).and_then(|dir| dir.sync_all()).expect("on disk");
    let left = uploads(&dir).len();
    world.power_cut();
    drop(halves);
    world.start();
    swept(&world, &dir, left);
}
