//! Counts between two moments, also of what the recorder no longer holds.

use std::sync::Arc;

use probe::hub::{Hub, HubOptions};
use probe::op::OpRecord;

use super::*;
use crate::names::HubResolver;

const MS: u64 = 1_000_000;

/// An engine over a recorder of this many bytes, with a read of 10 bytes every millisecond for 200
/// ms, each in a piece of 6 bytes before and the rest at its end. Returns when that began.
fn engine(bytes: usize) -> (Arc<Engine>, u64) {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: bytes });
    let start = hub.recorded().since_ns;
    let client = hub.clients().intern(std::net::IpAddr::from([192, 0, 2, 1]));
    let protocol = Protocol::Nfs3 as u8;
    let mut core = hub.core(0);
    for n in 0..200 {
        let at =
            OpRecord { done_ns: start + n * MS, protocol, op: 6, client, ..Default::default() };
        core.finish(&OpRecord { bytes: 6, flags: flag::PIECE, latency_ns: 5, ..at });
        core.finish(&OpRecord { bytes: 4, latency_ns: 7, ..at });
        core.finish(&OpRecord { flags: flag::REPLAY, ..at });
    }
    let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub)), None);
    (engine, start)
}

#[test]
fn between_two_moments() {
    let (engine, start) = engine(1 << 20);
    let counts = engine.counts("nfs3", start + 10 * MS, start + 35 * MS).unwrap();
    let row = Count {
        op: "read".into(),
        client: "192.0.2.1".into(),
        count: 25,
        bytes: 250,
        latency_ns: 25 * 7,
    };
    assert_eq!(counts, Counts { complete: true, rows: vec![row] });
    // The group of both versions has the same operations.
    assert_eq!(engine.counts("nfs", start, start + MS).unwrap().rows[0].count, 1);
    assert_eq!(engine.counts("smb", start, start + MS).unwrap().rows, []);
    assert_eq!(engine.counts("cpu", start, start + MS), None);
}

#[test]
fn what_was_overwritten_or_not_recorded_is_not_complete() {
    let (engine, start) = engine(64 * 64);
    assert!(!engine.counts("nfs3", start, start + 200 * MS).unwrap().complete);
    let (engine, start) = self::engine(1 << 20);
    engine.hub().set_collect(false);
    let now = base::clock::wall_ns();
    assert!(!engine.counts("nfs3", start, now + MS).unwrap().complete);
}
