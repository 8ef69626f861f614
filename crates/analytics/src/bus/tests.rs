//! A slow subscriber loses the oldest seconds and receives their number; others lose nothing.

use super::*;

fn frame(time: u64) -> Arc<Frame> {
    Arc::new(Frame { time, span: 1, covered: 1, ..Frame::default() })
}

#[test]
fn a_slow_subscriber_loses_the_oldest_and_is_notified() {
    let bus = Bus::default();
    let (mut slow, mut quick) = (bus.subscribe().expect("room"), bus.subscribe().expect("room"));
    let extra = 7;
    for time in 0..SUBSCRIBER_QUEUE_MAX as u64 + extra {
        let lost = bus.publish(&frame(time));
        assert_eq!(lost, u64::from(time >= SUBSCRIBER_QUEUE_MAX as u64));
        let tick = quick
            .recv_timeout(Duration::ZERO)
            .or_else(|| quick.recv_timeout(Duration::from_secs(60)));
        assert_eq!(tick.map(|t| (t.frame.time, t.lost)), Some((time, 0)));
    }
    let first = slow.recv_timeout(Duration::from_secs(60)).expect("the oldest that is left");
    assert_eq!((first.frame.time, first.lost), (extra, extra));
    let second = slow.recv_timeout(Duration::from_secs(60)).expect("the next");
    assert_eq!((second.frame.time, second.lost), (extra + 1, 0));
}

#[test]
fn the_end_is_seen_after_the_last_second() {
    let bus = Bus::default();
    let mut ticks = bus.subscribe().expect("room");
    bus.publish(&frame(1));
    bus.close();
    assert!(ticks.recv_timeout(Duration::from_secs(60)).is_some());
    assert!(ticks.recv_timeout(Duration::from_secs(60)).is_none());
}

#[test]
fn subscribers_are_bounded_and_leave_room_when_they_go() {
    let bus = Bus::default();
    let all: Vec<_> = (0..SUBSCRIBERS_MAX).map(|_| bus.subscribe().expect("room")).collect();
    assert!(bus.subscribe().is_none());
    drop(all);
    assert!(bus.subscribe().is_some());
}
