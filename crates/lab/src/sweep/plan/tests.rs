//! Points, figures, and times.

use super::*;

fn plan() -> Plan {
    let figure = Plan::figure(5, 100_000_000).unwrap();
    Plan { scale: 1.0, figure: None, encrypt: vec![false], ..figure }
}

#[test]
fn every_combination_is_one_point() {
    let plan = Plan {
        rtt_ms: vec![0.0, 10.0],
        windows: vec![65_536, 1 << 20],
        instances: vec![1, 4],
        encrypt: vec![false, true],
        congestion: vec!["reno".into(), "cubic".into()],
        ..plan()
    };
    let points = plan.points();
    assert_eq!(points.len(), 32);
    for (n, point) in points.iter().enumerate() {
        assert!(!points[..n].contains(point), "{point:?} is there twice");
    }
    assert_eq!(plan.check(), Ok(()));
}

#[test]
fn figures_keep_their_share_of_the_link() {
    for (figure, instances) in [(5, 1), (6, 2), (7, 4)] {
        for rate in [100_000_000, 1_000_000_000] {
            let plan = Plan::figure(figure, rate).unwrap();
            assert_eq!(plan.check(), Ok(()));
            let source = plan.windows.iter().map(|bytes| plan.source_window(*bytes));
            assert!(source.eq(SOURCE_BUFFERS.iter().map(|bytes| *bytes as f64)));
            let far = plan.points().into_iter().rfind(|at| !at.encrypt).unwrap();
            assert_eq!((far.rtt_ms, far.instances), (200.0, instances));
            // 512 MiB at 200 ms: 696 of 940 MB/s, as often as it fits into the link.
            let share = plan.predicted(&far, 0.2) / plan.link();
            let expected = (f64::from(instances) * 0.7409).min(1.0);
            assert!((share - expected).abs() < 0.001, "{share}");
        }
    }
    assert_eq!(Plan::figure(4, 100_000_000), None);
}

#[test]
fn a_small_block_has_headers_as_a_large_one() {
    let figure = Plan::figure(5, 100_000_000).unwrap();
    let at = |window| At { window, ..figure.points()[0].clone() };
    let carries = |window| figure.carries(&at(window)) / 12.5e6;
    assert!((carries(52) - 0.5).abs() < 1e-9, "one packet, half of it payload");
    assert!((carries(1448) - 1448.0 / 1500.0).abs() < 1e-9, "a full packet");
    assert!((carries(1449) - 1449.0 / 1553.0).abs() < 1e-9, "one more for the last byte");
    assert!((carries(1 << 26) * 12.5e6 / figure.link() - 1.0).abs() < 1e-4, "many");
    let stream = Plan { carrier: Carrier::Stream, ..figure.clone() };
    assert_eq!(stream.carries(&at(64)), stream.link(), "its packets are full");
}

#[test]
fn a_point_takes_seconds_whatever_the_rate() {
    for rate in [10_000_000, 100_000_000, 1_000_000_000] {
        let plan = Plan::figure(7, rate).unwrap();
        for at in plan.points() {
            let (warm, measured) = plan.times_ns(&at);
            assert!(warm >= 300_000_000 && measured >= 1_000_000_000, "{at:?}");
            assert!(warm + measured < 16_000_000_000, "{at:?}: {warm} and {measured}");
        }
    }
}

#[test]
fn tcp_is_not_what_limits_stop_and_wait() {
    let plan = plan();
    for at in plan.points() {
        let held = plan.link() * at.rtt_ms / 1e3;
        let flight = plan.flight(&at);
        assert!(flight >= at.window || flight as f64 >= 2.0 * held, "{at:?}: {flight}");
        assert!(plan.queue(&at) >= flight * u64::from(at.instances), "{at:?}");
    }
}

#[test]
fn blocks_of_nfs_are_waited_for_and_files_keep_a_window_full() {
    let at = At { rtt_ms: 20.0, window: 64 << 10, instances: 4, ..plan().points()[0].clone() };
    let said = |carrier| Plan { carrier, ..plan() }.predicted(&at, 0.02);
    let (waits, stream) = (said(Carrier::StopAndWait), said(Carrier::Stream));
    // 64 KiB in 20 ms and their own time, four times; in 20 ms alone.
    assert!((waits - 4.0 * 65_536.0 / 0.0255).abs() < 2e5 && waits < stream, "{waits} {stream}");
    for carrier in [Carrier::NfsRead, Carrier::NfsWrite] {
        assert_eq!(said(carrier), waits, "{carrier:?}");
    }
    for carrier in [Carrier::Ftp, Carrier::Ftps, Carrier::Https, Carrier::Sftp] {
        assert_eq!(said(carrier), stream, "{carrier:?}");
    }
}

#[test]
fn a_protocol_has_no_more_in_flight_than_its_limit() {
    for carrier in [Carrier::NfsRead, Carrier::NfsWrite, Carrier::Sftp] {
        let of = |windows| Plan { carrier, windows, ..plan() }.check();
        let most = carrier.window_max().unwrap();
        assert_eq!(of(vec![64 << 10, most]), Ok(()));
        let refused = of(vec![most + 1]).unwrap_err().to_string();
        assert!(refused.contains(carrier.title()), "{refused}");
    }
    assert_eq!(Plan { carrier: Carrier::Ftp, windows: vec![8 << 20], ..plan() }.check(), Ok(()));
}

#[test]
fn invalid_plans_are_refused_in_a_sentence() {
    let refused = |plan: Plan| plan.check().unwrap_err().to_string();
    assert!(refused(Plan { windows: vec![0], ..plan() }).contains("0 bytes"));
    assert!(refused(Plan { windows: vec![], ..plan() }).contains("not 0"));
    assert!(refused(Plan { instances: vec![0], ..plan() }).contains("connections"));
    assert!(refused(Plan { repeats: 0, ..plan() }).contains("repetitions"));
    assert!(refused(Plan { congestion: vec!["a b".into()], ..plan() }).contains("a b"));
    assert!(refused(Plan { rtt_ms: vec![-1.0], ..plan() }).contains("-1"));
    assert!(refused(Plan { rate: 1, ..plan() }).contains("rate"));
}
