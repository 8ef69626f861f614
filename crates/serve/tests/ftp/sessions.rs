//! Signing in, and commands without data.

use std::time::{Duration, Instant};

use serve::ftp::{LoginRoot, Settings, TlsUse};
use vfs::cred::Cred;

use crate::client::{Client, Running};

#[test]
fn nothing_without_signing_in() {
    let running = Running::with(Settings::default());
    let mut c = running.client();
    for line in ["PWD", "LIST", "RETR x", "EPSV", "STAT /", "RETR", "SITE CHMOD 644 x", "MKD x"] {
        assert_eq!(c.code_of(line), 530, "{line}");
    }
    for line in ["NOOP", "SYST", "FEAT", "HELP", "STAT", "SITE HELP", "OPTS UTF8 ON"] {
        assert!(c.code_of(line) < 300, "{line}");
    }
    assert_eq!(c.code_of("PASS secret"), 503);
    assert_eq!(c.code_of("FROB"), 500);
    assert_eq!(c.code_of("SMNT x"), 530);
    c.sign_in("alice", "secret");
    assert_eq!(c.text("PWD"), "\"/\" is the current directory.");
    assert_eq!(c.code_of("SMNT x"), 502);
    assert_eq!(c.code_of("REIN"), 220);
    assert_eq!(c.code_of("PWD"), 530);
    assert_eq!(c.code_of("QUIT"), 221);
    assert!(c.next().is_none());
}

#[test]
fn wrong_passwords_take_as_long_as_unknown_names_and_are_not_forgiven() {
    let running = Running::with(Settings::default());
    let mut c = running.client();
    for name in ["alice", "nobody"] {
        assert_eq!(c.code_of(&format!("USER {name}")), 331);
        let began = Instant::now();
        assert_eq!(c.code_of("PASS wrong"), 530);
        let took = began.elapsed();
        assert!(took >= base::limits::FTP_WRONG_STEP - Duration::from_millis(1), "{took:?}");
    }
    assert_eq!(c.code_of("USER alice"), 331);
    assert_eq!(c.code_of("PASS wrong"), 421);
    assert!(c.next().is_none());
}

#[test]
fn removed_users_are_disconnected() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    running.scene.users.add("bob", "b", Cred::root());
    assert_eq!(c.code_of("PWD"), 257);
    running.scene.users.remove("alice");
    assert_eq!(c.code_of("PWD"), 421);
    assert!(c.next().is_none());
}

#[test]
fn a_home_directory_is_where_one_begins_or_all_there_is() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    assert_eq!(c.code_of("MKD home"), 257);
    c.put("outside", b"x");
    running.scene.users.add_at_home("bob", "b", "/share/home");
    running.scene.users.add_at_home("eve", "e", "/share/none");
    let mut bob = running.client();
    bob.sign_in("bob", "b");
    assert_eq!(bob.text("PWD"), "\"/share/home\" is the current directory.");
    assert_eq!(bob.code_of("CWD /share"), 250);
    let root = Settings { login_root: LoginRoot::Home, ..Settings::default() };
    running.server.set(root);
    let mut bob = running.client();
    bob.sign_in("bob", "b");
    assert_eq!(bob.text("PWD"), "\"/\" is the current directory.");
    assert_eq!(bob.code_of("TYPE I"), 200);
    bob.put("mine", b"y");
    for path in ["/share", "../outside", "/../../outside", "/share/outside"] {
        assert_eq!(bob.code_of(&format!("SIZE {path}")), 550, "{path}");
    }
    assert_eq!(bob.code_of("CDUP"), 250);
    assert_eq!(bob.code_of("SIZE mine"), 213);
    // Links that were made over another protocol.
    running.link("home/far", "../outside");
    running.link("home/full", "/share/outside");
    running.link("home/good", "mine");
    for path in ["far", "full"] {
        assert_eq!(bob.code_of(&format!("SIZE {path}")), 550, "{path}");
        assert_eq!(bob.code_of("PASV"), 227);
        assert_eq!(bob.code_of(&format!("STOR {path}")), 550, "{path}");
    }
    assert_eq!(bob.get("good"), b"y");
    assert_eq!(c.get("home/mine"), b"y");
    let mut eve = running.client();
    assert_eq!(eve.code_of("USER eve"), 331);
    assert_eq!(eve.code_of("PASS e"), 530, "no home, and nothing else for her");
}

#[test]
fn anonymous_users_are_let_in_only_where_that_is_set() {
    let running = Running::with(Settings::default());
    let mut c = running.client();
    assert_eq!(c.code_of("USER anonymous"), 331);
    assert_eq!(c.code_of("PASS me@here"), 530);
    running.server.set(Settings { anonymous: true, ..Settings::default() });
    let mut c = running.client();
    c.sign_in("ftp", "me@here");
    assert_eq!(c.code_of("PWD"), 257);
}

#[test]
fn places_are_counted_in_all_and_for_each_address() {
    let settings = Settings { per_address_max: 2, ..Settings::default() };
    let running = Running::with(settings);
    // Those without a signed-in user would make room.
    let (first, _second) = (running.signed_in(), running.signed_in());
    let mut third = Client::to(running.explicit);
    assert_eq!(third.reply().code, 421);
    assert!(third.next().is_none());
    drop(first);
    let until = Instant::now() + crate::client::PATIENCE;
    while running.server.connections() > 1 {
        assert!(Instant::now() < until, "the place is not free again");
    }
    let (mut oldest, _newer) = (running.client(), running.client());
    assert!(oldest.next().is_none(), "the oldest without a user makes room");
}

#[test]
fn silent_clients_are_disconnected() {
    let settings = Settings { idle: Duration::from_millis(200), ..Settings::default() };
    let running = Running::with(settings);
    let mut c = running.signed_in();
    assert_eq!(c.reply().code, 421);
    assert!(c.next().is_none());
}

#[test]
fn the_end_of_the_service_is_reported() {
    let mut c = {
        let running = Running::with(Settings::default());
        running.signed_in()
    };
    assert_eq!(c.reply().code, 421);
    assert!(c.next().is_none());
}

#[test]
fn tls_may_be_required_or_not_offered() {
    let running = Running::with(Settings { tls: TlsUse::Required, ..Settings::default() });
    let mut c = running.client();
    assert_eq!(c.code_of("USER alice"), 530);
    assert_eq!(c.code_of("PASS secret"), 530);
    running.server.set(Settings { tls: TlsUse::Off, ..Settings::default() });
    let mut c = running.client();
    assert_eq!(c.code_of("AUTH TLS"), 502);
    let features = c.ask("FEAT").lines;
    assert!(!features.iter().any(|line| line.starts_with(b"AUTH")));
    assert!(features.iter().any(|line| line.starts_with(b"MLST type*;")));
}

#[test]
fn options_and_questions() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    assert_eq!(c.code_of("STRU F"), 200);
    assert_eq!(c.code_of("STRU R"), 504);
    assert_eq!(c.code_of("MODE S"), 200);
    assert_eq!(c.code_of("MODE Z"), 504);
    assert_eq!(c.code_of("LANG en-GB"), 200);
    assert_eq!(c.code_of("LANG fr"), 504);
    assert_eq!(c.code_of("HOST ftp.example"), 503);
    assert_eq!(c.code_of("CLNT test"), 200);
    assert_eq!(c.code_of("ALLO 5"), 202);
    assert_eq!(c.text("OPTS MLST size;frob;"), "MLST OPTS size;");
    assert_eq!(c.text("OPTS HASH"), "SHA-256");
    assert_eq!(c.code_of("OPTS HASH crc"), 501);
    assert_eq!(c.code_of("ABOR"), 225);
    assert_eq!(c.code_of("CCC"), 533);
    assert_eq!(c.code_of("HELP STOR"), 214);
    assert_eq!(c.code_of("HELP SITE CHMOD"), 214);
    assert_eq!(c.code_of("AVBL"), 213);
    let state = c.ask("STAT").lines;
    assert!(state.iter().any(|line| line.ends_with(b"signed in as alice.")));
}
