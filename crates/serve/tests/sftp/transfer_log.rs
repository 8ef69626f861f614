//! The transfer log of SFTP: what was read or written by a handle, when the handle ends.

use vfs::share::Service;
use vfs::transfers::Outcome;
use wire::sftp::{Attrs, OpenFlags, StatusCode};

use crate::client::*;
use crate::scene::Scene;

#[test]
fn handles_that_move_something_are_reported() {
    let scene = Scene::in_memory(Service::Sftp);
    let transfers = scene.transfers.clone();
    with_client(&scene, |_, mut c, _| async move {
        c.put_file(b"/share/f", &[7; 200_000]).await;
        assert_eq!(transfers.take(1), ["sftp upload complete /share/f 200000@0"]);
        c.get_file(b"/share/f").await;
        assert_eq!(transfers.take(1), ["sftp download complete /share/f 200000@0"]);
        let new = c.call(open(b"/share/empty", new_file())).await.handle();
        c.done(close(&new)).await;
        assert_eq!(transfers.take(1), ["sftp upload complete /share/empty 0@0"]);
        // A file that is opened and neither read nor written is not a transfer.
        let both = OpenFlags::READ.with(OpenFlags::WRITE);
        let idle = c.call(open(b"/share/f", both)).await.handle();
        c.done(close(&idle)).await;
        let part = c.call(open(b"/share/f", both)).await.handle();
        c.call(read(&part, 1000, 500)).await;
        c.call(read(&part, 1500, 500)).await;
        c.done(write(&part, 10, b"0123456789")).await;
        c.done(close(&part)).await;
        let mut both = transfers.take(2);
        both.sort();
        let expected =
            ["sftp download partial /share/f 1000@1000", "sftp upload complete /share/f 10@10"];
        assert_eq!(both, expected);
    });
}

#[test]
fn handles_that_are_not_closed_are_cut() {
    let scene = Scene::in_memory(Service::Sftp);
    let transfers = scene.transfers.clone();
    with_client(&scene, |_, mut c, _| async move {
        c.put_file(b"/share/f", &[7; 1000]).await;
        let down = c.call(open(b"/share/f", OpenFlags::READ)).await.handle();
        c.call(read(&down, 0, 400)).await;
        let up = c.call(open(b"/share/new", new_file())).await.handle();
        c.done(write(&up, 0, b"new")).await;
        c.lose().await;
        let mut all = transfers.take(3);
        all.sort();
        let expected = [
            "sftp download cut /share/f 400@0",
            "sftp upload complete /share/f 1000@0",
            "sftp upload cut /share/new 3@0",
        ];
        assert_eq!(all, expected);
    });
}

#[test]
fn without_permission_to_read_a_refusal_is_reported() {
    let scene = Scene::in_memory(Service::Sftp);
    let transfers = scene.transfers.clone();
    let cred = vfs::cred::Cred { uid: 4321, gid: 4321, groups: Vec::new() };
    scene.users.add("bob", "secret", cred);
    let bob = scene.caller("bob");
    with_client(&scene, |core, mut c, _| async move {
        let attrs = Attrs { permissions: Some(0o600), ..Attrs::default() };
        c.put_file(b"/share/f", b"mine").await;
        c.done(setstat(b"/share/f", attrs)).await;
        let mut other = Client::hello(&core, bob, atomic_settings()).await;
        let refused = other.call(open(b"/share/f", OpenFlags::READ)).await;
        assert_eq!(refused, Got::Status(StatusCode::PERMISSION_DENIED));
        let refused = transfers.taken(2).remove(1);
        assert_eq!((refused.outcome, refused.person.name.as_str()), (Outcome::Refused, "bob"));
        assert_eq!(refused.path, b"/share/f");
        assert!(!refused.why.is_empty());
    });
}
