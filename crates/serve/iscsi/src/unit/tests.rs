//! A reported size is there after a power cut, and writes that a snapshot has lost are reported.

use std::fs::{self, File};
use std::net::IpAddr;
use std::path::PathBuf;

use sim::forget::{self, ForgetFs, Mounted};
use vfs::flush::{disable_for_test, enable_for_test};
use vfs::lun::file::{FileMedium, Space, sync_name};

use super::*;

const SIZE: u64 = 1 << 20;

fn address(host: u8) -> IpAddr {
    [192, 0, 2, host].into()
}

/// A file system that forgets, and a unit on it.
struct Bench {
    unit: Arc<Unit>,
    mounted: Mounted,
    folder: PathBuf,
}

impl Bench {
    fn new(number: u8) -> Self {
        let name = format!("plimsoll-test-unit-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let mounted = ForgetFs::mount(&folder).expect("the mount");
        let path = folder.join("unit");
        let medium = FileMedium::create(&path, SIZE, Space::Sparse).expect("a medium");
        sync_name(&path).expect("on disk");
        File::open(&folder).and_then(|folder| folder.sync_all()).expect("on disk");
        let identity = Identity { name: "unit".to_owned(), guid: [0x60; 16], block: 512 };
        let settings = UnitSettings { write_cache: true, read_only: false };
        let unit = Unit::new(identity, Arc::new(medium), settings, None);
        Self { unit, mounted, folder }
    }

    /// Bytes that the unit has after a power cut now.
    fn left(&self) -> u64 {
        self.mounted.image().look("unit").map_or(0, |left| left.data.len() as u64)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // What is mounted goes with its value.
        let _left = fs::remove_dir(&self.folder);
    }
}

#[test]
fn a_size_outlives_a_power_cut_and_leaving_out_its_flush_is_noticed() {
    if let Err(why) = forget::available() {
        println!("SKIP unit-resize: {why}");
        return;
    }
    let bench = Bench::new(0);
    let port = Port { name: "iqn.2026-01.test:i".to_owned(), isid: [1; 6] };
    let nexus = bench.unit.join(port, address(1));
    while nexus.take_unit_attention().is_some() {}
    bench.unit.resize(2 * SIZE).expect("larger");
    assert_eq!(nexus.take_unit_attention(), Some(Asc::CAPACITY_CHANGED));
    assert_eq!(bench.left(), 2 * SIZE);
    disable_for_test(FlushSite::LunResize);
    bench.unit.resize(3 * SIZE).expect("larger");
    assert_eq!((bench.unit.medium.size(), bench.left()), (3 * SIZE, 2 * SIZE), "it was noticed");
    enable_for_test(FlushSite::LunResize);
    bench.unit.resize(SIZE).expect("smaller");
    assert_eq!(bench.left(), SIZE);
}

#[test]
fn writes_that_a_snapshot_finds_lost_are_reported_to_their_initiator() {
    if let Err(why) = forget::available() {
        println!("SKIP unit-snapshot: {why}");
        return;
    }
    let bench = Bench::new(1);
    let medium = FileMedium::open(&bench.folder.join("unit"), false).expect("it is there");
    let (done, written) = medium.ledger().noted(|| medium.write(0, &[7; 512], true));
    done.expect("in the cache");
    bench.mounted.set_flush_failure(true);
    assert!(medium.snapshot(&bench.folder.join("copy")).is_err());
    bench.mounted.set_flush_failure(false);
    assert!(medium.ledger().check(written).is_err(), "a flush would not fail any more");
    drop(medium);
}

#[test]
fn one_initiator_does_not_push_out_the_unflushed_writes_of_others() {
    let entry = |name: &str, isid: u8, host: u8| {
        let port = Port { name: name.to_owned(), isid: [isid; 6] };
        Unsettled { port, address: address(host), written: Written::NONE }
    };
    let removed = |entries: &[(&'static str, u8, u8)]| {
        let entries = entries.iter().map(|(name, isid, host)| entry(name, *isid, *host));
        let before: Vec<_> = entries.collect();
        let names = |all: &VecDeque<Unsettled>| {
            all.iter().map(|one| (one.port.name.clone(), one.port.isid[0])).collect::<Vec<_>>()
        };
        let mut unsettled = VecDeque::from(before);
        let mut all = names(&unsettled);
        remove_of_most(&mut unsettled);
        let left = names(&unsettled);
        all.retain(|one| !left.contains(one));
        all
    };
    let flood = |isid| ("flood".to_owned(), isid);
    let one_name = [("other", 0, 1), ("flood", 1, 2), ("flood", 2, 2), ("flood", 3, 2)];
    assert_eq!(removed(&one_name), [flood(1)]);
    // Names are free to choose, at one address.
    let many_names = [("other", 0, 1), ("a", 1, 2), ("flood", 2, 2), ("flood", 3, 2)];
    assert_eq!(removed(&many_names), [flood(2)]);
    let each_its_own = [("other", 0, 1), ("other", 1, 1), ("a", 2, 2), ("b", 3, 2), ("c", 4, 2)];
    assert_eq!(removed(&each_its_own), [("a".to_owned(), 2)]);
}
