//! Pools on loop devices: scrub, a lost leg, a leg that returns, legs that were written apart, and
//! what is refused before a write. The `btrfs` command is the oracle.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use base::random::{Random, SeededRandom};
use host_pools::btrfs::Volume;
use host_pools::disk::Machine;
use host_pools::pool::{self, Failure, Mounting, Offer};
use host_pools::profile::Profile;
use host_pools::record::{Record, Repair};
use host_pools::state::{State, state};

mod bed;
#[path = "btrfs/keeper.rs"]
mod keeper;
#[path = "btrfs/many.rs"]
mod many;
#[path = "btrfs/tasks.rs"]
mod tasks;
use bed::{Bed, forget, run};

const MIB: usize = 1 << 20;

/// Name of a pool of this process: others on this machine may run the same test.
fn pool_name(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// A file of these bytes.
fn fill(path: &Path, seed: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    SeededRandom::new(seed).fill(&mut bytes);
    fs::write(path, &bytes).expect("written");
    bytes
}

/// The state of a mounted pool.
fn state_of(volume: &Volume) -> State {
    let record = Record::read(volume.path()).expect("read").expect("a record");
    let (members, spaces) = (volume.members().expect("members"), volume.spaces().expect("spaces"));
    state(record.profile, &members, &spaces, record.repair, false).0
}

/// The one pool of this name.
fn offer(name: &str) -> Offer {
    let disks = Machine::default().disks().expect("disks");
    let mut offers = pool::offers(&disks);
    offers.retain(|offer| offer.name == name);
    assert_eq!(offers.len(), 1, "{offers:?}");
    offers.remove(0)
}

fn mount(bed: &Bed, name: &str, degraded: bool, now_ms: u64) -> Result<Volume, Failure> {
    let (at, aside) = (bed.at(), bed.aside());
    let mounting = Mounting { at: &at, aside: &aside, degraded, now_ms, nonce: now_ms };
    pool::mount(&offer(name), mounting).map(|(volume, _)| volume)
}

/// Numbers of `btrfs device stats` by device: write, read, flush, corruption, generation.
fn stats(at: &Path) -> Vec<Vec<u64>> {
    let text = run("btrfs", &["device", "stats", at.to_str().expect("text")]);
    let numbers = text.lines().map(|line| {
        line.split_whitespace().last().and_then(|number| number.parse().ok()).expect("a number")
    });
    numbers.collect::<Vec<u64>>().chunks(5).map(<[u64]>::to_vec).collect()
}

fn stats_by_ioctl(volume: &Volume) -> Vec<Vec<u64>> {
    let errors = volume.members().expect("members").into_iter().map(|member| member.errors);
    errors.map(|e| vec![e.write, e.read, e.flush, e.corruption, e.generation]).collect()
}

/// Each leg alone has all of these files.
fn each_leg_alone_is_right(at: &Path, legs: &[&str], files: &[(&str, &[u8])]) {
    fs::create_dir_all(at).expect("made");
    for leg in legs {
        forget(legs);
        run("mount", &["-o", "degraded,ro", leg, at.to_str().expect("text")]);
        for (name, bytes) in files {
            let read = fs::read(at.join(name)).unwrap_or_else(|e| panic!("{leg} {name}: {e}"));
            assert!(read == *bytes, "{name} on {leg} alone");
        }
        run("umount", &[at.to_str().expect("text")]);
    }
}

/// Overwrites 200 places of the second leg.
fn damage(bed: &Bed, seed: u64) {
    let mut random = SeededRandom::new(seed);
    let leg = fs::File::options().write(true).open(bed.image(1)).expect("an image");
    let mut junk = vec![0; 64 << 10];
    for _ in 0..200 {
        random.fill(&mut junk);
        // Beyond the first chunks, where most is data.
        let place = (100 << 20) + ((random.next_u64() % (250 << 20)) & !0xffff);
        leg.write_all_at(&junk, place).expect("overwritten");
    }
    leg.sync_all().expect("flushed");
}

#[test]
fn a_scrub_corrects_a_leg_and_its_counters_are_those_of_btrfs() {
    let Some(bed) = Bed::new("scrub", 2, 768) else { return };
    let at = bed.at();
    let disks = bed.disks();
    let volume =
        pool::create(&Machine::default(), &pool_name("pscrub"), Profile::Mirror, &disks, &at);
    let volume = volume.expect("created");
    assert_eq!(state_of(&volume), State::Healthy);
    let bytes = fill(&at.join("file"), 1, 200 * MIB);
    volume.sync().expect("written back");
    damage(&bed, 2);
    bed.drop_cache();
    assert!(fs::read(at.join("file")).expect("read") == bytes, "a wrong read");
    // The number of the thread decides which leg was read, and with it whether all is corrected.
    damage(&bed, 3);
    bed.drop_cache();
    let members = volume.members().expect("members");
    let mut corrected = 0;
    for member in &members {
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let progress = volume.scrub_progress(member.devid).expect("progress");
                    let Some(progress) = progress else { continue };
                    assert!(progress.bytes >= last, "went back: {last} {}", progress.bytes);
                    last = progress.bytes;
                }
            });
            let scrubbed = volume.scrub(member.devid);
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            let scrubbed = scrubbed.expect("scrubbed");
            assert!(scrubbed.bytes as usize >= 200 * MIB, "{scrubbed:?}");
            assert_eq!(scrubbed.uncorrectable, 0);
            corrected += scrubbed.corrected;
        });
    }
    assert!(corrected > 0, "nothing was corrected");
    assert_eq!(stats_by_ioctl(&volume), stats(&at));
    assert!(stats(&at)[1][3] > 0, "no corruption is counted");
    assert_eq!(volume.scrub_progress(1).expect("progress"), None);
    drop(volume);
    pool::unmount(&at).expect("unmounted");
    each_leg_alone_is_right(&bed.at(), &[&disks[0], &disks[1]], &[("file", &bytes)]);
}

#[test]
fn a_lost_leg_is_replaced_and_healthy_only_after_the_conversion() {
    let Some(mut bed) = Bed::new("replace", 3, 768) else { return };
    let at = bed.at();
    let disks = bed.disks();
    let volume = pool::create(
        &Machine::default(),
        &pool_name("preplace"),
        Profile::Mirror,
        &disks[..2],
        &at,
    );
    drop(volume.expect("created"));
    let before = fill(&at.join("before"), 1, 60 * MIB);
    pool::unmount(&at).expect("unmounted");
    bed.detach(1);
    assert_eq!(offer(&pool_name("preplace")).missing(), 1);
    let refused = mount(&bed, &pool_name("preplace"), false, 5).expect_err("refused").to_string();
    assert!(refused.contains("1 of 2 disks"), "{refused}");
    let volume = mount(&bed, &pool_name("preplace"), true, 1_000).expect("degraded");
    assert_eq!(state_of(&volume), State::Degraded);
    let record = Record::read(&at).expect("read").expect("a record");
    assert_eq!(record.marks.iter().map(|m| m.time_ms).collect::<Vec<_>>(), [1_000]);
    assert_eq!(record.marks[0].missing, [2]);
    let after = fill(&at.join("after"), 2, 100 * MIB);
    volume.sync().expect("written back");
    volume.replace(2, Path::new(&disks[2])).expect("replaced");
    // All devices are there, and what was written meanwhile has one copy.
    let mut record = Record::read(&at).expect("read").expect("a record");
    record.repair = None;
    record.write(&at).expect("written");
    assert_eq!(state_of(&volume), State::Degraded, "without a conversion");
    volume.convert(Profile::Mirror).expect("converted");
    assert_eq!(state_of(&volume), State::Healthy);
    let usage = run("btrfs", &["filesystem", "df", at.to_str().expect("text")]);
    let single: Vec<&str> = usage.lines().filter(|line| line.contains("single")).collect();
    assert!(single.iter().all(|line| line.starts_with("GlobalReserve")), "{usage}");
    drop(volume);
    pool::unmount(&at).expect("unmounted");
    let files: [(&str, &[u8]); 2] = [("before", &before), ("after", &after)];
    each_leg_alone_is_right(&bed.at(), &[&disks[0], &disks[2]], &files);
}

#[test]
fn a_leg_that_returns_is_scrubbed_and_converted() {
    let Some(mut bed) = Bed::new("stale", 2, 768) else { return };
    let at = bed.at();
    let disks = bed.disks();
    let volume =
        pool::create(&Machine::default(), &pool_name("pstale"), Profile::Mirror, &disks, &at);
    drop(volume.expect("created"));
    let before = fill(&at.join("before"), 1, 30 * MIB);
    pool::unmount(&at).expect("unmounted");
    bed.detach(1);
    drop(mount(&bed, &pool_name("pstale"), true, 1_000).expect("degraded"));
    let after = fill(&at.join("after"), 2, 60 * MIB);
    pool::unmount(&at).expect("unmounted");
    let back = bed.attach(1);
    let volume = mount(&bed, &pool_name("pstale"), false, 2_000).expect("mounted");
    assert_eq!(state_of(&volume), State::Degraded);
    let mut record = Record::read(&at).expect("read").expect("a record");
    assert_eq!(record.repair, Some(Repair::Scrub));
    assert!(fs::read(at.join("after")).expect("read") == after);
    for member in volume.members().expect("members") {
        assert_eq!(volume.scrub(member.devid).expect("scrubbed").uncorrectable, 0);
    }
    volume.convert(Profile::Mirror).expect("converted");
    record.repair = None;
    record.write(&at).expect("written");
    assert_eq!(state_of(&volume), State::Healthy);
    drop(volume);
    pool::unmount(&at).expect("unmounted");
    let files: [(&str, &[u8]); 2] = [("before", &before), ("after", &after)];
    each_leg_alone_is_right(&bed.at(), &[&disks[0], &back], &files);
}

#[test]
fn legs_that_were_written_apart_are_refused_with_both_times() {
    let Some(mut bed) = Bed::new("apart", 2, 192) else { return };
    let at = bed.at();
    let volume =
        pool::create(&Machine::default(), &pool_name("papart"), Profile::Mirror, &bed.disks(), &at);
    drop(volume.expect("created"));
    pool::unmount(&at).expect("unmounted");
    for (away, time) in [(1, 1_000), (0, 2_000)] {
        bed.detach(away);
        drop(mount(&bed, &pool_name("papart"), true, time).expect("degraded"));
        fill(&at.join(format!("file{away}")), time, MIB);
        pool::unmount(&at).expect("unmounted");
        bed.attach(away);
    }
    let sums = bed.sums();
    let refused = mount(&bed, &pool_name("papart"), false, 3_000).expect_err("refused");
    let Failure::Apart { first, second } = &refused else { panic!("{refused}") };
    let mut times = [first.time_ms, second.time_ms];
    times.sort_unstable();
    assert_eq!(times, [1_000, 2_000]);
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo").expect("mounts");
    assert!(!mounts.contains(at.to_str().expect("text")), "something is mounted");
    assert_eq!(bed.sums(), sums, "a device was written");
}

#[test]
fn what_is_in_use_or_signed_is_refused_before_a_write() {
    let Some(mut bed) = Bed::new("refused", 7, 192) else { return };
    let disks = bed.disks();
    let [mounted, swap, member, md, lvm, ext, free] = disks.as_slice() else { panic!("seven") };
    run("mkfs.ext4", &["-q", mounted]);
    fs::create_dir_all(bed.other()).expect("made");
    // Read-only: ext4 would write the rest of its tables in the background.
    run("mount", &["-o", "ro", mounted, bed.other().to_str().expect("text")]);
    run("mkswap", &[swap]);
    let other = pool::create(
        &Machine::default(),
        &pool_name("pother"),
        Profile::Stripe,
        std::slice::from_ref(member),
        &bed.at(),
    );
    drop(other.expect("created"));
    pool::unmount(&bed.at()).expect("unmounted");
    bed.write(3, 0x1000, &0xa92b_4efc_u32.to_le_bytes());
    bed.write(4, 0x200, b"LABELONE");
    run("mkfs.ext4", &["-q", ext]);
    let small = bed.small();
    let link = PathBuf::from(format!("/dev/plimsoll-test-{}", std::process::id()));
    std::os::unix::fs::symlink(free, &link).expect("linked");
    let sums = bed.sums();
    let link_name = link.to_str().expect("text").to_owned();
    let in_pool = format!("member of the pool {}", pool_name("pother"));
    let cases: [(&str, &str); 9] = [
        (mounted, "it is mounted at"),
        (swap, "signature of swap"),
        (member, &in_pool),
        (md, "signature of MD member"),
        (lvm, "signature of LVM"),
        (ext, "signature of ext"),
        (&small, "smaller than 128 MiB"),
        (free, "named twice"),
        (&link_name, "named twice"),
    ];
    let at = bed.at();
    let refusals: Vec<_> = cases
        .iter()
        .map(|(disk, why)| {
            let disks = [free.clone(), (*disk).to_owned()];
            let done = pool::create(
                &Machine::default(),
                &pool_name("prefused"),
                Profile::Mirror,
                &disks,
                &at,
            );
            (done.expect_err("refused").to_string(), *why)
        })
        .collect();
    fs::remove_file(&link).expect("removed");
    for (sentence, why) in refusals {
        assert!(sentence.contains(why), "{sentence}: {why}");
    }
    assert_eq!(bed.sums(), sums, "a device was written");
}

#[test]
fn a_destroyed_pool_is_offered_no_more() {
    let Some(bed) = Bed::new("destroy", 2, 192) else { return };
    let at = bed.at();
    let volume = pool::create(
        &Machine::default(),
        &pool_name("pdestroy"),
        Profile::Mirror,
        &bed.disks(),
        &at,
    );
    drop(volume.expect("created"));
    let offer = offer(&pool_name("pdestroy"));
    assert!(pool::destroy(&offer).is_err(), "a mounted pool is destroyed");
    pool::unmount(&at).expect("unmounted");
    pool::destroy(&offer).expect("destroyed");
    let disks = Machine::default().disks().expect("disks");
    assert!(!pool::offers(&disks).iter().any(|one| one.uuid == offer.uuid));
    let again = pool::create(
        &Machine::default(),
        &pool_name("pdestroy"),
        Profile::Mirror,
        &bed.disks(),
        &at,
    );
    drop(again.expect("created again"));
    pool::unmount(&at).expect("unmounted");
}
