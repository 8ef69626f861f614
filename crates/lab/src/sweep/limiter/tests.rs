//! The limiter from accountings as TCP gives them.

use super::*;

const LINK: f64 = 12e6;

/// Four seconds, busy all the time, one megabyte allowed at 100 ms.
fn busy() -> Tcp {
    Tcp {
        connections: 1,
        elapsed_us: 4_000_000,
        busy_us: 4_000_000,
        cwnd_bytes: 1_000_000,
        min_rtt_us: 100_000,
        segments: 10_000,
        ..Tcp::default()
    }
}

fn stream(tcp: Tcp, bytes_s: f64) -> Limiter {
    judge(Carrier::Stream, Some(&tcp), bytes_s, LINK)
}

#[test]
fn a_link_that_is_full_is_the_limit_before_all_others() {
    let tcp = Tcp { rwnd_limited_us: 4_000_000, retransmits: 100, ..busy() };
    assert_eq!(stream(tcp, LINK * 0.97), Limiter::Link);
    assert_eq!(judge(Carrier::StopAndWait, None, LINK, LINK), Limiter::Link);
}

#[test]
fn what_tcp_waited_for_most_of_the_time_is_the_limit() {
    let window = Tcp { rwnd_limited_us: 3_900_000, ..busy() };
    assert_eq!(stream(window, 1e6), Limiter::ReceiveWindow);
    let buffer = Tcp { sndbuf_limited_us: 3_000_000, rwnd_limited_us: 500_000, ..busy() };
    assert_eq!(stream(buffer, 1e6), Limiter::SendBuffer);
}

#[test]
fn loss_comes_before_what_it_causes() {
    let tcp = Tcp { retransmits: 20, ..busy() };
    assert_eq!(stream(tcp, 9e6), Limiter::Loss);
    // One segment of ten thousand is an accident.
    assert_eq!(stream(Tcp { retransmits: 1, ..busy() }, 9e6), Limiter::CongestionWindow);
}

#[test]
fn the_congestion_window_is_the_limit_when_it_is_used() {
    assert_eq!(stream(busy(), 9e6), Limiter::CongestionWindow);
    assert_eq!(stream(busy(), 1e6), Limiter::Unknown);
    assert_eq!(stream(Tcp { app_limited: true, ..busy() }, 9e6), Limiter::Unknown);
}

#[test]
fn stop_and_wait_waits() {
    let tcp = Tcp { app_limited: true, ..busy() };
    assert_eq!(judge(Carrier::StopAndWait, Some(&tcp), 1e6, LINK), Limiter::Acknowledgements);
    // Unless TCP itself was in its way.
    let tcp = Tcp { rwnd_limited_us: 3_000_000, ..busy() };
    assert_eq!(judge(Carrier::StopAndWait, Some(&tcp), 1e6, LINK), Limiter::ReceiveWindow);
    assert_eq!(judge(Carrier::StopAndWait, None, 1e6, LINK), Limiter::Unknown);
    let tcp = Tcp { app_limited: true, ..busy() };
    for carrier in [Carrier::NfsRead, Carrier::NfsWrite] {
        assert_eq!(judge(carrier, Some(&tcp), 1e6, LINK), Limiter::Acknowledgements);
    }
    assert_eq!(judge(Carrier::Sftp, Some(&tcp), 1e6, LINK), Limiter::Unknown);
}

#[test]
fn several_connections_are_one_accounting() {
    let other = Tcp { min_rtt_us: 99_000, rwnd_limited_us: 4_000_000, ..busy() };
    let both = Tcp::sum([Some(busy()), Some(other)].into_iter()).unwrap();
    assert_eq!((both.connections, both.elapsed_us, both.min_rtt_us), (2, 8_000_000, 99_000));
    assert_eq!(stream(both, 1e6), Limiter::ReceiveWindow);
    assert_eq!(Tcp::sum([Some(busy()), None].into_iter()), None);
    assert_eq!(Tcp::sum(std::iter::empty()), None);
}
