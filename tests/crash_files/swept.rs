//! Uploads that are cut off by a kill or a power cut: the final name has what it had, and what they
//! have left goes with the next listing.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use e2e::api::wait_for;
use e2e::http::{self, Http};
use e2e::skip;
use e2e::tcp::HERE;
use sim::forget;
use wire::sftp::StatusCode;

use super::cases::{Case, OLD, REPLACE, Speakers, Thing, USER};
use super::world::World;

const PATIENCE: Duration = Duration::from_secs(30);
/// Uploads in progress at once.
const UPLOADS: usize = BEFORE.before.len();
/// How much comes of each file: more than the server gathers before it writes.
const HALF: usize = 1_500_000;
/// How much would have come.
const WHOLE: usize = 2 * HALF;

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
    _ftp: TcpStream,
    _http: Http,
    _speakers: Speakers,
}

/// Files that uploads have made, and their bytes.
fn uploads(dir: &Path) -> Vec<u64> {
    let entries = fs::read_dir(dir).expect("the folder").flatten();
    let ours = entries.filter(|e| e.file_name().to_string_lossy().starts_with(".plimsoll-upload-"));
    ours.map(|entry| entry.metadata().map_or(0, |found| found.len())).collect()
}

/// Begins an upload in each way and lets half of it come.
fn begin(mut speakers: Speakers, dir: &Path) -> Halves {
    let data = &vec![b'n'; HALF][..];
    let mut ftp = speakers.ftp.begin("STOR /share/cut-off/ftp").expect("FTP").expect("begun");
    ftp.write_all(data).expect("sent");
    let mut http = Http::connect(HERE, speakers.http, USER).expect("HTTP");
    http.begin(("PUT", b"/share/cut-off/http"), b"", WHOLE, data).expect("sent");
    let length = format!("Upload-Length: {WHOLE}");
    let begin = "POST /share/cut-off/parts?upload";
    let (code, begun) = http::ask(speakers.http, USER, begin, &[&length], b"");
    assert_eq!(code, 201, "{begun}");
    let place = format!("PATCH {}", http::field(&begun, "location").expect("a place"));
    let (code, _) = http::ask(speakers.http, USER, &place, &["Upload-Offset: 0"], data);
    assert_eq!(code, 204);
    let sftp = &mut speakers.sftp;
    let handle = sftp.open("/share/cut-off/sftp", REPLACE).expect("SFTP").expect("a handle");
    assert_eq!(sftp.write(&handle, 0, &data[..30_000]).expect("SFTP"), StatusCode::OK);
    let under_way = || uploads(dir).iter().filter(|size| **size > 0).count() == UPLOADS;
    wait_for("half of each upload", PATIENCE, || under_way().then_some(()));
    Halves { _ftp: ftp, _http: http, _speakers: speakers }
}

/// The names have what they had; a listing by FTP shows nothing else, and removes the rest.
fn swept(world: &World, dir: &Path, left: usize) {
    for (name, _) in BEFORE.before {
        assert!(fs::read(dir.join(name)).expect("the old file") == OLD, "{name}");
    }
    assert_eq!(uploads(dir).len(), left, "what they have left");
    let mut speakers = world.speakers();
    let (code, names) = speakers.ftp.data("NLST /share/cut-off", None).expect("FTP");
    let names = String::from_utf8(names).expect("names");
    assert!(names.lines().count() == BEFORE.before.len() && !names.contains("plimsoll"), "{names}");
    assert_eq!(code, 226);
    wait_for("nothing to be left", PATIENCE, || uploads(dir).is_empty().then_some(()));
    for (name, _) in BEFORE.before {
        assert!(fs::read(dir.join(name)).expect("the old file") == OLD, "{name}");
    }
}

#[test]
fn uploads_that_a_kill_interrupts_leave_the_old_file_and_are_swept() {
    if let Err(why) = forget::available() {
        skip!("crash-files-kill", "{why}");
    }
    let mut world = World::new(None, false);
    world.prepare(&BEFORE);
    world.start();
    let dir = world.share().join(BEFORE.name);
    let halves = begin(world.speakers(), &dir);
    drop(world.server.take());
    drop(halves);
    world.start();
    swept(&world, &dir, UPLOADS);
}

#[test]
fn uploads_that_a_power_cut_interrupts_leave_the_old_file_and_are_swept() {
    if let Err(why) = forget::available() {
        skip!("crash-files-cut", "{why}");
    }
    let mut world = World::new(None, false);
    world.prepare(&BEFORE);
    world.start();
    let dir = world.share().join(BEFORE.name);
    let halves = begin(world.speakers(), &dir);
    // Of some uploads the names were never flushed: here all of them were, as a file system may do
    // at any time.
    fs::File::open(&dir).and_then(|dir| dir.sync_all()).expect("on disk");
    let left = uploads(&dir).len();
    world.power_cut();
    drop(halves);
    world.start();
    swept(&world, &dir, left);
}
