//! Data: up, down, resumed, aborted, in ASCII, by all kinds of data connections.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;

use serve::ftp::{Settings, Uploads};
use vfs::mem::MemFs;
use vfs::share::{Service, tag};
use wire::ftp::{Request, Verb, addr};

use crate::client::{Client, PATIENCE, Running, connect, listener};
use crate::scene::Scene;

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i as u64).wrapping_mul(0x9e37_79b9) as u8).collect()
}

fn stor(path: &str) -> Request<'_> {
    Request::Text(Verb::Stor, path.as_bytes())
}

/// Waits until a file is as long as that, or is not there.
fn until(c: &mut Client, path: &str, size: Option<usize>) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let reply = c.ask(&format!("SIZE {path}"));
        let now = (reply.code == 213).then(|| String::from_utf8_lossy(&reply.lines[0]).parse());
        if now == size.map(Ok) {
            return;
        }
        assert!(Instant::now() < deadline, "{path}: {now:?} instead of {size:?}");
    }
}

#[test]
fn files_of_all_sizes_come_back() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    for len in [0, 1, 65_535, 65_536, 65_537, 262_144, 1_000_003, 3 << 20] {
        let data = bytes(len);
        c.put("file", &data);
        assert_eq!(c.text("SIZE file"), len.to_string());
        assert!(c.get("file") == data, "{len}");
    }
    assert_eq!(c.names(), ["file"]);
    assert_eq!(c.code_of("SIZE ."), 550);
    assert_eq!(c.code_of("RETR none"), 550);
    assert_eq!(c.code_of("STOR none/x"), 550);
    assert_eq!(c.code_of("STOR ."), 550);
}

#[test]
fn transfers_are_resumed() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    let data = bytes(300_000);
    c.put("file", &data[..100_000]);
    assert_eq!(c.code_of("REST 100000"), 350);
    assert_eq!(c.store(&stor("file"), &data[100_000..200_000]), 226);
    assert_eq!(c.store(&Request::Text(Verb::Appe, b"file"), &data[200_000..]), 226);
    assert!(c.get("file") == data);
    assert_eq!(c.code_of("REST 299999"), 350);
    assert_eq!(c.get("file"), data[299_999..]);
    assert_eq!(c.get("file").len(), data.len(), "a REST holds for one transfer");
    assert_eq!(c.code_of("REST 300001"), 350);
    assert_eq!(c.code_of("RETR file"), 554);
    assert_eq!(c.code_of("REST 1"), 350);
    assert_eq!(c.code_of("STOR none"), 550);
    assert_eq!(c.code_of("REST 1"), 350);
    assert_eq!(c.code_of("APPE file"), 450);
    assert_eq!(c.store(&Request::Text(Verb::Appe, b"new"), b"n"), 226);
}

#[test]
fn what_is_appended_goes_to_the_end_as_it_is_when_it_comes() {
    let running = Running::with(Settings::default());
    let (mut c, mut other) = (running.signed_in(), running.signed_in());
    let appe = Request::Text(Verb::Appe, b"file");
    // In one piece, and in several.
    for size in [4, 1 << 20] {
        let data = bytes(size);
        c.put("file", b"before");
        let mut first = c.begin(&appe);
        assert_eq!(other.store(&appe, b"between"), 226);
        first.write_all(&data).expect("taken");
        first.finish();
        assert_eq!(c.reply().code, 226);
        assert!(c.get("file") == [b"beforebetween", data.as_slice()].concat(), "{size}");
    }
}

#[test]
fn an_upload_that_breaks_off_leaves_nothing_and_what_was_there_before() {
    let running = Running::with(Settings::default());
    let (mut c, mut other) = (running.signed_in(), running.signed_in());
    other.put("old", b"before");
    for path in ["old", "new"] {
        let mut data = c.begin(&stor(path));
        data.write_all(&bytes(1 << 20)).expect("taken");
        c.send(b"\xff\xf4\xff\xf2ABOR\r\n");
        assert_eq!(c.reply().code, 426);
        assert_eq!(c.reply().code, 226);
    }
    let mut gone = running.signed_in();
    let mut data = gone.begin(&stor("new"));
    data.write_all(&bytes(1 << 20)).expect("taken");
    drop(gone);
    // The control connection has gone: the end of the data is not the end of the file.
    data.try_finish();
    until(&mut other, "new", None);
    assert_eq!(other.get("old"), b"before");
    assert_eq!(other.names(), ["old"]);
}

#[test]
fn an_upload_in_place_is_there_as_far_as_it_came() {
    let running = Running::with(Settings { uploads: Uploads::InPlace, ..Settings::default() });
    let (mut c, mut other) = (running.signed_in(), running.signed_in());
    let mut data = c.begin(&stor("file"));
    data.write_all(&bytes(64 << 10)).expect("taken");
    until(&mut other, "file", Some(64 << 10));
    c.send(b"ABOR\r\n");
    assert_eq!((c.reply().code, c.reply().code), (426, 226));
    assert_eq!(other.text("SIZE file"), (64 << 10).to_string());
}

#[test]
fn urgent_data_ends_a_transfer_that_stands_still() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    c.put("large", &bytes(64 << 20));
    let mut data = c.begin(&Request::Text(Verb::Retr, b"large"));
    let mut some = [0; 1000];
    data.read_exact(&mut some).expect("a beginning");
    let socket = socket2::SockRef::from(c.stream().socket());
    socket.send_out_of_band(b"\xff\xf4\xff").expect("urgent");
    c.send(b"\xf2ABOR\r\n");
    assert_eq!((c.reply().code, c.reply().code), (426, 226));
    assert_eq!(c.code_of("NOOP"), 200);
}

#[test]
fn questions_are_answered_while_data_flows_and_commands_after_it() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    let mut data = c.begin(&stor("file"));
    data.write_all(&bytes(1000)).expect("taken");
    assert_eq!(c.code_of("STAT"), 213);
    c.send(b"NOOP\r\nSIZE file\r\n");
    assert_eq!(c.code_of("STAT"), 213);
    data.finish();
    assert_eq!(c.reply().code, 226);
    assert_eq!(c.reply().code, 200);
    assert_eq!(c.reply().lines[0], b"1000");
    let mut data = c.begin(&stor("last"));
    data.write_all(b"x").expect("taken");
    c.send(b"QUIT\r\n");
    data.finish();
    assert_eq!((c.reply().code, c.reply().code), (226, 221));
    assert!(c.next().is_none());
}

#[test]
fn text_has_its_own_ends_of_lines() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    assert_eq!(c.code_of("TYPE A"), 200);
    c.put("text", b"one\r\ntwo\r\n\rthree");
    assert_eq!(c.text("SIZE text"), "16");
    assert_eq!(c.get("text"), b"one\r\ntwo\r\n\rthree");
    assert_eq!(c.code_of("REST 1"), 501);
    let lines = b"a line\r\n".repeat(100_000);
    c.put("long", &lines);
    assert_eq!(c.text("SIZE long"), lines.len().to_string());
    assert!(c.get("long") == lines);
    assert_eq!(c.code_of("TYPE I"), 200);
    assert_eq!(c.get("text"), b"one\ntwo\n\rthree");
    assert_eq!(c.text("SIZE long"), (lines.len() - 100_000).to_string());
}

#[test]
fn the_client_may_wait_instead() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    c.put("file", b"data");
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    for extended in [false, true] {
        let listener = listener(local);
        let at = listener.local_addr().expect("an address");
        let SocketAddr::V4(v4) = at else { panic!("not of version 4") };
        let request = if extended { Request::Eprt(at) } else { Request::Port(v4) };
        assert_eq!(c.request(&request).code, 200);
        assert_eq!(c.code_of("RETR file"), 150);
        let (mut data, _) = listener.accept().expect("a call");
        let mut all = Vec::new();
        data.read_to_end(&mut all).expect("data");
        assert_eq!(all, b"data");
        assert_eq!(c.reply().code, 226);
    }
    let reply = c.ask("PASV");
    assert_eq!(reply.code, 227);
    let at = addr::pasv_reply(&reply.lines[0]).expect("an address");
    let data = connect(SocketAddr::V4(at));
    assert_eq!(c.code_of("RETR file"), 150);
    assert_eq!(crate::client::Stream::Plain(data).all(), b"data");
    assert_eq!(c.reply().code, 226);
    assert_eq!(c.code_of("RETR file"), 425, "one connection for each transfer");
}

#[test]
fn stou_returns_the_name() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    let data = c.passive();
    let mut data = connect(data);
    let reply = c.ask("STOU");
    assert_eq!(reply.code, 150);
    let name = String::from_utf8(reply.lines[0].clone()).expect("text");
    let name = name.strip_prefix("FILE: ").expect("RFC 1123").to_owned();
    data.write_all(b"unique").expect("taken");
    drop(data);
    assert_eq!(c.reply().code, 226);
    assert_eq!(c.get(&name), b"unique");
}

#[test]
fn bytes_and_commands_are_counted() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    c.put("file", &bytes(1 << 20));
    assert_eq!(c.get("file").len(), 1 << 20);
    let deadline = Instant::now() + PATIENCE;
    while running.scene.files.engine.budgets.moved.load(std::sync::atomic::Ordering::Relaxed)
        < 2 << 20
    {
        assert!(Instant::now() < deadline, "not counted");
    }
}

#[test]
fn where_there_is_no_room_the_old_file_stays() {
    let share: std::sync::Arc<dyn vfs::fs::FileSystem> = MemFs::new(tag("share"), 1 << 20);
    let running =
        Running::over(Scene::over(Service::Ftp, &[("share", share)]), Settings::default());
    let mut c = running.signed_in();
    c.put("old", b"before");
    // The server ends the data connection when it cannot continue.
    let store = |c: &mut Client, request: &Request<'_>, size| {
        let mut data = c.begin(request);
        let _cut = data.write_all(&bytes(size));
        data.try_finish();
        c.reply().code
    };
    // In one operation with its name, and in pieces.
    for size in [1 << 20, 3 << 20] {
        for path in ["old", "new"] {
            assert_eq!(store(&mut c, &stor(path), size), 452, "{path}, {size} bytes");
        }
        assert_eq!(c.get("old"), b"before");
        assert_eq!(c.names(), ["old"]);
    }
    // In place what could be written stays.
    for begin in ["APPE", "REST"] {
        let request = match begin {
            "APPE" => Request::Text(Verb::Appe, b"old"),
            _ => {
                assert_eq!(c.code_of("REST 6"), 350);
                stor("old")
            }
        };
        assert_eq!(store(&mut c, &request, 3 << 20), 452, "{begin}");
        assert!(c.get("old").starts_with(b"before"), "{begin}");
    }
}
