//! The status of bridges becomes samples of the schema: rates are differences, and neither a bridge
//! that begins nor one that ends is a spike.

use probe::schema::schema;
use probe::stat::StatId;

use super::ask::tests::{Folder, PATIENT, answer};
use super::*;

const S: u64 = 1_000_000_000;

fn sampler(folder: &Folder) -> BridgeSampler {
    let mut sampler = BridgeSampler::new(folder.path(), folder.user());
    sampler.poller.wait = PATIENT;
    sampler
}

fn value(samples: &[Sample], stat: &str, dimensions: [&str; 2], a: &str, b: &str) -> f64 {
    let those = samples.iter().filter(|s| s.stat == stat && s.dimensions == dimensions);
    those.flat_map(|s| &s.rows).filter(|r| r.0 == a && r.1 == b).map(|r| r.2).sum()
}

fn total(samples: &[Sample], stat: &str) -> Option<f64> {
    samples.iter().find(|s| s.stat == stat).map(|s| s.total)
}

#[test]
fn every_sample_is_declared_in_the_schema() {
    let folder = Folder::new();
    let _bridge = folder.bridge("wan", |n| vec![answer(7, 10 * n)]);
    let mut sampler = sampler(&folder);
    sampler.sample(0);
    let samples = sampler.sample(S);
    let declared = schema().group("bridge").expect("a group");
    for statistic in &declared.statistics {
        let id = format!("bridge.{}", statistic.id);
        let found: Vec<_> = samples.iter().filter(|s| s.stat == id).collect();
        assert!(!found.is_empty(), "{id} is never reported");
        for (n, a) in statistic.breakdowns.iter().enumerate() {
            for b in &statistic.breakdowns[n + 1..] {
                let has = |s: &&Sample| s.dimensions == [a.as_str(), b.as_str()];
                assert!(found.iter().any(has), "{id} by {a} and {b}");
            }
        }
    }
    for sample in &samples {
        let stat: StatId = sample.stat.parse().expect("an id");
        let statistic = schema().check(&stat).unwrap_or_else(|e| panic!("{}: {e}", sample.stat));
        for dimension in sample.dimensions.iter().filter(|d| !d.is_empty()) {
            assert!(statistic.breakdowns.iter().any(|b| b == dimension), "{sample:?}");
        }
    }
}

#[test]
fn rates_are_differences_over_the_time_between_two_answers() {
    let folder = Folder::new();
    let _bridge = folder.bridge("wan", |n| vec![answer(7, 100 * n)]);
    let mut sampler = sampler(&folder);
    let first = sampler.sample(0);
    assert_eq!(total(&first, "bridge.packets"), None, "a rate needs two readings: {first:?}");
    assert_eq!(total(&first, "bridge.running"), Some(1.0));
    let samples = sampler.sample(2 * S);
    let of = |stat, dimensions, a, b| value(&samples, stat, dimensions, a, b);
    // 100 more delivered and 10 lost forth, nothing back, within 2 s.
    assert_eq!(of("bridge.packets", ["bridge", "way"], "wan", "forth"), 55.0);
    assert_eq!(of("bridge.packets", ["bridge", "way"], "wan", "back"), 0.0);
    assert_eq!(of("bridge.packets", ["bridge", "outcome"], "wan", "delivered"), 50.0);
    assert_eq!(of("bridge.packets", ["way", "outcome"], "forth", "lost"), 5.0);
    assert_eq!(of("bridge.bytes", ["bridge", "way"], "wan", "forth"), 50_000.0);
    assert_eq!(of("bridge.impaired", ["bridge", "impairment"], "wan", "duplicated"), 0.5);
    assert_eq!(of("bridge.lateness", ["way", "lateness"], "forth", "16384"), 50.0);
    assert_eq!(of("bridge.queue", ["bridge", "way"], "wan", "forth"), 1500.0);
    assert_eq!(total(&samples, "bridge.starved"), Some(0.5));
    assert_eq!(total(&samples, "bridge.condemned"), Some(0.0));
}

#[test]
fn a_restarted_bridge_shows_no_spike_and_an_ended_one_disappears() {
    let folder = Folder::new();
    let bridge = folder.bridge("wan", |_| vec![answer(7, 10)]);
    let mut sampler = sampler(&folder);
    sampler.sample(0);
    drop(bridge);
    let again = folder.bridge("wan", |_| vec![answer(8, 1_000_000)]);
    let samples = sampler.sample(S);
    assert_eq!(total(&samples, "bridge.packets"), None, "{samples:?}");
    assert_eq!(total(&sampler.sample(2 * S), "bridge.packets"), Some(0.0));
    drop(again);
    let samples = sampler.sample(3 * S);
    assert_eq!(total(&samples, "bridge.running"), Some(0.0));
    assert_eq!(total(&samples, "bridge.packets"), None, "{samples:?}");
    assert!(sampler.last.is_empty());
}

#[test]
fn a_second_without_an_answer_is_counted_and_made_up_for() {
    let folder = Folder::new();
    let speaks = |n| match n {
        2 => vec![b"none of your business\n".to_vec()],
        n => vec![answer(7, 100 * n)],
    };
    let _bridge = folder.bridge("wan", speaks);
    let mut sampler = sampler(&folder);
    sampler.sample(0);
    let samples = sampler.sample(S);
    assert_eq!(total(&samples, "bridge.silent"), Some(1.0));
    assert_eq!(value(&samples, "bridge.silent", ["bridge", ""], "wan", ""), 1.0);
    assert_eq!(total(&samples, "bridge.packets"), None, "{samples:?}");
    // Two seconds' worth, as a rate of each.
    let samples = sampler.sample(2 * S);
    assert_eq!(total(&samples, "bridge.silent"), Some(0.0));
    assert_eq!(value(&samples, "bridge.packets", ["way", "outcome"], "forth", "delivered"), 100.0);
}

#[test]
fn a_second_that_is_made_up_for_has_the_rates_of_the_interval_before() {
    let folder = Folder::new();
    let _bridge = folder.bridge("wan", |n| vec![answer(7, 100 * n)]);
    let mut sampler = sampler(&folder);
    let mut at = |ms: u64| {
        let samples = sampler.sample(ms * S / 1000);
        value(&samples, "bridge.packets", ["way", "outcome"], "forth", "delivered")
    };
    // Each answer has 100 more.
    assert_eq!([at(10_000), at(12_500)], [0.0, 40.0]);
    assert_eq!([at(12_503), at(13_500)], [40.0, 200.0]);
    // The clock was set back.
    assert_eq!([at(5_000), at(5_500)], [200.0, 200.0]);
}
