//! FTPS: explicit and implicit, protected data, resumed sessions.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::ClientConfig;
use serve::ftp::Settings;
use wire::ftp::{Request, Verb};

use crate::client::{Client, Running, Stream, connect};

/// A client that has signed in over TLS.
pub fn protected(running: &Running, config: &Arc<ClientConfig>) -> Client {
    let mut c = running.client();
    assert_eq!(c.code_of("AUTH TLS"), 234);
    c.secure(config);
    assert_eq!(c.code_of("PBSZ 0"), 200);
    assert_eq!(c.code_of("PROT P"), 200);
    c.sign_in("alice", "secret");
    assert_eq!(c.code_of("CWD /share"), 250);
    assert_eq!(c.code_of("TYPE I"), 200);
    c.protect = Some(Arc::clone(config));
    c
}

#[test]
fn data_is_protected() {
    let running = Running::with(Settings { protect_data: true, ..Settings::default() });
    let mut c = protected(&running, &running.config);
    let data: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
    c.put("file", &data);
    assert!(c.get("file") == data);
    assert_eq!(c.names(), ["file"]);
    assert_eq!(c.code_of("PROT C"), 534);
    assert_eq!(c.code_of("CCC"), 534);
    assert_eq!(c.code_of("AUTH TLS"), 503);
    let mut plain = running.signed_in();
    plain.passive();
    assert_eq!(plain.code_of("LIST"), 521);
    assert_eq!(plain.code_of("PROT P"), 503);
}

#[test]
fn tls_comes_first_at_the_other_port() {
    let running = Running::with(Settings::default());
    let mut c = Client::to(running.implicit);
    c.secure(&running.config);
    assert_eq!(c.reply().code, 220);
    c.sign_in("alice", "secret");
    c.protect = Some(Arc::clone(&running.config));
    assert_eq!(c.code_of("CWD share"), 250);
    c.put("file", b"x");
    assert_eq!(c.get("file"), b"x");
}

#[test]
fn data_connections_may_have_to_resume_the_session() {
    let running = Running::with(Settings { session_reuse: true, ..Settings::default() });
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let config = running.config_of(version);
        let mut c = protected(&running, &config);
        for n in 0..8 {
            c.put("file", &[n; 10]);
            assert_eq!(c.get("file"), [n; 10]);
        }
        // Another client's session is none of this one's.
        let mut other = protected(&running, &running.config_of(version));
        other.put("other", b"x");
        c.protect = other.protect.clone();
        let mut data = c.begin(&Request::Text(Verb::Retr, b"file"));
        // Whatever the server has sent on it.
        let _ = data.read(&mut [0; 100]);
        assert_eq!(c.reply().code, 522);
        c.protect = Some(config);
        assert_eq!(c.get("file"), [7; 10]);
    }
}

/// A client that closes a connection with unread data resets it: then the end of what it has sent
/// may be lost.
#[test]
fn an_upload_connection_has_nothing_to_read() {
    let running = Running::with(Settings { session_reuse: true, ..Settings::default() });
    let mut c = protected(&running, &running.config_of(&rustls::version::TLS13));
    let mut data = c.begin(&Request::Text(Verb::Stor, b"file"));
    data.write_all(b"all of it").expect("sent");
    let Stream::Tls(mut tls) = data else { panic!("it is protected") };
    tls.conn.send_close_notify();
    tls.flush().expect("sent");
    assert_eq!(c.reply().code, 226);
    let mut left = Vec::new();
    tls.sock.read_to_end(&mut left).expect("its end");
    // An alert in its record: a ticket is several times as long.
    assert!(left.len() < 50, "{} bytes", left.len());
    assert_eq!(c.get("file"), b"all of it");
}

#[test]
fn nothing_sent_unencrypted_counts_under_tls() {
    let running = Running::with(Settings::default());
    let mut c = running.client();
    c.send(b"AUTH TLS\r\nUSER alice\r\n");
    assert_eq!(c.reply().code, 421);
    assert!(c.next().is_none());
    let mut c = running.client();
    c.sign_in("alice", "secret");
    assert_eq!(c.code_of("AUTH TLS"), 234);
    c.secure(&running.config);
    assert_eq!(c.code_of("PWD"), 530, "who had signed in had said so in the clear");
}

#[test]
fn what_is_no_tls_ends_the_connection_and_is_counted() {
    let running = Running::with(Settings::default());
    let mut c = running.client();
    assert_eq!(c.code_of("AUTH TLS"), 234);
    c.send(b"USER alice\r\n");
    let mut came = Vec::new();
    let _ = c.stream().read_to_end(&mut came);
    assert!(!came.starts_with(b"331"));
    let failures = &running.scene.files.engine.budgets.tls_failures;
    assert_eq!(failures.load(std::sync::atomic::Ordering::Relaxed), 1);
    // And on a data connection the transfer fails, not the session.
    let mut c = protected(&running, &running.config);
    let at = c.passive();
    let mut data = connect(at);
    assert_eq!(c.code_of("LIST"), 150);
    data.write_all(b"this is no ClientHello").expect("sent");
    assert_eq!(c.reply().code, 425);
    assert_eq!(c.code_of("NOOP"), 200);
}
