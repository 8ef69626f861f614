//! Pools of many disks: three copies, and the state of 24 disks without an access to a disk.

use std::fs;
use std::time::{Duration, Instant};

use host_pools::disk::Machine;
use host_pools::keeper::Keeper;
use host_pools::pool;
use host_pools::profile::Profile;
use host_pools::quota::Accounting;
use host_pools::request::PoolRequest;
use host_pools::state::State;

use crate::bed::Bed;
use crate::{MIB, each_leg_alone_is_right, fill, pool_name, state_of};

/// Most processor time for the state of a pool of 24 disks, on average.
const STATE: Duration = Duration::from_millis(20);

#[test]
fn three_copies_outlive_two_disks() {
    let Some(bed) = Bed::new("copies3", 3, 512) else { return };
    let (at, disks) = (bed.at(), bed.disks());
    let made =
        pool::create(&Machine::default(), &pool_name("pcopies"), Profile::Copies3, &disks, &at);
    let volume = made.expect("created");
    assert_eq!(state_of(&volume), State::Healthy);
    let bytes = fill(&at.join("file"), 1, 40 * MIB);
    volume.sync().expect("written back");
    drop(volume);
    pool::unmount(&at).expect("unmounted");
    let disks: Vec<&str> = disks.iter().map(String::as_str).collect();
    each_leg_alone_is_right(&at, &disks, &[("file", &bytes)]);
}

/// Reads and writes of a disk that have ended.
fn accesses(device: &str) -> (u64, u64) {
    let name = device.trim_start_matches("/dev/");
    let stat = fs::read_to_string(format!("/sys/block/{name}/stat")).expect("counters");
    let words: Vec<u64> = stat.split_whitespace().filter_map(|one| one.parse().ok()).collect();
    (words[0], words[4])
}

/// Processor time of this process and of its children that have ended. Other load moves it less
/// than the clock.
fn processor_time() -> Duration {
    let of = |who| {
        // SAFETY: counters, for which zeros are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the structure outlives the call.
        unsafe { libc::getrusage(who, &raw mut usage) };
        let both = [usage.ru_utime, usage.ru_stime].map(|time| {
            Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
        });
        both[0] + both[1]
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}

/// How often the state is read.
const READINGS: u32 = 50;

#[test]
fn the_state_of_24_disks_is_read_from_memory() {
    let Some(bed) = Bed::new("many", 24, 192) else { return };
    let (name, disks) = (pool_name("pmany"), bed.disks());
    let keeper = Keeper::open(&bed.at(), &bed.other()).expect("opened");
    let (pool, profile) = (name.clone(), Profile::Mirror);
    keeper
        .answer(PoolRequest::Create { pool, profile, disks: disks.clone(), zfs: None })
        .expect("created");
    for share in ["a", "b", "c"] {
        let (pool, share) = (name.clone(), share.to_owned());
        keeper.answer(PoolRequest::MakeShare { pool, share }).expect("made");
    }
    fill(&keeper.at(&name).join("a/file"), 1, 60 * MIB);
    bed.drop_cache();
    // The first one may read what the caches have lost: the record, and names of shares.
    let first = keeper.status();
    assert_eq!(first.pools[0].members.len(), 24);
    assert_eq!(first.pools[0].accounting, Accounting::Simple);
    assert!(first.pools[0].usage[0].used as usize >= 60 * MIB, "{:?}", first.pools[0].usage);
    let before: Vec<_> = disks.iter().map(|disk| accesses(disk)).collect();
    let used = processor_time();
    let mut took: Vec<Duration> = (0..READINGS)
        .map(|_| {
            let began = Instant::now();
            assert_eq!(keeper.status().pools[0].state, State::Healthy);
            began.elapsed()
        })
        .collect();
    let used = (processor_time() - used) / READINGS;
    let after: Vec<_> = disks.iter().map(|disk| accesses(disk)).collect();
    took.sort();
    println!(
        "the state of 24 disks: {:?} at the median, {:?} at most, {used:?} of processor time",
        took[25], took[49]
    );
    assert_eq!(after, before, "disks were accessed");
    assert!(used <= STATE, "{used:?} of processor time; {took:?}");
    keeper.answer(PoolRequest::Export { pool: name }).expect("exported");
}
