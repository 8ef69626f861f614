//! What limits, by given counts.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use base::clock::NS_PER_S;
use wire::dsync::{Counts, Load, Role};

use super::{Interval, Limiter, Meter, limiter, nothing, sys};

/// A second of a side with two processors, in thousandths of it.
fn second(disk: u64, room: u64, cpu: u64) -> Load {
    let ns = |thousandths| thousandths * NS_PER_S / 1_000;
    let (disk_ns, room_ns, cpu_ns) = (ns(disk), ns(room), ns(cpu));
    Load { at_ns: NS_PER_S, disk_ns, room_ns, cpu_ns, cpus: 2, ..nothing() }
}

/// With this many streams, busy for `busy` thousandths each, of which the other's window and this
/// side's buffer were the limit for `rwnd` and `sndbuf`.
fn streams(load: Load, streams: u32, (busy, rwnd, sndbuf): (u64, u64, u64)) -> Load {
    let ns = |thousandths| thousandths * NS_PER_S / 1_000 * u64::from(streams);
    Load { streams, busy_ns: ns(busy), rwnd_ns: ns(rwnd), sndbuf_ns: ns(sndbuf), ..load }
}

fn of(source: Load, destination: Load) -> Option<Limiter> {
    limiter(&Interval { moved: 1, source, destination, local: false })
}

#[test]
fn each_limit_is_derived_from_what_is_waited_for() {
    use Limiter::{Bandwidth, DestinationDisk, Link, Processor, SourceDisk, Window};
    let idle = || second(50, 0, 100);
    let held = |busy| streams(second(50, 3_500, 300), 4, busy);
    // What is expected, the source and the destination.
    let cases = [
        (SourceDisk, second(900, 20, 200), idle()),
        (SourceDisk, second(3_600, 20, 200), second(400, 0, 300)),
        (DestinationDisk, second(100, 20, 200), second(900, 0, 300)),
        (Processor, second(100, 20, 950), second(50, 0, 300)),
        (Processor, second(900, 20, 1_900), idle()),
        (Processor, held((900, 0, 0)), second(100, 0, 1_800)),
        (Link, held((950, 10, 10)), idle()),
        (Link, held((950, 10, 10)), second(900, 0, 200)),
        (Window, held((950, 10, 800)), idle()),
        (Window, held((950, 800, 10)), second(100, 0, 300)),
        (DestinationDisk, held((950, 800, 10)), second(900, 0, 300)),
        (Processor, held((950, 800, 10)), second(100, 0, 1_000)),
        // The streams are not kept busy: what encrypts for them is slow.
        (Processor, held((200, 0, 0)), idle()),
        (Link, second(50, 900, 300), idle()),
        (DestinationDisk, second(50, 900, 300), second(700, 0, 300)),
        (Bandwidth, Load { paused_ns: NS_PER_S / 2, ..held((100, 0, 0)) }, idle()),
    ];
    for (number, (expected, source, destination)) in cases.into_iter().enumerate() {
        assert_eq!(of(source, destination), Some(expected), "case {number}");
    }
}

#[test]
fn nothing_is_reported_of_what_is_not_observed() {
    assert_eq!(of(second(10, 10, 10), second(10, 10, 10)), None, "both wait for each other");
    assert_eq!(of(nothing(), second(900, 0, 0)), None, "a side that has not told");
    let (source, destination) = (second(900, 0, 0), second(0, 0, 0));
    let still = Interval { moved: 0, source, destination, local: false };
    assert_eq!(limiter(&still), None);
    let both = |local| Interval {
        moved: 1,
        source: second(50, 900, 300),
        destination: second(50, 0, 300),
        local,
    };
    assert_eq!(limiter(&both(true)), Some(Limiter::Processor), "there is no link");
    assert_eq!(limiter(&both(false)), Some(Limiter::Link));
}

fn counts(bytes_done: u64, scanned: bool) -> Counts {
    Counts {
        entries: 0,
        changes: 0,
        files: 1,
        bytes: 10_000,
        files_done: 0,
        bytes_done,
        bytes_received: 0,
        bytes_cloned: 0,
        bytes_copied: 0,
        devices_skipped: 0,
        set_id_dropped: 0,
        failures: 0,
        scanned,
    }
}

#[test]
fn the_rate_is_that_of_the_last_seconds() {
    let meter = Meter::new(false);
    let at = |tenths: u64| tenths * NS_PER_S / 10;
    let first = meter.progress(at(0), counts(0, false));
    assert_eq!((first.rate, first.left_ns, first.limiter), (0, None, None));
    assert_eq!(meter.progress(at(5), counts(500, false)).rate, 1_000);
    // It becomes slower: what was long ago does not count.
    let mut last = first;
    for tenths in 6..60 {
        meter.store(Role::SOURCE, second_at(tenths, 900));
        meter.store(Role::DESTINATION, second_at(tenths, 10));
        last = meter.progress(at(tenths), counts(500 + (tenths - 5) * 10, true));
    }
    assert_eq!(last.rate, 100);
    assert_eq!(last.limiter, Some(Limiter::SourceDisk));
    let left = 10_000 - last.counts.bytes_done;
    assert_eq!(last.left_ns, Some(left * NS_PER_S / 100));
}

/// Counts since the begin of a side that waits for its disk for `disk` thousandths.
fn second_at(tenths: u64, disk: u64) -> Load {
    let at_ns = tenths * NS_PER_S / 10;
    Load { at_ns, disk_ns: at_ns * disk / 1_000, cpus: 2, ..nothing() }
}

#[test]
fn tcp_reports_a_window_that_is_full() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let mut socket = TcpStream::connect(listener.local_addr().expect("it")).expect("a socket");
    let _other = listener.accept().expect("it");
    assert_eq!(sys::tcp(&socket).rwnd_us, 0);
    socket.set_nonblocking(true).expect("set");
    // Without a reader the window fills, and the time with it is counted.
    let bytes = vec![0; 1 << 20];
    let until = base::clock::monotonic_ns() + 20 * NS_PER_S;
    while sys::tcp(&socket).rwnd_us == 0 {
        assert!(base::clock::monotonic_ns() < until, "{:?}", sys::tcp(&socket));
        let _full = socket.write(&bytes);
        std::thread::yield_now();
    }
    assert!(sys::tcp(&socket).busy_us > 0);
}

#[test]
fn a_wait_is_time_without_the_processor() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let waited = AtomicU64::new(0);
    let (send, receive) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        // As long as this one works, the other waits.
        while probe::core::thread_cpu_ns() < 20_000_000 {}
        drop(send);
    });
    super::waits(&waited, || receive.recv().is_err());
    other.join().expect("no panic");
    assert!(waited.load(Ordering::Relaxed) >= 10_000_000, "{waited:?}");
}
