//! What FTP, SFTP, HTTP and WebDAV have acknowledged is there after a power cut, on a file system
//! that forgets what was not flushed; what they have not is there whole or not at all. Leaving out
//! any one flush must be noticed. The same for the locks of WebDAV. What an upload that was cut off
//! has left is removed.

#[path = "crash_files/cases.rs"]
mod cases;
#[path = "crash_files/dsync.rs"]
mod dsync;
#[path = "crash_files/locks.rs"]
mod locks;
#[path = "crash_files/properties.rs"]
mod properties;
#[path = "crash_files/swept.rs"]
mod swept;
#[path = "crash_files/world.rs"]
mod world;

use std::collections::BTreeSet;

use cases::{Case, Thing, all};
use e2e::skip;
use sim::forget;
use world::World;

/// Does a case; what of it a power cut right after the answer would take.
fn lost(world: &World, speakers: &mut cases::Speakers, case: &Case) -> Option<String> {
    (case.act)(speakers, &format!("/share/{}", case.name));
    case.lost(&world.mounted.image())
}

#[test]
fn what_was_acknowledged_is_there() {
    if let Err(why) = forget::available() {
        skip!("crash-files", "{why}");
    }
    let mut world = World::new(None, false);
    all().for_each(|case| world.prepare(case));
    world.start();
    let mut speakers = world.speakers();
    for case in all() {
        if let Some(what) = lost(&world, &mut speakers, case) {
            panic!("{}: {what}", case.name);
        }
    }
    drop(speakers);
    // A cut that really comes, and a server after it, leave all of it.
    world.power_cut();
    world.start();
    let image = world.mounted.image();
    for case in all() {
        assert_eq!(case.lost(&image), None, "{}", case.name);
    }
}

#[test]
fn leaving_out_any_one_flush_is_noticed() {
    if let Err(why) = forget::available() {
        skip!("crash-files-each-flush", "{why}");
    }
    let sites: BTreeSet<&'static str> = all().flat_map(|case| case.needs).copied().collect();
    let mut unnoticed = Vec::new();
    for site in sites {
        let concerned = || all().filter(|case| case.needs.contains(&site));
        let mut world = World::new(Some(site), false);
        concerned().for_each(|case| world.prepare(case));
        world.start();
        let mut speakers = world.speakers();
        for case in concerned() {
            match lost(&world, &mut speakers, case) {
                Some(what) => println!("without {site}: {}: {what}", case.name),
                None => unnoticed.push((site, case.name)),
            }
        }
    }
    assert!(unnoticed.is_empty(), "nobody noticed that these were left out: {unnoticed:?}");
}

/// What replaces a file as a whole.
const WHOLE: [&str; 7] = [
    "ftp-stor",
    "ftp-stor-big",
    "sftp-close",
    "http-put",
    "http-put-big",
    "http-in-parts",
    "dav-copy",
];

#[test]
fn what_was_not_acknowledged_is_there_whole_or_not_at_all() {
    if let Err(why) = forget::available() {
        skip!("crash-files-half", "{why}");
    }
    let mut world = World::new(None, false);
    let concerned = || all().filter(|case| WHOLE.contains(&case.name));
    concerned().for_each(|case| world.prepare(case));
    world.start();
    let mut speakers = world.speakers();
    for case in concerned() {
        // The cut comes before each call that the file system gets.
        world.mounted.keep_images(Box::new(|_, _| true));
        let done = lost(&world, &mut speakers, case);
        assert_eq!(done, None, "{}", case.name);
        let images = world.mounted.take_images();
        let replaced = case.after.last().expect("what is replaced");
        let path = format!("share/{}/{}", case.name, replaced.0);
        let (mut old, mut new) = (0, 0);
        for image in &images {
            let left = image.left.look(&path);
            match (Thing::Old.differs(left.as_ref()), replaced.1.differs(left.as_ref())) {
                (None, _) => old += 1,
                (_, None) => new += 1,
                (_, Some(what)) => panic!("{}, call {}: {what}", case.name, image.call),
            }
        }
        println!("{}: {old} moments with the old file, {new} with the new one", case.name);
        assert!(old > 0, "{}: not one moment before", case.name);
    }
}
