//! Counts become the declared statistics; sums agree between their breakdowns.

use probe::schema::schema;
use probe::stat::StatId;

use super::super::Context;
use super::*;

fn count(segments: u64, size: u64) -> Count {
    Count { segments, bytes: segments * size, squares: segments * size * size }
}

fn key(interface: u32, context: Context, size: u64) -> Key {
    Key { interface, context, bucket: buckets::index(size) as u8 }
}

fn with(sampler: &mut SegmentSampler, all: &[(Key, Count)]) -> Reading {
    for (key, _) in all {
        let (name, is_upper) = (format!("eth{}", key.interface), key.interface == 9);
        sampler.names.insert(key.interface, Interface { name, is_upper });
    }
    Reading { counts: all.iter().copied().collect(), ..Reading::default() }
}

fn sampler() -> SegmentSampler {
    let empty = Root::at(std::path::Path::new("/nonexistent"));
    SegmentSampler::new(empty)
}

fn row(samples: &[Sample], stat: &str, dimensions: [&str; 2], a: &str, b: &str) -> f64 {
    let these = samples.iter().filter(|s| s.stat == stat && s.dimensions == dimensions);
    let rows = these.flat_map(|s| &s.rows).filter(|r| r.0 == a && r.1 == b);
    rows.map(|r| r.2).sum()
}

/// A reply of 64 KiB: 45 packets in one segment, and the rest.
fn replies() -> BTreeMap<Key, Count> {
    BTreeMap::from([
        (key(1, Context::Sender, 65_160), count(20, 65_160)),
        (key(1, Context::Sender, 376), count(20, 376)),
        (key(2, Context::Acknowledgement, 1448), count(60, 1448)),
    ])
}

#[test]
fn every_sample_is_declared_and_sums_agree() {
    let new = replies();
    let samples = segments(&new, |k| if k.interface == 1 { "eth1" } else { "eth2" }, 0);
    for sample in &samples {
        let stat: StatId = sample.stat.parse().expect("an id");
        let statistic = schema().check(&stat).unwrap_or_else(|e| panic!("{}: {e}", sample.stat));
        for dimension in sample.dimensions.iter().filter(|d| !d.is_empty()) {
            assert!(statistic.breakdowns.iter().any(|b| b == dimension), "{sample:?}");
        }
        if sample.stat == "tcp.segments" {
            assert_eq!(sample.total, 100.0);
            assert_eq!(sample.rows.iter().map(|r| r.2).sum::<f64>(), 100.0, "{sample:?}");
        }
    }
    let by = ["device", "context"];
    assert_eq!(row(&samples, "tcp.segments", by, "eth1", "sender"), 40.0);
    assert_eq!(row(&samples, "tcp.segment_bytes", by, "eth2", "ack"), 60.0 * 1448.0);
    assert_eq!(row(&samples, "tcp.segments", ["context", "size"], "sender", "57344"), 20.0);
    let (mean, bytes) = ("tcp.segment_mean", "tcp.segment_mean_by_bytes");
    assert_eq!(row(&samples, mean, ["context", ""], "sender", ""), 32_768.0);
    assert_eq!(row(&samples, bytes, ["device", ""], "eth1", "").round(), 64_788.0);
}

#[test]
fn what_found_no_room_is_in_the_total() {
    let new = replies();
    let samples = segments(&new, |_| "eth0", 20);
    assert_eq!(samples[0].total, 120.0);
    assert_eq!(samples[0].rows.iter().map(|r| r.2).sum::<f64>(), 100.0);
}

#[test]
fn an_interface_on_top_of_others_is_left_out_and_counts_are_differences() {
    let mut sampler = sampler();
    let nothing = Count::default();
    let lower = key(1, Context::Sender, 1000);
    let before = with(&mut sampler, &[(lower, count(10, 1000))]);
    let upper = key(9, Context::Sender, 1000);
    let after = [(lower, count(15, 1000)), (upper, count(15, 1000))];
    let after = with(&mut sampler, &after);
    sampler.loaded.set(Err(Unavailable::Namespace)).expect("set once");
    // Without programs there are no rows, whatever a reading has.
    assert!(sampler.rates(&before, &after).is_empty());
    let new = after.counts[&lower].since(before.counts[&lower]);
    assert_eq!(new, count(5, 1000));
    assert_eq!(count(1, 5).since(nothing).mean(), Some(5.0));
    assert!(sampler.names[&9].is_upper && !sampler.names[&1].is_upper);
}

#[test]
fn without_programs_the_source_reports_the_reason() {
    let sampler = sampler();
    assert!(sampler.source().is_empty(), "not loaded yet");
    sampler.loaded.set(Err(Unavailable::Rights)).expect("set once");
    let samples = sampler.source();
    assert_eq!(samples[0].stat, "tcp.segment_source");
    assert!(samples[0].rows[0].0.contains("CAP_BPF"), "{samples:?}");
}

#[test]
fn duplicate_acknowledgements_are_of_clients() {
    let address: Ipv6Addr = "::ffff:10.0.0.7".parse().expect("an address");
    let at = |n| Reading { duplicates: [(address, n)].into(), ..Reading::default() };
    let sample = duplicates(&at(4), &at(10));
    assert_eq!(sample.rows, [("10.0.0.7".to_owned(), String::new(), 6.0)]);
    assert_eq!(sample.total, 6.0);
}
