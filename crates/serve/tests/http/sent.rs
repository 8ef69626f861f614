//! Large files of a folder over unencrypted connections: the kernel sends them, and whatever
//! happens to the file or the client meanwhile, no response is wrong.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use base::limits::PEER_PATIENCE;
use vfs::share::Service;

use crate::scene::{Scene, Scratch};
use crate::stand::{Client, Stand, closed};

const PATIENCE: Duration = Duration::from_secs(80);

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 11 + n / 253) as u8).collect()
}

/// Requests a file and receives the first byte of the response.
fn begun(stand: &Stand, target: &str) -> TcpStream {
    let mut stream = TcpStream::connect(stand.plain).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).unwrap();
    stream.read_exact(&mut [0; 1]).unwrap();
    stream
}

#[test]
fn files_of_all_sizes_and_their_parts_come_from_a_folder() {
    let scratch = Scratch::new();
    let stand = Stand::of(&scratch);
    let mut client = stand.client();
    for len in [0, 1, 65_535, 65_536, 1 << 20, (1 << 20) + 1, 5_000_003] {
        let data = pattern(len);
        scratch.file("share/f", &data);
        let got = client.get("/share/f", &[]);
        assert_eq!((got.status, got.body == data), (200, true), "{len}");
    }
    let data = pattern(5_000_003);
    let part = client.get("/share/f", &["Range: bytes=70001-4000000"]);
    assert_eq!((part.status, part.body == data[70_001..=4_000_000]), (206, true));
    let two = client.get("/share/f", &["Range: bytes=0-199999,300000-499999"]);
    assert_eq!(two.status, 206);
    let has = |part: &[u8]| two.body.windows(part.len()).any(|w| w == part);
    assert!(has(&data[..200_000]) && has(&data[300_000..500_000]));
    assert_eq!(client.get("/share/f", &["Range: bytes=-1"]).body, data[5_000_002..]);
}

#[test]
fn a_part_far_behind_the_beginning_is_found() {
    let scratch = Scratch::new();
    let stand = Stand::of(&scratch);
    let (size, data) = (5_u64 << 30, pattern(300_000));
    let file = scratch.set_len("share/sparse", size);
    file.write_all_at(&data, size - 300_000).unwrap();
    let range = format!("Range: bytes={}-", size - 1_300_000);
    let got = stand.client().get("/share/sparse", &[&range]);
    assert_eq!((got.status, got.body.len()), (206, 1_300_000));
    assert!(got.body[..1_000_000].iter().all(|b| *b == 0) && got.body[1_000_000..] == data);
}

#[test]
fn a_file_that_becomes_shorter_ends_the_connection() {
    let scratch = Scratch::new();
    let stand = Stand::of(&scratch);
    scratch.set_len("share/f", 64 << 20);
    let mut stream = begun(&stand, "/share/f");
    scratch.set_len("share/f", 1000);
    let mut rest = Vec::new();
    // Nothing marks this as the end: fewer bytes than Content-Length have arrived.
    let ended = stream.read_to_end(&mut rest);
    assert!(rest.len() < 64 << 20, "{ended:?} after {}", rest.len());
    assert_eq!(stand.client().get("/share/f", &[]).body.len(), 1000);
}

#[test]
fn a_client_that_goes_takes_nothing_with_it() {
    let scratch = Scratch::new();
    let stand = Stand::of(&scratch);
    scratch.set_len("share/f", 64 << 20);
    drop(begun(&stand, "/share/f"));
    let entries = stand.scene.transfers.take(1);
    assert!(entries[0].starts_with("http download cut /share/f "), "{entries:?}");
    assert_eq!(stand.client().get("/share/f", &["Range: bytes=0-999999"]).body.len(), 1_000_000);
}

/// Sends a request, has the file `f` replaced or removed once the answer has begun, and takes the
/// answer.
fn with_interference(scratch: &Scratch, client: &mut Client, fields: &[&str], removed: bool) {
    // More than the sockets hold.
    let data = pattern(40 << 20);
    let share = scratch.0.join("share");
    scratch.file("share/f", &data);
    scratch.file("new", b"new");
    client.send("GET /share/f", fields, b"");
    client.begin();
    match removed {
        true => std::fs::remove_file(share.join("f")).unwrap(),
        false => std::fs::rename(scratch.0.join("new"), share.join("f")).unwrap(),
    }
    let got = client.reply(false);
    let whole = fields.is_empty();
    assert_eq!(got.status, if whole { 200 } else { 206 });
    assert!(got.body == if whole { &data[..] } else { &data[3..] }, "{fields:?}, {removed}");
}

#[test]
fn a_file_that_is_replaced_or_removed_comes_to_its_end() {
    let scratch = Scratch::new();
    let stand = Stand::of(&scratch);
    for removed in [false, true] {
        for fields in [&[][..], &["Range: bytes=3-"]] {
            with_interference(&scratch, &mut stand.client(), fields, removed);
            with_interference(&scratch, &mut stand.secure_client(), fields, removed);
        }
    }
    assert_eq!(stand.client().get("/share/f", &[]).status, 404);
}

#[test]
fn an_answer_ends_with_its_user() {
    let scratch = Scratch::new();
    let scene = Scene::in_folder(Service::Http, &scratch, PEER_PATIENCE);
    let stand = Stand::over(scene, closed());
    scratch.set_len("share/f", 64 << 20);
    let mut stream = TcpStream::connect(stand.plain).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = "GET /share/f HTTP/1.1\r\nHost: h\r\n\
                   Authorization: Basic YWxpY2U6c2VjcmV0\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stand.scene.users.remove("alice");
    let mut rest = Vec::new();
    let ended = stream.read_to_end(&mut rest);
    assert!(rest.len() < 64 << 20, "{ended:?} after {}", rest.len());
}
