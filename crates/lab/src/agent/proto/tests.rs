//! Messages survive the journey; broken ones are refused without cost.

use super::*;

#[test]
fn messages_survive_a_round_trip() {
    let window = Window { step: 3, ops: 9, latency: "x".into(), ..Default::default() };
    let said = FromAgent::Window(Box::new(window));
    let mut wire = Vec::new();
    send(&mut wire, &said).unwrap();
    send(&mut wire, &ToAgent::Ping { id: 4 }).unwrap();
    let mut from = wire.as_slice();
    assert_eq!(receive::<FromAgent>(&mut from).unwrap(), said);
    assert_eq!(receive::<ToAgent>(&mut from).unwrap(), ToAgent::Ping { id: 4 });
    assert!(matches!(receive::<ToAgent>(&mut from), Err(ProtoError::Ended)));
}

#[test]
fn broken_messages_are_named() {
    let long = u32::MAX.to_be_bytes();
    assert!(matches!(receive::<ToAgent>(&mut long.as_slice()), Err(ProtoError::TooLong(_))));
    let cut = [0, 0, 0, 9, b'{'];
    assert!(matches!(receive::<ToAgent>(&mut cut.as_slice()), Err(ProtoError::Ended)));
    let foreign = [0, 0, 0, 2, b'{', b'}'];
    assert!(matches!(receive::<ToAgent>(&mut foreign.as_slice()), Err(ProtoError::Form(_))));
}

#[test]
fn the_highest_common_version_is_used() {
    assert_eq!(agree((1, 9)).unwrap(), VERSIONS.1);
    assert!(matches!(agree((VERSIONS.1 + 1, 99)), Err(ProtoError::Version(..))));
}

#[test]
fn what_threads_did_survives_a_round_trip() {
    use crate::programs::drive::Totals;
    let faults = [(7, "short read".to_owned())].into();
    let totals = Totals { faults, during: [("read".to_owned(), 3)].into(), ..Totals::default() };
    let value = serde_json::to_value(&totals).unwrap();
    let end = ProgramEnd { began_ns: 5, totals: value };
    let mut wire = Vec::new();
    send(&mut wire, &FromAgent::ProgramEnd(Box::new(end))).unwrap();
    let FromAgent::ProgramEnd(end) = receive(&mut wire.as_slice()).unwrap() else { panic!() };
    assert_eq!(serde_json::from_value::<Totals>(end.totals).unwrap(), totals);
}

#[test]
fn a_step_beyond_the_bounds_of_jobs_is_refused() {
    let rule =
        |rate, queue| OpenRule { rate, arrival: Default::default(), in_flight: 1, queue, seed: 1 };
    let start = |threads, window_ns, open| {
        let (step, at_ns, until_ns, ops_max) = (1, 2, 3, None);
        Start { step, threads, at_ns, until_ns, window_ns, open, ops_max }.check()
    };
    assert_eq!(start(1024, 10_000_000, None), Ok(()));
    assert_eq!(start(1, 10_000_000, Some(rule(1e9, 1_000_000))), Ok(()));
    assert!(start(1025, 10_000_000, None).is_err() && start(1, 0, None).is_err());
    for (rate, queue) in [(0.0, 1), (-1.0, 1), (f64::NAN, 1), (2e9, 1), (1.0, u32::MAX)] {
        assert!(start(1, 10_000_000, Some(rule(rate, queue))).is_err(), "{rate}, {queue}");
    }
    let prepare = |slots, block| {
        let kind = crate::workload::Kind::RandRead;
        let shape = Shape { kind, block, files: 1, file_size: 1 << 30, own_files: false };
        let (target, client, bind, seed, check_one_in) = ("null:".to_owned(), 0, None, 1, 1);
        Prepare { target, client, bind, shape, seed, check_one_in, slots }.check()
    };
    assert_eq!(prepare(1024, 1 << 20), Ok(()));
    assert!(prepare(1025, 1).is_err() && prepare(1, 0).is_err() && prepare(1, u32::MAX).is_err());
}
