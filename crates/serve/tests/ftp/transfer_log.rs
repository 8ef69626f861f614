//! The transfer log of FTP: each transfer once, however it ends.

use std::io::Write;

use serve::ftp::Settings;
use vfs::transfers::{Outcome, Security};
use wire::ftp::{Request, Verb};

use crate::client::Running;

#[test]
fn transfers_are_reported_with_what_was_moved() {
    let running = Running::with(Settings::default());
    let transfers = &running.scene.transfers;
    let mut c = running.signed_in();
    c.put("file", &[7; 300_000]);
    assert_eq!(transfers.take(1), ["ftp upload complete /share/file 300000@0"]);
    c.put("small", b"4 KB");
    assert_eq!(transfers.take(1), ["ftp upload complete /share/small 4@0"]);
    c.get("file");
    assert_eq!(transfers.take(1), ["ftp download complete /share/file 300000@0"]);
    assert_eq!(c.code_of("REST 299000"), 350);
    c.get("file");
    assert_eq!(transfers.take(1), ["ftp download complete /share/file 1000@299000"]);
    assert_eq!(c.store(&Request::Text(Verb::Appe, b"file"), b"more"), 226);
    assert_eq!(transfers.take(1), ["ftp upload complete /share/file 4@300000"]);
    // An empty file, with a name that is not UTF-8; missing files and listings are not logged.
    assert_eq!(c.store(&Request::Text(Verb::Stor, b"\xfe"), b""), 226);
    assert_eq!(c.code_of("RETR none"), 550);
    c.fetch(&Request::Maybe(Verb::Nlst, None));
    assert_eq!(c.code_of("REST 900000"), 350);
    assert_eq!(c.code_of("RETR file"), 554);
    let [empty, refused] = transfers.taken(2).try_into().expect("two");
    assert_eq!((empty.path.as_slice(), empty.bytes), (b"/share/\xfe".as_slice(), 0));
    assert_eq!((empty.outcome, empty.security), (Outcome::Complete, None));
    assert_eq!((refused.outcome, refused.bytes), (Outcome::Refused, 0));
    assert!(refused.why.contains("REST position"), "{}", refused.why);
    assert!(refused.begun_ns >= empty.begun_ns + empty.took_ns);
    assert_eq!(
        (refused.person.name.as_str(), refused.client.to_string().as_str()),
        ("alice", "127.0.0.1")
    );
}

#[test]
fn interrupted_transfers_are_reported_as_interrupted() {
    let running = Running::with(Settings::default());
    let transfers = &running.scene.transfers;
    let mut c = running.signed_in();
    let upload = |path: &'static str| Request::Text(Verb::Stor, path.as_bytes());
    let mut data = c.begin(&upload("aborted"));
    data.write_all(&[1; 1 << 20]).expect("taken");
    assert_eq!(c.code_of("ABOR"), 426);
    assert_eq!(c.reply().code, 226);
    let aborted = transfers.taken(1).remove(0);
    assert_eq!((aborted.outcome, &*aborted.why), (Outcome::Cut, "Transfer aborted."));
    assert!(aborted.bytes <= 1 << 20);
    drop(data);
    // The client is gone with all its connections.
    let mut data = c.begin(&upload("lost"));
    data.write_all(&[1; 1 << 20]).expect("taken");
    drop((c, data));
    let lost = transfers.taken(1).remove(0);
    assert_eq!((lost.outcome, lost.path.as_slice()), (Outcome::Cut, b"/share/lost".as_slice()));
}

#[test]
fn protection_is_reported_as_the_data_has_it() {
    let running = Running::with(Settings::default());
    let transfers = &running.scene.transfers;
    let mut c = crate::tls::protected(&running, &running.config);
    c.put("file", b"secret");
    let protected = transfers.taken(1).remove(0);
    let expected = Security { version: "TLSv1.3", cipher: "TLS13_AES_256_GCM_SHA384" };
    assert_eq!((protected.protocol.name(), protected.security), ("ftps", Some(expected)));
    assert_eq!(c.code_of("PROT C"), 200);
    c.protect = None;
    c.put("file", b"open");
    let open = transfers.taken(1).remove(0);
    assert_eq!((open.protocol.name(), open.security), ("ftps", None));
}
