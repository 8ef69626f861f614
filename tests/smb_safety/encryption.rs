//! A share that requires encryption answers no unencrypted request.

use e2e::smb::scene::{PASSWORD, SHARE, Scene, USER};
use e2e::smb::{Ask, Offer, Protection, Smb};
use e2e::tcp::HERE;
use serde_json::json;
use wire::smb::codec::Field;
use wire::smb::ioctl::{self, code};
use wire::smb::negotiate::{Cipher, Dialect};
use wire::smb::status::NtStatus;
use wire::smb::tree::share_flags;

fn set(scene: &Scene, value: bool) {
    let share = format!("/shares/default/{SHARE}");
    scene.change(&json!([{"set": share, "property": "smb_encrypt", "value": value}]));
}

fn signed_in(scene: &Scene, offer: &Offer) -> Smb {
    let mut smb = Smb::connect(HERE, scene.at(), offer).expect("a connection");
    assert_eq!(smb.sign_in(USER, PASSWORD).expect("an answer"), NtStatus::SUCCESS);
    smb
}

#[test]
fn a_share_that_requires_encryption_answers_nothing_unencrypted() {
    let scene = Scene::new("smb-encrypt", &[]);
    std::fs::write(scene.share.join("secret"), b"nobody else's business").expect("a file");
    set(&scene, true);
    for dialect in [Dialect::SMB300, Dialect::SMB302, Dialect::SMB311] {
        let mut smb = signed_in(&scene, &Offer::only(dialect));
        let tree = smb.connect_tree(SHARE).expect("an answer").expect("a tree");
        assert!(tree.flags & share_flags::ENCRYPT != 0, "{dialect:?}: it says so");
        let plain = smb.create(&Ask::open("secret")).expect("an answer");
        assert_eq!(plain, Err(NtStatus::ACCESS_DENIED), "{dialect:?}");
        smb.protection = Protection::Sealed;
        let ask = Ask { access: 0x8000_0000, ..Ask::open("secret") };
        let file = smb.create(&ask).expect("an answer").expect("a file");
        let data = smb.read(file, 0, 100).expect("an answer").expect("its data");
        assert_eq!(data, b"nobody else's business");
        // What is open was opened under encryption, and is of no use without.
        smb.protection = Protection::Signed;
        let plain = smb.read(file, 0, 100).expect("an answer");
        assert_eq!(plain, Err(NtStatus::ACCESS_DENIED), "{dialect:?}");
        assert_eq!(smb.flush(file).expect("an answer"), NtStatus::ACCESS_DENIED);
        assert_eq!(smb.close(file).expect("an answer"), NtStatus::ACCESS_DENIED);
    }
    // A client that cannot encrypt is not connected at all.
    let no_cipher = Offer { ciphers: Vec::new(), ..Offer::only(Dialect::SMB311) };
    for offer in [Offer::only(Dialect::SMB210), no_cipher] {
        let tree = signed_in(&scene, &offer).connect_tree(SHARE).expect("an answer");
        assert_eq!(tree.err(), Some(NtStatus::ACCESS_DENIED), "{offer:?}");
    }
    let log = scene.property("log").to_string();
    assert!(log.contains("the share requires encryption"), "{log}");
}

#[test]
fn it_applies_at_once_to_connected_clients() {
    let scene = Scene::new("smb-encrypt-live", &[]);
    for cipher in Cipher::ALL {
        let offer = Offer { ciphers: vec![cipher], ..Offer::only(Dialect::SMB311) };
        let mut smb = signed_in(&scene, &offer);
        let tree = smb.connect_tree(SHARE).expect("an answer").expect("a tree");
        assert_eq!(tree.flags & share_flags::ENCRYPT, 0);
        let name = format!("{cipher:?}");
        let file = smb.create(&Ask::make(&name)).expect("an answer").expect("a file");
        assert_eq!(smb.write(file, 0, b"before", 0).expect("an answer"), NtStatus::SUCCESS);
        set(&scene, true);
        let plain = smb.write(file, 0, b"plain!", 0).expect("an answer");
        assert_eq!(plain, NtStatus::ACCESS_DENIED, "{cipher:?}");
        smb.protection = Protection::Sealed;
        assert_eq!(smb.write(file, 6, b" after", 0).expect("an answer"), NtStatus::SUCCESS);
        set(&scene, false);
        smb.protection = Protection::Signed;
        assert_eq!(smb.close(file).expect("an answer"), NtStatus::SUCCESS);
        let there = std::fs::read(scene.share.join(&name)).expect("the file");
        assert_eq!(there, b"before after");
    }
}

#[test]
fn nothing_is_copied_out_of_it_by_an_unencrypted_request() {
    let scene = Scene::new("smb-encrypt-copy", &[]);
    let plain = json!({"create": "/shares/default", "name": "plain", "properties":
        {"directory": scene.share.with_file_name("plain"), "make_directory": true,
         "root_mode": "777"}});
    scene.change(&json!([plain]));
    std::fs::write(scene.share.join("secret"), b"nobody else's business").expect("a file");
    let mut smb = signed_in(&scene, &Offer::default());
    smb.connect_tree(SHARE).expect("an answer").expect("a tree");
    let ask = Ask { access: 0x8000_0000, ..Ask::open("secret") };
    let source = smb.create(&ask).expect("an answer").expect("a file");
    let key = smb.control(code::REQUEST_RESUME_KEY, source, &[], 32).expect("an answer");
    let key = ioctl::Response::decode(&key.message).expect("a key").output[..24].to_vec();
    smb.connect_tree("plain").expect("an answer").expect("a tree");
    let target = smb.create(&Ask::make("copy")).expect("an answer").expect("a file");
    let mut input = [&key[..], &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
    ioctl::Chunk { source: 0, target: 0, length: 22, reserved: 0 }.put(&mut input);
    let copy = |smb: &mut Smb| {
        smb.control(code::COPYCHUNK, target, &input, 12).expect("an answer").status()
    };
    set(&scene, true);
    assert_eq!(copy(&mut smb), NtStatus::ACCESS_DENIED);
    let copied = || std::fs::read(scene.share.with_file_name("plain").join("copy"));
    assert_eq!(copied().expect("the file"), b"");
    smb.protection = Protection::Sealed;
    assert_eq!(copy(&mut smb), NtStatus::SUCCESS);
    assert_eq!(copied().expect("the file"), b"nobody else's business");
}
