//! The way from a path to a file never leads out of a share.

use std::rc::Rc;

use serve::files::list::Listing;
use serve::files::{Caller, Core, Links, PathTarget, VPath};
use vfs::attr::SetAttr;
use vfs::cred::Cred;
use vfs::share::Service;
use vfs::share::rules::Rules;
use vfs::status::Status;

use crate::scene::{NoLookup, Scene};

pub fn path(text: &str) -> VPath {
    VPath::parse(text.as_bytes()).expect("a path")
}

/// Makes a directory, a file and links in the share.
async fn furnish(core: &Rc<Core>, who: &Caller) {
    let spot = core.spot(who, &path("/share/dir"), Links::Keep).await.expect("a place");
    core.make_dir(who, &spot, SetAttr::default()).await.expect("made");
    let spot = core.spot(who, &path("/share/dir/file"), Links::Keep).await.expect("a place");
    core.put(who, &spot, (b"data".to_vec(), SetAttr::default())).await.expect("put");
    for (name, target) in [
        ("good", "dir/file"),
        ("round", "dir/../dir/./file"),
        ("out", "../../etc/passwd"),
        ("sly", "dir/../../share/dir/file"),
        ("absolute", "/etc/passwd"),
        ("own", "/share/dir//file"),
        ("own out", "/share/../share/dir/file"),
        ("other", "/shared/dir/file"),
        ("self", "self"),
        ("up", "dir/.."),
        ("new", "dir/made"),
    ] {
        let spot = core.spot(who, &path(&format!("/share/{name}")), Links::Keep).await;
        core.symlink(who, &spot.expect("a place"), target.as_bytes()).await.expect("a link");
    }
}

#[test]
fn links_are_followed_within_the_share_only() {
    let scene = Scene::in_memory(Service::Ftp);
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        furnish(&core, &who).await;
        let size = async |at: &str| {
            let found = core.find(&who, &path(at), Links::Follow).await?;
            found.node().map(|node| node.attr.size)
        };
        assert_eq!(size("/share/dir/file").await, Ok(4));
        assert_eq!(size("/share/good").await, Ok(4));
        assert_eq!(size("/share/round").await, Ok(4));
        assert_eq!(size("/share/up/dir/file").await, Ok(4));
        assert_eq!(size("/share/own").await, Ok(4), "as clients see it");
        for bad in ["out", "sly", "absolute", "absolute/x", "own out", "other"] {
            assert_eq!(size(&format!("/share/{bad}")).await, Err(Status::Access), "{bad}");
        }
        assert_eq!(size("/share/self").await, Err(Status::Loop));
        assert_eq!(size("/share/new").await, Err(Status::NotFound));
        assert_eq!(size("/share/dir/file/x").await, Err(Status::NotDirectory));
        assert_eq!(size("/nothing/x").await, Err(Status::NotFound));
        assert_eq!(size("/").await, Err(Status::IsDirectory));
        assert!(matches!(core.find(&who, &VPath::ROOT, Links::Keep).await, Ok(PathTarget::Root)));
        // A link itself, and a file made through one.
        let link = core.find(&who, &path("/share/out"), Links::Keep).await.expect("the link");
        let target = core.read_link(&who, &link.node().expect("a node")).await;
        assert_eq!(target.as_deref(), Ok(&b"../../etc/passwd"[..]));
        let spot = core.spot(&who, &path("/share/new"), Links::Follow).await.expect("a place");
        assert_eq!(spot.name, b"made");
        let share = core.spot(&who, &path("/share"), Links::Keep).await;
        assert_eq!(share.err(), Some(Status::NotOwner), "a share is in no directory");
    });
}

#[test]
fn a_listing_is_whole() {
    let scene = Scene::in_memory(Service::Sftp);
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        for n in 0..1_500 {
            let at = path(&format!("/share/{n}"));
            let spot = core.spot(&who, &at, Links::Keep).await.expect("a place");
            core.make_dir(&who, &spot, SetAttr::default()).await.expect("made");
        }
        let dir = core.find(&who, &path("/share"), Links::Follow).await.expect("there");
        let mut listing = Listing::new(dir.node().expect("a node"));
        let mut names = Vec::new();
        while let Some(batch) = listing.next(&core, &who).await.expect("listed") {
            names.extend(batch.into_iter().map(|one| (one.name, one.entry.is_some())));
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 1_500);
        assert!(names.iter().all(|(name, known)| *known && name != b"."));
    });
}

#[test]
fn rules_of_the_service_decide() {
    let scene = Scene::in_memory(Service::Http);
    scene.users.add("bob", "b", Cred { uid: 1000, gid: 1000, groups: Vec::new() });
    let (alice, table) = (scene.caller("alice"), scene.files.shares.load());
    let share = std::sync::Arc::clone(table.by_name("share").expect("the share"));
    scene.run(move |core| async move {
        let spot = core.spot(&alice, &path("/share/a"), Links::Keep).await.expect("a place");
        core.make_dir(&alice, &spot, SetAttr::default()).await.expect("made");
        let read_only = Rules::parse("*(ro)", &NoLookup).expect("rules");
        share.rules_for(Service::Http).set(read_only);
        let spot = core.spot(&alice, &path("/share/b"), Links::Keep).await.expect("a place");
        let refused = core.make_dir(&alice, &spot, SetAttr::default()).await;
        assert_eq!(refused.err(), Some(Status::ReadOnly));
        assert_eq!(core.shares(&alice).len(), 1);
        let nobody = Rules::parse("10.0.0.1(rw)", &NoLookup).expect("rules");
        share.rules_for(Service::Http).set(nobody);
        let refused = core.find(&alice, &path("/share/a"), Links::Keep).await;
        assert_eq!(refused.err(), Some(Status::Access));
        assert!(core.shares(&alice).is_empty(), "nor is it shown");
    });
}

#[test]
fn the_way_through_chains_of_links_has_an_end() {
    let scene = Scene::in_memory(Service::Ftp);
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        furnish(&core, &who).await;
        // Each leads through 200 parts to the one before.
        for n in 0..20 {
            let end = if n == 0 { "dir/file".to_owned() } else { format!("chain{}", n - 1) };
            let target = "dir/../".repeat(100) + &end;
            let spot = core.spot(&who, &path(&format!("/share/chain{n}")), Links::Keep).await;
            let spot = spot.expect("a place");
            core.symlink(&who, &spot, target.as_bytes()).await.expect("a link");
        }
        let find = async |n: usize| {
            let found = core.find(&who, &path(&format!("/share/chain{n}")), Links::Follow).await;
            found.map(|_| ())
        };
        assert_eq!(find(0).await, Ok(()));
        assert_eq!(find(4).await, Ok(()));
        assert_eq!(find(5).await, Err(Status::NameTooLong));
        assert_eq!(find(19).await, Err(Status::NameTooLong));
    });
}

#[test]
fn nothing_leads_out_of_the_callers_root() {
    let scene = Scene::in_memory(Service::Ftp);
    let alice = scene.caller("alice");
    scene.run(move |core| async move {
        furnish(&core, &alice).await;
        for dir in ["home", "home/bob", "home/bob/docs", "home/bobby"] {
            let spot = core.spot(&alice, &path(&format!("/share/{dir}")), Links::Keep).await;
            let spot = spot.expect("a place");
            core.make_dir(&alice, &spot, SetAttr::default()).await.expect("made");
        }
        let link = async |at: &str, target: &str| {
            let spot = core.spot(&alice, &path(at), Links::Keep).await.expect("a place");
            core.symlink(&alice, &spot, target.as_bytes()).await.expect("a link");
        };
        link("/share/homes", "home").await;
        for (name, target) in [
            ("inside", "docs"),
            ("round", "docs/../docs"),
            ("top", "docs/.."),
            ("full", "/share/home/bob/docs"),
            ("chain", "docs/back"),
            ("docs/back", "../full"),
            ("up", ".."),
            ("far", "../../dir/file"),
            ("back", "../bob/docs"),
            ("share", "/share"),
            ("file", "/share/dir/file"),
            ("next", "/share/home/bobby"),
            ("sly", "/share/home/bob/../../dir/file"),
            ("short", "/docs"),
        ] {
            link(&format!("/share/home/bob/{name}"), target).await;
        }
        for root in ["/share/home/bob", "/share/homes/bob"] {
            let bob = alice.clone().rooted(path(root));
            let find = async |at: &str| {
                let found = core.find(&bob, &path(&format!("{root}/{at}")), Links::Follow).await;
                found.map(|_| ())
            };
            for good in ["", "docs", "inside", "round", "top/docs", "docs/back/back"] {
                let expect = if root.contains("homes") && good.contains("back") {
                    // It goes by another way than the one that bob was given.
                    Err(Status::Access)
                } else {
                    Ok(())
                };
                assert_eq!(find(good).await, expect, "{good:?} below {root}");
            }
            for bad in ["up", "far", "back", "share", "file", "next", "sly", "short"] {
                assert_eq!(find(bad).await, Err(Status::Access), "{bad} below {root}");
                let within = path(&format!("{root}/{bad}/new"));
                let made = core.spot(&bob, &within, Links::Keep).await;
                assert_eq!(made.err(), Some(Status::Access), "through {bad} below {root}");
            }
            for outside in ["/", "/share", "/share/dir/file", "/share/home/bobby"] {
                let found = core.find(&bob, &path(outside), Links::Follow).await;
                assert_eq!(found.err(), Some(Status::Access), "{outside}");
            }
            let own = core.spot(&bob, &path(root), Links::Keep).await;
            assert_eq!(own.err(), Some(Status::NotOwner), "it is in no directory of his");
            // The link itself can be seen, and removed.
            let spot = core.spot(&bob, &path(&format!("{root}/far")), Links::Keep).await;
            assert_eq!(spot.expect("a place").name, b"far");
        }
    });
}
