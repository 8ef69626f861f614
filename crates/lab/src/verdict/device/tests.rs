//! Caps and warming caches, at their thresholds.

use super::*;

/// Steps: in flight, latency in ms, payload and device in MB/s.
fn steps(of: &[(f64, f64, f64, f64)]) -> Vec<(Point, Device)> {
    let step = |&(in_flight, ms, payload, device): &(f64, f64, f64, f64)| {
        let bytes_s = payload * 1e6;
        let point = Point { in_flight, ops_s: bytes_s / 4096.0, bytes_s, latency_ns: ms * 1e6 };
        let name = "vda".to_owned();
        let (bytes_s, ops_s) = (device * 1e6, device * 244.0);
        (point, Device { name, bytes_s, ops_s, busy: 0.06, ..Default::default() })
    };
    of.iter().map(step).collect()
}

fn judged<T>(
    of: &[(f64, f64, f64, f64)],
    rule: impl Fn(&[(Point, &Device)], Option<Direction>) -> Option<T>,
) -> Option<T> {
    let steps = steps(of);
    rule(&steps.iter().map(|(p, d)| (*p, d)).collect::<Vec<_>>(), Some(Direction::Read))
}

#[test]
fn a_capped_device_is_named_with_its_rate() {
    let found = judged(
        &[
            (1.0, 1.0, 5.0, 5.0),
            (4.0, 1.0, 19.5, 19.6),
            (8.0, 2.0, 20.0, 20.0),
            (16.0, 4.0, 20.1, 20.1),
        ],
        capped,
    );
    let found = found.unwrap();
    assert_eq!(found.name, "vda");
    assert!((found.rate - 19.9e6).abs() < 1e5, "{found:?}");
    for part in ["vda moved 19 MiB/s with 4", "no more with 16", "100 % of the payload", "busy 6 %"]
    {
        assert!(found.sentence.contains(part), "{part} in {}", found.sentence);
    }
}

#[test]
fn thresholds_of_a_cap() {
    let is = |rate, latency, share: f64, in_flight| {
        let last = (in_flight, latency, rate / share, rate);
        judged(&[(1.0, 1.0, 5.0 / share, 5.0), (4.0, 1.0, 20.0 / share, 20.0), last], capped)
            .is_some()
    };
    assert!(is(21.9, 4.0, 1.0, 16.0) && !is(22.1, 4.0, 1.0, 16.0), "FLAT");
    assert!(is(20.0, 1.51, 1.0, 16.0) && !is(20.0, 1.49, 1.0, 16.0), "SLOWER");
    assert!(is(20.0, 4.0, 0.51, 16.0) && !is(20.0, 4.0, 0.49, 16.0), "FROM_DEVICE");
    assert!(is(20.0, 4.0, 1.0, 8.0) && !is(20.0, 4.0, 1.0, 7.9), "MORE");
    assert!(judged(&[], capped).is_none());
}

#[test]
fn thresholds_of_a_warming_cache() {
    let is = |first, last| judged(&[(1.0, 1.0, 100.0, first), (4.0, 1.0, 100.0, last)], warmed);
    let sentence = is(90.0, 3.0).unwrap();
    assert!(sentence.contains("90 %") && sentence.contains("3 % at the last"), "{sentence}");
    assert!(is(21.0, 1.0).is_some() && is(19.0, 1.0).is_none(), "COLD");
    assert!(is(90.0, 44.0).is_some() && is(90.0, 46.0).is_none(), "WARM");
    // A step that ended before its first window has no payload.
    let none =
        judged(&[(1.0, 1.0, 0.0, 33.0), (2.0, 1.0, 100.0, 90.0), (4.0, 1.0, 100.0, 3.0)], warmed);
    assert!(none.unwrap().contains("90 % of the payload came from vda at the first step"));
    assert!(judged(&[(1.0, 1.0, 0.0, 33.0), (4.0, 1.0, 100.0, 3.0)], warmed).is_none());
}

/// Steps of writes: payload, read and written by the device, MB/s.
fn writes(of: &[(f64, f64, f64)]) -> Vec<(Point, Device)> {
    let step = |(n, &(payload, read, written)): (usize, &(f64, f64, f64))| {
        let in_flight = 4f64.powi(n as i32);
        let latency_ns = in_flight * 1e6;
        let point = Point { in_flight, ops_s: 100.0, bytes_s: payload * 1e6, latency_ns };
        let by_direction = Some([(read * 1e6, 10.0), (written * 1e6, 100.0)]);
        let bytes_s = (read + written) * 1e6;
        let (read_latency_ns, write_latency_ns) = (Some(2e6), Some(7e6));
        let device = Device { name: "vda".into(), bytes_s, by_direction, ..Default::default() };
        (point, Device { read_latency_ns, write_latency_ns, ..device })
    };
    of.iter().enumerate().map(step).collect()
}

#[test]
fn a_cache_that_warms_up_is_one_of_reads() {
    // The journal doubles what is written, until the file system joins it.
    let steps = writes(&[(100.0, 0.0, 198.0), (100.0, 0.0, 60.0)]);
    let steps: Vec<_> = steps.iter().map(|(p, d)| (*p, d)).collect();
    for payload in [Some(Direction::Write), None] {
        assert_eq!(warmed(&steps, payload), None);
    }
    // What another process writes to the device is no part of what clients read.
    let steps = writes(&[(100.0, 90.0, 0.0), (100.0, 3.0, 90.0)]);
    let steps: Vec<_> = steps.iter().map(|(p, d)| (*p, d)).collect();
    let sentence = warmed(&steps, Some(Direction::Read)).unwrap();
    assert!(sentence.contains("90 %") && sentence.contains("3 % at the last"), "{sentence}");
}

#[test]
fn a_device_that_writes_no_more_is_described_by_its_writes() {
    let steps = writes(&[(20.0, 0.0, 20.0), (20.0, 0.0, 20.0)]);
    let steps: Vec<_> = steps.iter().map(|(p, d)| (*p, d)).collect();
    let found = capped(&steps, Some(Direction::Write)).unwrap();
    assert!(found.sentence.contains("a write took 7 ms"), "{}", found.sentence);
    assert!(!found.sentence.contains("a read"), "{}", found.sentence);
    let found = capped(&steps, None).unwrap();
    assert!(found.sentence.contains("a read took 2 ms"), "{}", found.sentence);
    // It reads as much for others, and does not move what is written.
    let steps = writes(&[(20.0, 20.0, 1.0), (20.0, 20.0, 1.0)]);
    let steps: Vec<_> = steps.iter().map(|(p, d)| (*p, d)).collect();
    assert_eq!(capped(&steps, Some(Direction::Write)), None);
}

#[test]
fn a_cap_on_reads_does_not_limit_writes_that_need_none() {
    let cap = |of, most| Cap { device: "vda".into(), of, most, group: "/small".into() };
    let at = |payload: f64, read: f64, written: f64| {
        let (point, mut device) = writes(&[(payload, read, written)]).remove(0);
        device.caps = vec![cap(CapOf::ReadBytes, 1_000_000)];
        at_cap(point, &device)
    };
    assert_eq!(at(20.0, 1.0, 20.0), None);
    // Small writes for which whole blocks are read first.
    let found = at(1.9, 1.0, 2.0).unwrap();
    assert_eq!(found.of, Rate::Cap(CapOf::ReadBytes));
}

#[test]
fn operations_that_stay_the_same_are_a_cap_too() {
    // Larger and larger requests: bytes grow, operations do not.
    let at = |in_flight: f64, latency_ns: f64, bytes_s: f64| {
        let point = Point { in_flight, ops_s: 1000.0, bytes_s, latency_ns };
        (point, Device { name: "sda".into(), bytes_s, ops_s: 150.0, ..Default::default() })
    };
    let steps = [at(4.0, 1e6, 1e6), at(8.0, 2e6, 2e6), at(16.0, 4e6, 4e6)];
    let found = capped(&steps.iter().map(|(p, d)| (*p, d)).collect::<Vec<_>>(), None).unwrap();
    assert_eq!((found.of, found.rate), (Rate::Operations, 150.0));
    assert!(found.sentence.contains("sda moved 150 operations/s with 4"), "{}", found.sentence);
}

#[test]
fn a_cap_of_a_control_group_is_named() {
    let device = |read: f64| Device {
        name: "loop3".into(),
        bytes_s: read,
        ops_s: 5.0,
        by_direction: Some([(read, 5.0), (0.0, 0.0)]),
        caps: vec![Cap {
            device: "loop3".into(),
            of: CapOf::ReadBytes,
            most: 20_000_000,
            group: "/small".into(),
        }],
        ..Default::default()
    };
    let point = |bytes_s| Point { bytes_s, ..Default::default() };
    let found = at_cap(point(19e6), &device(19e6)).unwrap();
    for part in ["loop3 gave 18.1 MiB/s of reads, 95 % of the 19.1 MiB/s of reads", "group /small"]
    {
        assert!(found.sentence.contains(part), "{part} in {}", found.sentence);
    }
    assert!(at_cap(point(18.1e6), &device(18.1e6)).is_some(), "AT_CAP");
    assert!(at_cap(point(17.9e6), &device(17.9e6)).is_none(), "AT_CAP");
    // The payload comes from elsewhere.
    assert!(at_cap(point(39e6), &device(19e6)).is_none(), "FROM_DEVICE");
}
