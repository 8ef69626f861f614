//! Seconds are whole, what does not count is left out of the distribution, and headers are added.

use super::*;

/// A window with these latencies, ns.
fn window(latencies: &[u64], transport: Option<Transport>) -> Window {
    let mut hist = hist::new();
    latencies.iter().for_each(|ns| hist.saturating_record(*ns));
    Window { latency: hist::to_text(&hist), transport, ..Default::default() }
}

#[test]
fn windows_become_seconds_and_only_those_that_count_are_counted() {
    let a: Vec<Window> = (1..=5).map(|n| window(&[n * 1000], None)).collect();
    let b: Vec<Window> = (1..=5).map(|n| window(&[n * 1000, 7], None)).collect();
    let found = gather(&[&a, &b], (2, 5), 0.5);
    assert_eq!(found.counted.len(), 9);
    assert_eq!(found.counted.max(), found.counted.highest_equivalent(5000));
    assert_eq!(found.heat.len(), 5);
    assert_eq!(found.heat[0].iter().map(|h| h.1).sum::<u64>(), 3);
    let seconds: Vec<(f64, f64, u64)> = found
        .seconds
        .iter()
        .map(|s| (s.after_s, s.length_s, hist::from_text(&s.histogram).unwrap().len()))
        .collect();
    assert_eq!(seconds, [(0.0, 1.0, 6), (1.0, 1.0, 6), (2.0, 0.5, 3)]);
}

#[test]
fn windows_longer_than_a_second_are_left_whole() {
    let a: Vec<Window> = (1..=3).map(|n| window(&[n * 1000], None)).collect();
    let found = gather(&[&a], (0, 3), 2.0);
    assert_eq!(found.seconds.iter().map(|s| s.after_s).collect::<Vec<_>>(), [0.0, 2.0, 4.0]);
}

#[test]
fn transport_bytes_are_those_of_tcp_with_headers() {
    let tcp = |n: u32| {
        let (bytes_in, bytes_out) = (u64::from(n) * 1000, u64::from(n) * 100);
        Some(Transport {
            segments_out: n,
            segments_in: 2 * n,
            bytes_in,
            bytes_out,
            ..Default::default()
        })
    };
    let a: Vec<Window> = (1..=4).map(|n| window(&[1], tcp(n))).collect();
    let found = transport_bytes(&[&a, &a], (1, 4), 0.5).expect("it is seen");
    // Three windows of two clients: 1,100 bytes and three segments each.
    assert_eq!(found, 2.0 * 3.0 * (1100.0 + 3.0 * 66.0) / 1.5);
    let blind: Vec<Window> = (0..4).map(|_| window(&[1], None)).collect();
    assert_eq!(transport_bytes(&[&a, &blind], (1, 4), 0.5), None, "one is not seen");
    assert_eq!(transport_bytes(&[], (1, 4), 0.5), None);
}
