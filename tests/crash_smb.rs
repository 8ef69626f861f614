//! What SMB has acknowledged is there after a power cut, on a file system that forgets what was not
//! flushed: what CREATE made, data behind FLUSH and of WRITE_THROUGH, names that SET_INFO changed,
//! and that what was to be deleted is gone after its last CLOSE; persistent handles with what they
//! deny and their locks. Leaving out any one flush must be noticed.

#[path = "crash_smb/cases.rs"]
mod cases;
#[path = "crash_smb/cuts.rs"]
mod cuts;
#[path = "crash_smb/model.rs"]
mod model;
#[path = "crash_smb/persistent.rs"]
mod persistent;
#[path = "crash_smb/world.rs"]
mod world;

use std::collections::BTreeSet;

use cases::{CASES, Case};
use e2e::skip;
use e2e::smb::Smb;
use sim::forget;
use world::World;

/// Does a case; what of it a power cut right after the answer would take.
fn lost(world: &World, smb: &mut Smb, case: &Case) -> Option<String> {
    println!("{}", case.name);
    (case.act)(smb, case.name);
    case.lost(&world.mounted.image())
}

#[test]
fn what_was_acknowledged_is_there() {
    if let Err(why) = forget::available() {
        skip!("crash-smb", "{why}");
    }
    let mut world = World::new(None);
    world.start();
    CASES.iter().for_each(|case| world.prepare(case));
    let mut smb = world.connect().expect("a connection");
    for case in &CASES {
        if let Some(what) = lost(&world, &mut smb, case) {
            panic!("{}: {what}", case.name);
        }
    }
    drop(smb);
    // A cut that really comes, and a server after it, leave all of it.
    world.power_cut();
    world.start();
    let image = world.mounted.image();
    for case in &CASES {
        assert_eq!(case.lost(&image), None, "{}", case.name);
    }
    drop(world.connect().expect("anna is let in again"));
}

#[test]
fn leaving_out_any_one_flush_of_smb_is_noticed() {
    if let Err(why) = forget::available() {
        skip!("crash-smb-each-flush", "{why}");
    }
    let sites: BTreeSet<&'static str> = CASES.iter().flat_map(|case| case.needs).copied().collect();
    let mut unnoticed = Vec::new();
    for site in sites {
        let concerned = || CASES.iter().filter(|case| case.needs.contains(&site));
        let mut world = World::new(Some(site));
        world.start();
        concerned().for_each(|case| world.prepare(case));
        let mut smb = world.connect().expect("a connection");
        for case in concerned() {
            match lost(&world, &mut smb, case) {
                Some(what) => println!("without {site}: {}: {what}", case.name),
                None => unnoticed.push((site, case.name)),
            }
        }
    }
    assert!(unnoticed.is_empty(), "nobody noticed that these were left out: {unnoticed:?}");
}
