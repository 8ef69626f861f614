//! A man in the middle that reads and changes what passes: any change ends the session, and is not
//! executed.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use e2e::smb::relay::{Direction, Relay};
use e2e::smb::scene::{PASSWORD, SHARE, Scene, USER};
use e2e::smb::{Ask, Offer, Protection, SIGNATURE_AT, Smb};
use e2e::tcp::HERE;
use wire::smb::header::{Command, Header, TRANSFORM};
use wire::smb::negotiate::{self, Contexts, Dialect, capabilities};
use wire::smb::status::NtStatus;

/// What is done to requests of a command on their way.
type Change = fn(Vec<u8>) -> Vec<Vec<u8>>;

/// A relay that changes what passes to the server, from when `is_on` is set.
fn relay(
    to: SocketAddr,
    is_on: &Arc<AtomicBool>,
    wanted: fn(&[u8]) -> bool,
    change: Change,
) -> Relay {
    let is_on = Arc::clone(is_on);
    let alter = move |direction, frame: Vec<u8>| match direction == Direction::Request
        && is_on.load(Relaxed)
        && wanted(&frame)
    {
        true => change(frame),
        false => vec![frame],
    };
    Relay::new(to, Box::new(alter)).expect("a relay")
}

fn command(frame: &[u8]) -> Option<Command> {
    Header::decode(frame).ok().map(|header| header.command)
}

fn is_negotiate(frame: &[u8]) -> bool {
    command(frame) == Some(Command::NEGOTIATE)
}

fn is_create(frame: &[u8]) -> bool {
    command(frame) == Some(Command::CREATE)
}

fn is_sealed(frame: &[u8]) -> bool {
    frame.starts_with(&wire::smb::header::MAGIC_TRANSFORM)
}

/// NEGOTIATE with other content.
fn renegotiate(frame: &[u8], change: impl FnOnce(&mut negotiate::Request)) -> Vec<Vec<u8>> {
    let mut request = negotiate::Request::decode(frame).expect("NEGOTIATE");
    change(&mut request);
    let mut changed = frame[..wire::smb::header::HEADER].to_vec();
    request.put(&mut changed, 0);
    vec![changed]
}

fn anna(at: SocketAddr, offer: &Offer) -> io::Result<Smb> {
    Smb::open((HERE, at), offer, (USER, PASSWORD), SHARE)
}

/// What a client does that was let in at a relay; the server has ended the connection by then.
fn is_ended(scene: &Scene, smb: &mut Smb) {
    smb.ends().expect("the end of the connection");
    scene.wait_for_state(0, 0);
}

#[test]
fn an_older_dialect_cannot_be_forced_on_both() {
    let scene = Scene::new("smb-dialects", &[]);
    let on = Arc::new(AtomicBool::new(true));
    let changes: [(Dialect, Change); 3] = [
        (Dialect::SMB302, |frame| older_than(&frame, Dialect::SMB311)),
        (Dialect::SMB300, |frame| older_than(&frame, Dialect::SMB302)),
        (Dialect::SMB210, |frame| older_than(&frame, Dialect::SMB300)),
    ];
    for (dialect, change) in changes {
        let between = relay(scene.at(), &on, is_negotiate, change);
        let mut smb = anna(between.at, &Offer::default()).expect("let in");
        assert_eq!(smb.negotiated.dialect, dialect);
        is_found_out(&scene, &mut smb);
        // The same comparison without a relay in between is answered.
        let mut smb = anna(scene.at(), &Offer::only(dialect)).expect("let in");
        assert_eq!(smb.validate().expect("an answer").status(), NtStatus::SUCCESS);
    }
}

/// NEGOTIATE without this dialect and what came after it.
fn older_than(frame: &[u8], dialect: Dialect) -> Vec<Vec<u8>> {
    renegotiate(frame, |request| {
        request.dialects.retain(|one| *one < dialect);
        request.contexts = Contexts::default();
    })
}

/// The negotiation as both sides saw it is compared under a signature: it differs.
fn is_found_out(scene: &Scene, smb: &mut Smb) {
    let told = smb.validate();
    assert!(
        told.as_ref().is_ok_and(|answer| answer.status() == NtStatus::ACCESS_DENIED),
        "{told:?}"
    );
    is_ended(scene, smb);
}

#[test]
fn encryption_cannot_be_taken_out_of_a_negotiation_of_3_0() {
    let scene = Scene::new("smb-capabilities", &[]);
    let on = Arc::new(AtomicBool::new(true));
    for dialect in [Dialect::SMB300, Dialect::SMB302] {
        let plain: Change = |frame| {
            renegotiate(&frame, |request| request.capabilities &= !capabilities::ENCRYPTION)
        };
        let between = relay(scene.at(), &on, is_negotiate, plain);
        let mut smb = anna(between.at, &Offer::only(dialect)).expect("let in");
        assert_eq!(smb.negotiated.capabilities & capabilities::ENCRYPTION, 0);
        is_found_out(&scene, &mut smb);
    }
}

#[test]
fn what_a_negotiation_of_3_1_1_offers_cannot_be_changed() {
    let scene = Scene::new("smb-contexts", &[]);
    let on = Arc::new(AtomicBool::new(true));
    let changes: [(&str, Change); 3] = [
        ("no ciphers", |frame| renegotiate(&frame, |request| request.contexts.ciphers = None)),
        ("another signature", |frame| {
            renegotiate(&frame, |request| request.contexts.signings = Some(vec![1]))
        }),
        ("another salt", |frame| {
            renegotiate(&frame, |request| request.contexts.salt = Some(vec![6; 32]))
        }),
    ];
    for (what, change) in changes {
        let between = relay(scene.at(), &on, is_negotiate, change);
        // Keys come from what either has seen: the server's last word is not signed as it must be.
        let mut smb = Smb::connect(HERE, between.at, &Offer::only(Dialect::SMB311)).expect(what);
        smb.sign_in(USER, PASSWORD).expect_err(what);
        drop(between);
        scene.wait_for_state(0, 0);
        // A client that does not look is refused with its first request, and the connection ends.
        let between = relay(scene.at(), &on, is_negotiate, change);
        let mut smb = Smb::connect(HERE, between.at, &Offer::only(Dialect::SMB311)).expect(what);
        smb.trusts = true;
        assert_eq!(smb.sign_in(USER, PASSWORD).expect(what), NtStatus::SUCCESS, "{what}");
        let refused = smb.connect_tree(SHARE);
        let is_refused = |tree: Result<_, _>| tree.is_err_and(|why| why == NtStatus::ACCESS_DENIED);
        assert!(refused.is_err() || refused.is_ok_and(is_refused), "{what}");
        is_ended(&scene, &mut smb);
    }
}

/// The first of two that are alike was genuine: what was answered is there, and what the end of the
/// connection has overtaken may be. Nothing else is.
fn is_genuine(scene: &Scene, name: &str, was_answered: bool, what: &str) {
    let is_there = scene.share.join(name).exists();
    match what {
        "repeated" => assert!(is_there || !was_answered, "{name}: it was answered"),
        _ => assert!(!is_there, "{name}: {what}"),
    }
}

#[test]
fn a_signed_request_is_done_once_and_as_it_was_signed() {
    let changes: [(&str, Change); 4] = [
        ("repeated", |frame| vec![frame.clone(), frame]),
        ("another name", |mut frame| {
            // The last byte but one: a letter of the name.
            let at = frame.len() - 2;
            frame[at] ^= 1;
            vec![frame]
        }),
        ("another signature", |mut frame| {
            frame[SIGNATURE_AT] ^= 0x80;
            vec![frame]
        }),
        ("no signature", |mut frame| {
            frame[16] &= !(wire::smb::header::flags::SIGNED as u8);
            vec![frame]
        }),
    ];
    for dialect in Dialect::SERVED {
        let scene = Scene::new("smb-signed", &[]);
        for (number, (what, change)) in changes.into_iter().enumerate() {
            let on = Arc::new(AtomicBool::new(false));
            let between = relay(scene.at(), &on, is_create, change);
            let mut smb = anna(between.at, &Offer::only(dialect)).expect("let in");
            on.store(true, Relaxed);
            let name = format!("made{number}");
            let made = smb.create(&Ask::make(&name));
            if what == "no signature" {
                // It may be a client's mistake, and is refused.
                assert_eq!(made.expect("an answer"), Err(NtStatus::ACCESS_DENIED), "{dialect:?}");
                on.store(false, Relaxed);
                assert_eq!(smb.echo().expect("an answer"), NtStatus::SUCCESS);
                continue;
            }
            is_ended(&scene, &mut smb);
            is_genuine(&scene, &name, matches!(made, Ok(Ok(_))), what);
        }
        let left = std::fs::read_dir(scene.share).expect("the share").count();
        assert!(left <= 1, "{dialect:?}: nothing else was made");
    }
}

#[test]
fn an_encrypted_request_is_done_once_and_as_it_was() {
    let changes: [(&str, Change); 4] = [
        ("repeated", |frame| vec![frame.clone(), frame]),
        ("another byte", |mut frame| {
            let at = frame.len() - 2;
            frame[at] ^= 1;
            vec![frame]
        }),
        ("another nonce", |mut frame| {
            frame[20] ^= 1;
            vec![frame]
        }),
        ("shorter", |mut frame| {
            frame.truncate(TRANSFORM + 80);
            vec![frame]
        }),
    ];
    for dialect in [Dialect::SMB300, Dialect::SMB311] {
        let scene = Scene::new("smb-sealed", &[]);
        for (number, (what, change)) in changes.into_iter().enumerate() {
            let on = Arc::new(AtomicBool::new(false));
            let between = relay(scene.at(), &on, is_sealed, change);
            let mut smb = anna(between.at, &Offer::only(dialect)).expect("let in");
            smb.protection = Protection::Sealed;
            on.store(true, Relaxed);
            let name = format!("made{number}");
            let made = smb.create(&Ask::make(&name));
            is_ended(&scene, &mut smb);
            is_genuine(&scene, &name, matches!(made, Ok(Ok(_))), what);
        }
    }
}
