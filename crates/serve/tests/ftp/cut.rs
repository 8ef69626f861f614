//! Uploads of clients that disconnect before they have the reply: the previous file stays,
//! whichever connection ends first.

use std::net::Shutdown;
use std::sync::Arc;
use std::time::Instant;

use serve::ftp::Settings;
use vfs::cred::Cred;
use vfs::fs::{Context, FileSystem};
use vfs::mem::MemFs;
use vfs::share::rules::Rules;
use vfs::share::{Service, tag};
use wire::ftp::{Request, Verb};

use crate::client::{Client, PATIENCE, Running, Stream};
use crate::scene::{NoLookup, Scene};
use crate::scripted::Scripted;
use crate::tls::protected;

/// Fits in the first piece: the file is made, written and named in one operation.
const SMALL: usize = 1000;
/// Takes several pieces: the file is made when the first is full.
const LARGE: usize = 3 << 20;

/// A service with a gate that can delay operations on the pool.
struct Gated {
    running: Running,
    gate: Arc<Scripted>,
}

impl Gated {
    /// The share `share` with the file `old` in it.
    fn new() -> Self {
        let gate = Scripted::over(MemFs::new(tag("share"), 1 << 30));
        let share: Arc<dyn FileSystem> = gate.clone();
        let running =
            Running::over(Scene::over(Service::Ftp, &[("share", share)]), Settings::default());
        running.signed_in().put("old", b"before");
        running.scene.transfers.take(1);
        Self { running, gate }
    }

    /// Begins an upload to `old` and sends data, but not its end.
    fn begin(&self, c: &mut Client, size: usize) -> Stream {
        use std::io::Write;
        let mut data = c.begin(&Request::Text(Verb::Stor, b"old"));
        data.write_all(&vec![7; size]).expect("taken");
        data.flush().expect("taken");
        data
    }

    /// Ends the data and holds the server up in the operation that follows from it.
    fn end_data(&self, c: &mut Client, mut data: Stream, size: usize) {
        // A large file is made before its end; that must not be what is held up.
        let deadline = Instant::now() + PATIENCE;
        while size == LARGE && c.text("STAT").starts_with("0 ") {
            assert!(Instant::now() < deadline, "nothing was written");
        }
        let begun = self.gate.begun();
        self.gate.close_gate();
        data.finish();
        self.gate.wait_begun(begun + 1);
    }

    /// The upload was cut off: `old` is as it was, and nothing else is there.
    fn is_cut(&self, what: &str) {
        let entries = self.running.scene.transfers.take(1);
        assert!(
            entries[0].starts_with("ftp") && entries[0].contains(" upload cut "),
            "{what}: {entries:?}"
        );
        self.holds(b"before", what);
    }

    fn holds(&self, expect: &[u8], what: &str) {
        assert!(self.running.signed_in().get("old") == expect, "{what}: another file");
        self.running.scene.transfers.take(1);
        let deadline = Instant::now() + PATIENCE;
        while self.names() != [b"old"] {
            assert!(Instant::now() < deadline, "{what}: {:?}", self.names());
        }
    }

    /// Names in the share's directory itself.
    fn names(&self) -> Vec<Vec<u8>> {
        let cred = Cred::root();
        let cx = Context { cred: &cred, may_block: true };
        let mut names = Vec::new();
        let mut each = |entry: vfs::fs::DirEntry<'_>| {
            if entry.name != b"." && entry.name != b".." {
                names.push(entry.name.to_vec());
            }
            true
        };
        let root = self.gate.root();
        self.gate.list(cx, &root, 0, [0; 8], false, &mut each).expect("a list");
        names
    }
}

/// How often each order is tried, with small files and with large ones.
const ROUNDS: [(usize, usize); 2] = [(SMALL, 500), (LARGE, 10)];

#[test]
fn the_control_connection_ends_first() {
    let gated = Gated::new();
    for (size, rounds) in ROUNDS {
        for round in 0..rounds {
            let mut c = gated.running.signed_in();
            let data = gated.begin(&mut c, size);
            drop(c);
            data.try_finish();
            gated.is_cut(&format!("{size} bytes, round {round}"));
        }
    }
}

#[test]
fn the_data_connection_ends_first() {
    let gated = Gated::new();
    for (size, rounds) in ROUNDS {
        for round in 0..rounds {
            let mut c = gated.running.signed_in();
            let data = gated.begin(&mut c, size);
            gated.end_data(&mut c, data, size);
            drop(c);
            gated.gate.open_gate();
            gated.is_cut(&format!("{size} bytes, round {round}"));
        }
    }
}

#[test]
fn the_data_connection_ends_first_under_tls() {
    let gated = Gated::new();
    for size in [SMALL, LARGE] {
        let mut c = protected(&gated.running, &gated.running.config);
        let data = gated.begin(&mut c, size);
        gated.end_data(&mut c, data, size);
        drop(c);
        gated.gate.open_gate();
        gated.is_cut(&format!("{size} bytes"));
    }
}

#[test]
fn commands_that_were_not_read_do_not_hide_the_end() {
    let gated = Gated::new();
    for size in [SMALL, LARGE] {
        let mut c = gated.running.signed_in();
        let data = gated.begin(&mut c, size);
        gated.end_data(&mut c, data, size);
        // More commands than are held during a transfer.
        c.send(&b"NOOP\r\n".repeat(base::limits::FTP_COMMANDS_HELD + 8));
        c.stream().socket().shutdown(Shutdown::Write).expect("a connection");
        gated.gate.open_gate();
        gated.is_cut(&format!("{size} bytes"));
    }
}

#[test]
fn an_aborted_upload_takes_no_name_afterwards() {
    let gated = Gated::new();
    for size in [SMALL, LARGE] {
        let mut c = gated.running.signed_in();
        let data = gated.begin(&mut c, size);
        gated.end_data(&mut c, data, size);
        c.send(b"ABOR\r\n");
        assert_eq!((c.reply().code, c.reply().code), (426, 226));
        gated.gate.open_gate();
        gated.is_cut(&format!("{size} bytes"));
    }
}

#[test]
fn a_client_that_has_sent_quit_may_leave() {
    let gated = Gated::new();
    for size in [SMALL, LARGE] {
        let mut c = gated.running.signed_in();
        let data = gated.begin(&mut c, size);
        gated.end_data(&mut c, data, size);
        c.send(b"NOOP\r\nQUIT\r\n");
        c.stream().socket().shutdown(Shutdown::Write).expect("a connection");
        gated.gate.open_gate();
        let codes = (c.reply().code, c.reply().code, c.reply().code);
        assert_eq!(codes, (226, 200, 221), "{size} bytes");
        gated.running.scene.transfers.take(1);
        gated.holds(&vec![7; size], "complete");
    }
}

#[test]
fn an_upload_and_a_download_end_with_their_rights() {
    let gated = Gated::new();
    let table = gated.running.scene.files.shares.load();
    let share = table.by_name("share").expect("the share");
    let set = |rules: &str| {
        share.rules_for(Service::Ftp).set(Rules::parse(rules, &NoLookup).expect("rules"));
    };
    for size in [SMALL, LARGE] {
        let mut c = gated.running.signed_in();
        let mut data = gated.begin(&mut c, size);
        set("*(ro,no_root_squash)");
        data.try_finish();
        assert_eq!(c.reply().code, 451, "{size} bytes");
        gated.running.scene.transfers.take(1);
        gated.holds(b"before", "after it was made read-only");
        set("*(rw,no_root_squash)");
        c.put("large", &vec![7; 64 << 20]);
        data = c.begin(&Request::Text(Verb::Retr, b"large"));
        set("10.0.0.1(rw)");
        assert!(data.all().len() < 64 << 20);
        assert_eq!(c.reply().code, 451);
        set("*(rw,no_root_squash)");
        assert_eq!(c.code_of("DELE large"), 250);
        gated.running.scene.transfers.take(2);
    }
}

#[test]
fn a_transfer_ends_with_its_user() {
    let gated = Gated::new();
    let users = &gated.running.scene.users;
    for size in [SMALL, LARGE] {
        let mut c = gated.running.signed_in();
        // It waits for data that does not come.
        let data = gated.begin(&mut c, size);
        users.remove("alice");
        assert_eq!(c.reply().code, 421, "{size} bytes");
        assert!(c.next().is_none());
        drop(data);
        users.add("alice", "secret", Cred::root());
        gated.is_cut(&format!("{size} bytes"));
    }
    let mut c = gated.running.signed_in();
    c.put("large", &vec![7; 64 << 20]);
    let data = c.begin(&Request::Text(Verb::Retr, b"large"));
    users.remove("alice");
    assert!(data.all().len() < 64 << 20);
    assert_eq!(c.reply().code, 421);
    assert!(c.next().is_none());
}

#[test]
fn a_transfer_ends_with_the_service() {
    let mut gated = Gated::new();
    let mut c = gated.running.signed_in();
    let data = gated.begin(&mut c, SMALL);
    let ended = gated.running.end();
    assert_eq!(c.reply().code, 421);
    assert!(c.next().is_none());
    drop(data);
    ended.join().expect("it ends");
    let entries = gated.running.scene.transfers.take(1);
    assert!(entries[0].contains(" upload cut "), "{entries:?}");
    assert_eq!(gated.names(), [b"old"]);
}
