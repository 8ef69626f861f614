//! What an open may do, if its client requests MAXIMUM_ALLOWED.

use e2e::smb::scene::{SHARE, Scene};
use e2e::smb::{Ask, Offer};
use e2e::tcp::address;
use serde_json::json;
use wire::smb::create::{access, options};
use wire::smb::status::NtStatus;

#[test]
fn delete_on_close_without_the_right_to_delete_keeps_no_client_out() {
    let scene = Scene::new("smb-delete", &[]);
    std::fs::write(scene.share.join("f"), b"read by all").expect("a file");
    let share = format!("/shares/default/{SHARE}");
    scene.change(&json!([{"set": share, "property": "read_only", "value": true}]));
    let reads = Ask { access: access::READ, ..Ask::open("f") };
    let mut reader = scene.anna().expect("let in");
    reader.create(&reads).expect("an answer").expect("the file");
    let mut other = scene.anna_from(address(8), &Offer::default()).expect("let in");
    let most = Ask { access: access::MAXIMUM_ALLOWED, ..reads };
    let opened = other.create(&most).expect("an answer").expect("the file");
    assert_eq!(other.close(opened).expect("an answer"), NtStatus::SUCCESS);
    let refused = other.create(&most.with(options::DELETE_ON_CLOSE)).expect("an answer");
    if let Ok(file) = refused {
        // An open now would be refused with STATUS_DELETE_PENDING.
        let _ = other.close(file);
    }
    let again = other.create(&reads).expect("an answer");
    assert_eq!((refused, again.err()), (Err(NtStatus::ACCESS_DENIED), None));
    assert!(scene.share.join("f").exists());
}
