//! Large files of a folder over unencrypted connections: the kernel sends them, and whatever
//! happens to the file or the client meanwhile, no reply is wrong.

use std::io::Read;
use std::os::unix::fs::FileExt;

use base::limits::PEER_PATIENCE;
use serve::ftp::Settings;
use vfs::share::Service;
use wire::ftp::{Request, Verb};

use crate::client::{Client, Running, Stream};
use crate::scene::{Scene, Scratch};
use crate::tls::protected;

fn running(folder: &Scratch) -> Running {
    let scene = Scene::in_folder(Service::Ftp, folder, PEER_PATIENCE);
    Running::over(scene, Settings::default())
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 11 + n / 253) as u8).collect()
}

/// A transfer of which the first bytes have come.
fn begun(c: &mut Client, path: &str) -> Stream {
    let mut data = c.begin(&Request::Text(Verb::Retr, path.as_bytes()));
    data.read_exact(&mut [0; 1000]).expect("a beginning");
    data
}

#[test]
fn files_of_all_sizes_and_their_ends_come_from_a_folder() {
    let folder = Scratch::new();
    let running = running(&folder);
    let mut c = running.signed_in();
    for len in [0, 1, 65_535, 65_536, 1 << 20, (1 << 20) + 1, 5_000_003] {
        let data = pattern(len);
        folder.file("share/f", &data);
        assert!(c.get("f") == data, "{len}");
        c.put("g", &data);
        assert!(folder.read("share/g") == data, "{len}");
    }
    assert_eq!(c.code_of("REST 1000001"), 350);
    assert!(c.get("f") == pattern(5_000_003)[1_000_001..]);
    assert_eq!(c.code_of("REST 5000003"), 350);
    assert!(c.get("f").is_empty());
    assert_eq!(c.code_of("TYPE A"), 200);
    folder.file("share/text", &b"a line\n".repeat(50_000));
    assert!(c.get("text") == b"a line\r\n".repeat(50_000), "text is not as it is in the file");
}

#[test]
fn a_restart_far_behind_the_beginning_is_found() {
    let folder = Scratch::new();
    let running = running(&folder);
    let mut c = running.signed_in();
    let (size, data) = (5_u64 << 30, pattern(300_000));
    folder.set_len("share/sparse", size).write_all_at(&data, size - 300_000).expect("written");
    assert_eq!(c.code_of(&format!("REST {}", size - 1_300_000)), 350);
    let got = c.get("sparse");
    assert_eq!(got.len(), 1_300_000);
    assert!(got[..1_000_000].iter().all(|b| *b == 0) && got[1_000_000..] == data);
}

#[test]
fn a_file_that_becomes_shorter_is_no_complete_transfer() {
    let folder = Scratch::new();
    let running = running(&folder);
    let mut c = running.signed_in();
    for length in [1000, 0] {
        folder.set_len("share/f", 64 << 20);
        let data = begun(&mut c, "f");
        folder.set_len("share/f", length);
        assert!(data.all().len() < 64 << 20);
        assert_eq!(c.reply().code, 451);
    }
    assert_eq!(c.get("f"), b"");
}

#[test]
fn a_client_that_goes_takes_nothing_with_it() {
    let folder = Scratch::new();
    let running = running(&folder);
    let mut c = running.signed_in();
    folder.set_len("share/f", 64 << 20);
    drop(begun(&mut c, "f"));
    assert_eq!(c.reply().code, 426);
    assert_eq!(c.get("f").len(), 64 << 20);
}

#[test]
fn a_file_that_is_replaced_or_removed_comes_to_its_end() {
    let folder = Scratch::new();
    let running = running(&folder);
    // More than the sockets hold.
    let data: Vec<u8> = (0..4 << 20).flat_map(|n| format!("{n:07}\n").into_bytes()).collect();
    let text = String::from_utf8_lossy(&data).replace('\n', "\r\n").into_bytes();
    let share = folder.0.join("share");
    for (kind, secure) in [("I", false), ("I", true), ("A", false)] {
        for removed in [false, true] {
            let mut c = match secure {
                true => protected(&running, &running.config),
                false => running.signed_in(),
            };
            folder.file("share/f", &data);
            folder.file("share/new", b"new");
            assert_eq!(c.code_of(&format!("TYPE {kind}")), 200);
            let mut stream = c.begin(&Request::Text(Verb::Retr, b"f"));
            stream.read_exact(&mut [0; 1000]).expect("a beginning");
            match removed {
                true => std::fs::remove_file(share.join("f")).expect("removed"),
                false => {
                    let mut other = running.signed_in();
                    assert_eq!(other.code_of("RNFR new"), 350);
                    assert_eq!(other.code_of("RNTO f"), 250);
                }
            }
            let mut rest = Vec::new();
            let ended = stream.read_to_end(&mut rest);
            let reply = c.reply();
            let what = format!("{kind}, secure {secure}, removed {removed}: {ended:?}, {reply:?}");
            assert_eq!(reply.code, 226, "{what}");
            let expect = if kind == "A" { &text } else { &data };
            assert!(rest == expect[1000..], "{what}");
        }
    }
}
