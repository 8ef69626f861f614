//! What a link does, with a clock that is handed in and chance from a seed.

use base::random::SeededRandom;

use super::*;
use crate::bridge::flight::Flight;
use crate::bridge::shape::Shapes;

const MS: u64 = 1_000_000;

fn link(changes: &[&str]) -> Link<SeededRandom> {
    seeded(changes, 1)
}

fn seeded(changes: &[&str], seed: u64) -> Link<SeededRandom> {
    let mut shapes = Shapes::default();
    shapes.change(changes).expect("a link");
    let rtt_ns = shapes.rtt_ns();
    Link::new(shapes.forth, rtt_ns, SeededRandom::new(seed))
}

fn due(fate: PacketOutcome) -> u64 {
    match fate {
        PacketOutcome::Arrives(arrival) => arrival.due_ns,
        other => panic!("{other:?}"),
    }
}

/// Whether a share of `n` packets is what chance gives for `p`, within four standard deviations.
fn by_chance(count: u64, n: u64, p: f64) -> bool {
    let sigma = (n as f64 * p * (1.0 - p)).sqrt();
    (count as f64 - n as f64 * p).abs() < 4.0 * sigma
}

#[test]
fn without_anything_a_packet_arrives_at_once_and_with_a_delay_after_it() {
    assert_eq!(due(link(&[]).offer(5, 1500)), 5);
    assert_eq!(due(link(&["delay=100ms"]).offer(5, 1500)), 100 * MS + 5);
}

#[test]
fn bits_take_the_line_for_exactly_their_time() {
    // 3 Gbit/s: 1500 bytes take 4000 ns; 7 bytes 18.67 ns, and three times that is 56.
    let mut line = link(&["rate=3Gbit", "queue=1G"]);
    assert_eq!(due(line.offer(0, 1500)), 4_000);
    assert_eq!(due(line.offer(0, 7)), 4_018);
    assert_eq!(due(line.offer(0, 7)), 4_037);
    assert_eq!(due(line.offer(0, 7)), 4_056);
    // Nothing is owed for a time in which nothing was sent.
    assert_eq!(due(line.offer(10_000, 1500)), 14_000);
    // What Ethernet adds is counted with each.
    assert_eq!(due(link(&["rate=1Gbit", "overhead=38"]).offer(0, 1462)), 12_000);
}

#[test]
fn a_long_run_has_the_rate_that_was_set() {
    let mut line = link(&["rate=937Mbit", "queue=100G"]);
    let packets = 100_000_u64;
    let last = (0..packets).map(|_| due(line.offer(0, 1499))).last().expect("packets");
    assert_eq!(last, packets * 1499 * 8 * 1_000 / 937);
}

#[test]
fn what_does_not_fit_into_the_queue_is_dropped() {
    // 10 packets of 1000 bytes wait; the first one is on the line and counts as well.
    let mut line = link(&["rate=8Mbit", "queue=10000"]);
    let fates: Vec<PacketOutcome> = (0..20).map(|_| line.offer(0, 1000)).collect();
    assert!(fates[..10].iter().all(|fate| matches!(fate, PacketOutcome::Arrives(_))), "{fates:?}");
    assert!(fates[10..].iter().all(|fate| *fate == PacketOutcome::QueueFull), "{fates:?}");
    assert_eq!(line.waiting(0), 10_000);
    // A packet takes 1 ms: after 3 ms there is room for three.
    assert_eq!(line.waiting(3 * MS), 7_000);
    let fits = (0..20).filter(|_| line.offer(3 * MS, 1000) != PacketOutcome::QueueFull).count();
    assert_eq!(fits, 3);
    // One that is larger than the queue passes an idle line.
    assert_ne!(line.offer(1_000 * MS, 60_000), PacketOutcome::QueueFull);
}

#[test]
fn an_automatic_queue_holds_a_round_trip() {
    let mut shapes = Shapes::default();
    shapes.change(&["rtt=200ms", "rate=1Gbit"]).expect("a link");
    assert_eq!(shapes.forth.queue_bytes(shapes.rtt_ns()), 25_000_000);
    shapes.change(&["rtt=0", "rate=1Mbit"]).expect("a link");
    assert_eq!(shapes.forth.queue_bytes(shapes.rtt_ns()), 128 << 10);
}

#[test]
fn jitter_stays_in_its_bounds_and_keeps_the_order() {
    for kind in ["10ms", "10ms,normal"] {
        let mut line = link(&["delay=50ms", &format!("jitter={kind}")]);
        let (mut last, mut least, mut most, mut sum) = (0, u64::MAX, 0, 0);
        // Far apart, so that none is held up by the one before.
        for at in (0..10_000_u64).map(|n| n * 1_000 * MS) {
            let way = due(line.offer(at, 100)) - at;
            (least, most, sum) = (least.min(way), most.max(way), sum + way);
            assert!(at + way >= last);
            last = at + way;
        }
        let mean = sum as f64 / 10_000.0 / MS as f64;
        assert!((mean - 50.0).abs() < 0.5, "{kind}: {mean} ms");
        match kind {
            "10ms" => assert!(least >= 40 * MS && most <= 60 * MS, "{least} {most}"),
            // A normal distribution goes beyond twice its deviation, and not beyond six times.
            _ => assert!(most > 75 * MS && most <= 110 * MS, "{most}"),
        }
        // Close together, all would change places.
        let dues: Vec<u64> = (0..1_000).map(|n| due(line.offer(last + n * 1_000, 100))).collect();
        assert!(dues.is_sorted(), "{kind}");
    }
}

#[test]
fn loss_is_what_was_set() {
    for (loss, p) in [("0.1%", 0.001), ("3%", 0.03), ("50%", 0.5)] {
        let mut line = link(&[&format!("loss={loss}")]);
        let lost =
            (0..100_000).filter(|n| line.offer(*n, 100) == PacketOutcome::Lost).count() as u64;
        assert!(by_chance(lost, 100_000, p), "{lost} of 100000 at {loss}");
    }
    let mut line = link(&["loss=100%"]);
    assert!((0..1_000).all(|n| line.offer(n, 100) == PacketOutcome::Lost));
}

#[test]
fn bursts_have_their_length_and_the_same_loss() {
    let mut line = link(&["loss=1%", "burst=8"]);
    let lost: Vec<bool> = (0..400_000).map(|n| line.offer(n, 100) == PacketOutcome::Lost).collect();
    let count = lost.iter().filter(|lost| **lost).count() as f64;
    let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
    // Some 500 bursts: their number and length vary by 4.5 % each.
    assert!((count / 4_000.0 - 1.0).abs() < 0.25, "{count} lost");
    assert!((count / bursts / 8.0 - 1.0).abs() < 0.18, "{} in a row", count / bursts);
}

#[test]
fn those_held_back_are_overtaken_as_often_as_was_set() {
    let mut line = link(&["delay=10ms", "reorder=2%", "reorder-by=1ms"]);
    let mut flight = Flight::default();
    for number in 0..100_000_u64 {
        let at = number * 10_000;
        assert!(flight.push(due(line.offer(at, 100)), 100, number));
    }
    // RFC 4737: a packet is reordered if a later one came before it.
    let (mut highest, mut reordered) = (0, 0);
    while let Some(number) = flight.pop(u64::MAX) {
        reordered += u64::from(number < highest);
        highest = highest.max(number);
    }
    assert!(by_chance(reordered, 100_000, 0.02), "{reordered} of 100000");
}

#[test]
fn doubles_and_damage_are_what_was_set() {
    let mut line = link(&["duplicate=1%", "corrupt=0.5%"]);
    let (mut twice, mut damaged) = (0, 0);
    for n in 0..100_000 {
        if let PacketOutcome::Arrives(arrival) = line.offer(n, 100) {
            twice += u64::from(arrival.twice);
            damaged += u64::from(arrival.flip.is_some());
        }
    }
    assert!(by_chance(twice, 100_000, 0.01), "{twice} twice");
    assert!(by_chance(damaged, 100_000, 0.005), "{damaged} damaged");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_does_not() {
    let all = ["delay=20ms", "jitter=5ms", "loss=2%", "reorder=1%", "duplicate=1%", "corrupt=1%"];
    let run = |seed| {
        let mut line = seeded(&all, seed);
        (0..5_000).map(|n| line.offer(n * 1_000, 500)).collect::<Vec<_>>()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn a_change_holds_for_what_comes_then() {
    let mut line = link(&["delay=100ms", "rate=8Mbit", "queue=100000"]);
    assert_eq!(due(line.offer(0, 1000)), 101 * MS);
    assert_eq!(due(line.offer(0, 1000)), 102 * MS);
    let mut shapes = Shapes::default();
    shapes.change(&["delay=100ms", "rate=80Mbit", "queue=100000"]).expect("a link");
    // At 1 ms one waits, which takes 0.1 ms at the new rate.
    line.change(shapes.forth.clone(), 0, MS);
    assert_eq!(line.waiting(MS), 1_000);
    // But nothing overtakes what was scheduled to arrive at 102 ms.
    assert_eq!(due(line.offer(MS, 1000)), 102 * MS);
    assert_eq!(due(line.offer(2 * MS, 1000)), 102 * MS + MS / 10);
    shapes.change(&["rate=none", "delay=0"]).expect("a link");
    line.change(shapes.forth, 0, 200 * MS);
    assert_eq!((line.waiting(200 * MS), due(line.offer(200 * MS, 1000))), (0, 200 * MS));
}
