//! A recorded dataset has one-second resolution long after the flight recorder has overwritten the
//! operations: from memory, and from disk after a restart.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use analytics::collect::Assembler;
use analytics::names::HubResolver;
use analytics::query::{Data, Engine, Query, Source};
use analytics::store::{Retention, Store};
use base::clock::{NS_PER_S, wall_ns};
use base::limits::SECOND_GRACE_NS;
use probe::hub::{Hub, HubOptions};
use probe::op::{OpRecord, flag};
use probe::phases::{Phase, PhaseParts};

const READS: &str = "nfs3.ops[op=read][client=10.0.0.1][file]";
const PHASES: &str = "nfs3.ops[op=read][client=10.0.0.1][phase]";
const BYTES: &str = "nfs3.bytes[op=read][client=10.0.0.1][user=0]";
/// Whole minutes, so that one that was kept in part comes first.
const SECONDS: u64 = 240;

fn engine(dir: &Path) -> (Arc<Hub>, Arc<Engine>) {
    // Holds some seconds of this test.
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 16 });
    hub.clients().intern(Ipv4Addr::new(10, 0, 0, 1).into());
    hub.clients().intern(Ipv4Addr::new(10, 0, 0, 2).into());
    let store = Store::open(dir, Retention::default()).expect("a store");
    let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub.clone())), Some(store));
    (hub, engine)
}

/// Client 1 reads file 7 as often as the second's number in ten, file 8 twice; client 2 as well.
fn operations(second: u64) -> Vec<OpRecord> {
    let record = |client: u32, file: u64, n: u64| OpRecord {
        done_ns: second * NS_PER_S + n,
        latency_ns: 1000,
        phases: PhaseParts::of(1000, [250, 0, 750, 0, 0]),
        file,
        bytes: 100,
        size: 100,
        client,
        protocol: 1,
        op: 6,
        share: 1,
        flags: flag::HAS_FILE | flag::HAS_RANGE,
        ..OpRecord::default()
    };
    let mut records = Vec::new();
    for client in [1, 2] {
        records.extend((0..second % 10).map(|n| record(client, 7, n)));
        records.extend((0..2).map(|n| record(client, 8, 10 + n)));
    }
    records.extend((0..100).map(|n| record(2, 9, 100 + n)));
    records
}

fn ask(engine: &Engine, id: &str, from: u64, to: u64, step: u64) -> Data {
    let query = Query { from: Some(from as i64), to: Some(to as i64), step, ..Query::default() };
    engine.data(&id.parse().expect("an id"), &query).expect("an answer")
}

/// Seconds before its request have no data, and those after are exact.
fn check(engine: &Engine, start: u64) {
    let since = start + 30;
    let data = ask(engine, READS, since - 2, since + 4, 1);
    assert_eq!((data.source, data.exact), (Source::Store, true));
    let wanted = |n: u64| Some((n % 10) as f64);
    let total: Vec<_> = (since..since + 4).map(|n| wanted(n).map(|reads| reads + 2.0)).collect();
    assert_eq!(data.total[..2], [None, None]);
    assert_eq!(data.total[2..], total);
    let rows = data.rows.expect("rows");
    let file = |file: u64| rows.iter().find(|row| row.key == format!("{file:016x}"));
    assert_eq!(file(8).expect("file 8").values[2..], [Some(2.0); 4]);
    let sevens: Vec<_> = (since..since + 4).map(wanted).collect();
    let found = file(7).expect("file 7");
    assert_eq!(found.values[2..].iter().map(|v| v.or(Some(0.0))).collect::<Vec<_>>(), sevens);
    assert!(file(9).is_none(), "of another client");
    // Operations are divided among phases.
    let phases = ask(engine, PHASES, since, since + 4, 1);
    assert_eq!(phases.source, Source::Store);
    for (row, (phase, part)) in
        phases.rows().iter().zip([(Phase::Pool, 0.75), (Phase::Inline, 0.25)])
    {
        assert_eq!(row.key, phase.id());
        let values: Vec<_> = row.values.iter().flatten().collect();
        let near = values
            .iter()
            .zip(&total)
            .all(|(v, all)| (**v - part * all.unwrap_or(0.0)).abs() < 0.01);
        assert!(near, "{values:?} of {total:?}");
        let time = row.time.as_ref().expect("a time");
        assert!((time.share - part).abs() < 0.002 && (time.average_ns - 1000.0 * part).abs() < 2.0);
    }
    // Of its first minute half was kept, and the mean is of that half.
    let minutes = ask(engine, BYTES, start, start + 180, 60);
    let mean = 100.0 * (2.0 + 4.5);
    assert_eq!(minutes.total, [Some(mean), Some(mean), Some(mean)]);
}

#[test]
fn it_is_answered_by_the_second_after_the_recorder_has_forgotten() {
    let dir = std::env::temp_dir().join(format!("plimsoll-kept-{}", std::process::id()));
    drop(std::fs::remove_dir_all(&dir));
    let (hub, engine) = self::engine(&dir);
    let start = (wall_ns() / NS_PER_S + 60).next_multiple_of(60);
    for id in [READS, PHASES, BYTES] {
        let stat = id.parse().expect("an id");
        engine.kept().keep(&stat, "anna", start + 30, SECONDS).expect("kept");
    }
    let mut core = hub.core(0);
    let mut assembler = Assembler::new(hub.clone(), engine.names().clone());
    for second in start..start + SECONDS {
        operations(second).iter().for_each(|record| core.finish(record));
        while core.idle((second + 1) * NS_PER_S + SECOND_GRACE_NS) {}
        let finished = hub.take_before(second + 1);
        engine.push(assembler.frame(second, &finished, &[]));
    }
    let oldest = hub.recorded().since_ns / NS_PER_S;
    assert!(oldest > start + 60, "the recorder has forgotten the beginning");
    check(&engine, start);
    let text = engine.kept().to_text();
    engine.close();
    drop((core, engine));
    // Its recorder holds what comes later only.
    let (hub, engine) = self::engine(&dir);
    let mut core = hub.core(0);
    (0..20).flat_map(|_| operations(start + SECONDS)).for_each(|record| core.finish(&record));
    let forgotten = ask(&engine, READS, start + 30, start + 40, 1);
    assert_eq!(forgotten.source, Source::Recorder, "nobody says that it was kept");
    engine.kept().take_text(&text).expect("ours");
    check(&engine, start);
    std::fs::remove_dir_all(&dir).expect("removed");
}
