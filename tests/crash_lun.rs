//! What a logical unit has acknowledged is there after a power cut, on a file system that forgets
//! what was not flushed: writes with FUA or without a write cache, everything before a SYNCHRONIZE
//! CACHE, reservations with APTPL, the unit itself. Leaving out any one flush must be noticed.

#[path = "crash_lun/cases.rs"]
mod cases;
#[path = "crash_lun/cuts.rs"]
mod cuts;
#[path = "crash_lun/model.rs"]
mod model;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use e2e::iscsi::{Access, Initiator};
use e2e::scratch::{Scratch, make_folder};
use e2e::server::{Options, Server};
use e2e::skip;
use sim::forget::{self, ForgetFs, Mounted};

use cases::CASES;

/// Port of iSCSI.
const PORT: u16 = 3260;
/// The unit that is used.
const UNIT: &str = "disk=1M";
/// Another one, that is only made.
const OTHER: &str = "other=1M";

/// The server with its state, and so its units, on such a file system.
struct World {
    /// Above `mounted`, so that it is still there when that is unmounted.
    server: Option<Server>,
    mounted: Mounted,
    scratch: Scratch,
    skip: Option<&'static str>,
}

impl World {
    /// Not serving yet; without this flush when it does.
    fn new(skip: Option<&'static str>) -> Self {
        let scratch = Scratch::new("crash-lun");
        let mounted = ForgetFs::mount(&scratch.folder("mount", None)).expect("the mount");
        make_folder(&mounted.path().join("state"), None);
        let root = std::fs::File::open(mounted.path()).expect("the mount");
        root.sync_all().expect("on disk");
        Self { server: None, mounted, scratch, skip }
    }

    fn state(&self) -> PathBuf {
        self.mounted.path().join("state")
    }

    /// Starts it, instead of the one that runs, with these units.
    fn start(&mut self, units: &[&str]) {
        drop(self.server.take());
        let (share, state) = (self.scratch.folder("share", None), self.state());
        let mut options = Options::new(&share, &state);
        options.args = units.iter().flat_map(|unit| ["--lun", unit]).map(Into::into).collect();
        options.env.extend(self.skip.map(|site| ("PLIMSOLL_TEST_SKIP_FLUSH", site.to_owned())));
        self.server = Some(Server::start(&options));
    }

    fn at(&self) -> SocketAddr {
        self.server.as_ref().expect("a server").at(PORT)
    }

    fn initiator(&self, number: u8) -> Initiator {
        let access = Access::of(&self.state());
        Initiator::connect(self.at(), &access, number).expect("a session")
    }

    /// Ends the server at once; then, what was not flushed is gone.
    fn power_cut(&mut self) {
        drop(self.server.take());
        self.mounted.crash();
    }
}

/// Does each case that needs `site` (or all); what a power cut right after would have taken.
fn lost(world: &mut World, site: Option<&str>) -> Vec<(&'static str, String)> {
    // The first unit of a state directory that has been used without, then one more.
    world.start(&[]);
    world.start(&[UNIT]);
    let mut lost = Vec::new();
    if world.mounted.image().look("state/luns/disk.lun").is_none() {
        lost.push(("the first unit", "it is not there".to_owned()));
    }
    world.start(&[UNIT, OTHER]);
    let mut initiator = world.initiator(1);
    for (number, case) in CASES.iter().enumerate() {
        if site.is_some_and(|site| !case.needs.contains(&site)) {
            continue;
        }
        let lba = 16 * number as u64;
        (case.act)(&mut initiator, lba);
        lost.extend(case.after.lost(&world.mounted.image(), lba).map(|what| (case.name, what)));
    }
    lost
}

#[test]
fn what_a_unit_has_acknowledged_is_there() {
    if let Err(why) = forget::available() {
        skip!("crash-lun", "{why}");
    }
    let mut world = World::new(None);
    assert_eq!(lost(&mut world, None), []);
    // A cut that really comes, and a server after it, leave all of it.
    let before = Access::of(&world.state());
    world.power_cut();
    world.start(&[]);
    let after = Access::of(&world.state());
    assert_eq!((before.target, before.secret), (after.target, after.secret), "who it is");
    let image = world.mounted.image();
    for (number, case) in CASES.iter().enumerate() {
        assert_eq!(case.after.lost(&image, 16 * number as u64), None, "{}", case.name);
    }
    drop(world.initiator(1));
}

#[test]
fn leaving_out_any_one_flush_of_units_is_noticed() {
    if let Err(why) = forget::available() {
        skip!("crash-lun-each-flush", "{why}");
    }
    let sites: BTreeSet<&'static str> = CASES.iter().flat_map(|case| case.needs).copied().collect();
    let mut unnoticed = Vec::new();
    for site in sites {
        let lost = lost(&mut World::new(Some(site)), Some(site));
        for case in CASES.iter().filter(|case| case.needs.contains(&site)) {
            match lost.iter().find(|(name, _)| *name == case.name) {
                Some((name, what)) => println!("without {site}: {name}: {what}"),
                None => unnoticed.push((site, case.name)),
            }
        }
    }
    assert!(unnoticed.is_empty(), "nobody noticed that these were left out: {unnoticed:?}");
}
