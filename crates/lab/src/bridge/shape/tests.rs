//! How people say what a link does.

use super::*;

fn changed(changes: &[&str]) -> Result<Shapes, String> {
    let mut shapes = Shapes::default();
    shapes.change(changes).map_err(|e| e.to_string()).map(|()| shapes)
}

fn good(changes: &[&str]) -> Shapes {
    changed(changes).unwrap_or_else(|e| panic!("{changes:?}: {e}"))
}

#[test]
fn times_rates_sizes_and_shares_read_as_people_write_them() {
    let all = good(&[
        "delay=1.5ms",
        "jitter=200us,normal",
        "rate=2.5Gbit/s",
        "overhead=38",
        "queue=2M",
        "loss=0.1%",
        "burst=3",
        "reorder=0.02",
        "reorder-by=2ms",
        "duplicate=1%",
        "corrupt=0",
    ]);
    let expected = Shape {
        delay_ns: 1_500_000,
        jitter_ns: 200_000,
        spread: Spread::Normal,
        rate: Some(2_500_000_000),
        overhead: 38,
        queue: Some(2 << 20),
        loss: 0.001,
        burst: 3.0,
        reorder: 0.02,
        reorder_by_ns: 2_000_000,
        duplicate: 0.01,
        corrupt: 0.0,
    };
    assert_eq!(all.forth, expected);
    assert_eq!(all.back, expected);
    for (text, rate) in [("100kbit", 100_000), ("1Gbps", 1_000_000_000), ("10 mbit", 10_000_000)] {
        assert_eq!(good(&[&format!("rate={text}")]).forth.rate, Some(rate), "{text}");
    }
    assert_eq!(good(&["rate=none", "queue=auto"]).forth, Shape::default());
    assert_eq!(time("2m").expect("a time"), 120_000_000_000);
}

#[test]
fn a_round_trip_is_two_delays_and_one_way_can_be_another() {
    let both = good(&["rtt=200ms", "back.delay=10ms", "forth.loss=1%"]);
    assert_eq!((both.forth.delay_ns, both.back.delay_ns), (100_000_000, 10_000_000));
    assert_eq!((both.forth.loss, both.back.loss), (0.01, 0.0));
    assert_eq!(both.rtt_ns(), 110_000_000);
    // 1 % of the round trip, and never less than 1 ms.
    assert_eq!(both.tolerance_ns(), 1_100_000);
    assert_eq!(good(&["rtt=2ms"]).tolerance_ns(), 1_000_000);
}

#[test]
fn what_cannot_be_is_refused_with_a_reason_and_changes_nothing() {
    for (change, why) in [
        ("delay=50", "not a time"),
        ("delay=50 parsecs", "not a time"),
        ("delay=-1ms", "not a time"),
        ("delay=1h", "30 s"),
        ("rate=fast", "not a rate"),
        ("rate=1bit", "1 kbit"),
        ("rate=1e9bit", "not a rate"),
        ("loss=101%", "not a fraction"),
        ("loss=2", "not a fraction"),
        ("loss=nan", "not a fraction"),
        ("queue=-5", "not a size"),
        ("overhead=4K", "0 to 1000"),
        ("burst=x", "number of packets"),
        ("jitter=5ms", "must not exceed the delay"),
        ("jitter=5ms,odd", "uniform or normal"),
        ("speed=1", "\"speed\""),
        ("up.loss=1%", "forth or back"),
        ("loss", "NAME=VALUE"),
    ] {
        let mut shapes = good(&["loss=1%"]);
        let before = shapes.clone();
        let told = shapes.change(&["corrupt=1%", change]).expect_err(change).to_string();
        assert!(told.contains(why), "{change}: {told}");
        assert_eq!(shapes, before, "{change}");
    }
    assert!(changed(&["loss=90%", "burst=2"]).is_err());
    // Only all together need to fit.
    good(&["jitter=5ms", "delay=5ms"]);
}
