//! Samples of pools.

use host_pools::profile::Profile;
use host_pools::request::ShareUsage;
use host_pools::state::State;

use super::super::super::faults::tests::pool;
use super::*;

const MIB: u64 = 1 << 20;

fn two() -> Vec<PoolStatus> {
    let mut tank = pool(Profile::Mirror, State::Healthy, 0);
    tank.used_snapshots = Some(MIB / 4);
    tank.usage = vec![ShareUsage { share: "a".to_owned(), used: 7, quota: None }];
    let mut dozer = tank.clone();
    (dozer.name, dozer.uuid) = ("dozer".to_owned(), "0-2".to_owned());
    (dozer.used, dozer.available, dozer.used_snapshots) = (511 * MIB, MIB, None);
    vec![tank, dozer]
}

fn sample<'a>(samples: &'a [Sample], stat: &str) -> &'a Sample {
    samples.iter().find(|one| one.stat == stat).expect("sampled")
}

fn row(sample: &Sample, first: &str, second: &str) -> f64 {
    let mut rows = sample.rows.iter().filter(|(a, b, _)| a == first && b == second);
    rows.next().expect("a row").2
}

#[test]
fn space_is_by_pool_use_and_share() {
    let pools = two();
    let all: Vec<&PoolStatus> = pools.iter().collect();
    let samples = samples(&all, &BTreeMap::new());
    let bytes = sample(&samples, "capacity.bytes");
    let uses = ["data", "snapshots", "metadata", "free"].map(|way| row(bytes, "tank", way) as u64);
    assert_eq!(uses, [MIB / 2, MIB / 4, MIB / 4, 512 * MIB]);
    let used = sample(&samples, "capacity.used");
    assert_eq!((row(used, "tank", "") as u64, used.total as u64), (MIB, 512 * MIB));
    let percent = sample(&samples, "capacity.percent");
    assert!((row(percent, "dozer", "") - 511.0 / 5.12).abs() < 0.001, "{percent:?}");
    assert!((percent.total - 512.0 / 10.25).abs() < 0.001, "{percent:?}");
    assert_eq!(row(sample(&samples, "capacity.shares"), "dozer", "a") as u64, 7);
}

#[test]
fn each_sample_is_declared() {
    let pools = two();
    let all: Vec<&PoolStatus> = pools.iter().collect();
    for sample in samples(&all, &BTreeMap::new()) {
        let (group, metric) = sample.stat.split_once('.').expect("a group");
        let declared = probe::schema::schema().statistic(group, metric);
        let declared = declared.unwrap_or_else(|| panic!("{} is not declared", sample.stat));
        let dimensions = sample.dimensions.iter().filter(|one| !one.is_empty());
        let breakdowns: Vec<&str> = declared.breakdowns.iter().map(String::as_str).collect();
        assert_eq!(breakdowns, dimensions.copied().collect::<Vec<_>>(), "{}", sample.stat);
    }
}

#[test]
fn what_a_scrub_reads_is_in_the_next_sample_whole() {
    let read = Read::default();
    let mut pools = two();
    let scrubbed = |mib: u64, wrong: u64, read_errors: u64| Scrubbed {
        bytes: mib * MIB,
        wrong,
        read_errors,
        ..Default::default()
    };
    let taken = || {
        let samples = read.sample();
        let total = |stat| sample(&samples, stat).total as u64;
        (total("pool.scrub") / MIB, total("pool.scrub_errors"))
    };
    pools[0].scrubbed = scrubbed(5, 1, 0);
    let _ = read.enter(pools.clone());
    assert_eq!(taken(), (0, 0), "from before the first reading");
    // A scrub that begins and ends between two samples.
    pools[0].scrubbed = scrubbed(15, 4, 2);
    let _ = read.enter(pools.clone());
    let _ = read.enter(pools.clone());
    assert_eq!(row(sample(&read.sample(), "pool.scrub"), "tank", "") as u64, 10 * MIB);
    assert_eq!(taken(), (0, 0), "each byte once");
    // A helper that was started again counts from zero.
    pools[0].scrubbed = scrubbed(3, 0, 1);
    let _ = read.enter(pools);
    assert_eq!(taken(), (3, 1));
}

#[test]
fn a_pool_that_was_mounted_is_noticed_once() {
    let read = Read::default();
    let [tank, dozer] = two().try_into().expect("two");
    let away = PoolStatus { capacity: 0, ..dozer.clone() };
    assert!(read.enter(vec![tank.clone(), away.clone()]), "the first reading");
    assert!(!read.enter(vec![tank.clone(), away]));
    assert!(read.enter(vec![tank.clone(), dozer.clone()]), "its disks have come");
    assert!(!read.enter(vec![tank.clone(), dozer.clone()]));
    // Exported and imported again; then another pool under its name.
    assert!(!read.enter(vec![tank.clone()]));
    assert!(read.enter(vec![tank.clone(), dozer.clone()]));
    let other = PoolStatus { uuid: "0-3".to_owned(), ..dozer };
    assert!(read.enter(vec![tank, other]));
}
