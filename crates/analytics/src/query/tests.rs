//! Answers over history: from disk, by the fidelity that the step needs and retention has left.

use std::path::PathBuf;

use probe::hub::HubOptions;

use super::*;
use crate::model::{Name, Rows, SAMPLE_SCALE, Table};
use crate::names::HubResolver;
use crate::store::Retention;

/// Start of a day.
const T: u64 = 86_400 * 20_000;

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("plimsoll-query-{name}-{}", std::process::id()));
    // Left by a test that was killed.
    drop(std::fs::remove_dir_all(&dir));
    dir
}

fn engine(dir: &std::path::Path, retention: Retention) -> Arc<Engine> {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 16 });
    let store = Store::open(dir, retention).expect("a store");
    Engine::new(hub.clone(), Arc::new(HubResolver(hub)), Some(store))
}

/// Client `a` does 1 operation per second, `b` as many as the second's number in its minute.
fn frame(time: u64) -> Frame {
    let mut rows = Rows::default();
    let read = Key::Name(Name::plain("read"));
    rows.add(Key::Name(Name::plain("a")), read.clone(), [1, 10]);
    rows.add(Key::Name(Name::plain("b")), read, [time % 60, 0]);
    let table = Table::from_rows("nfs3.ops".into(), ["client".into(), "op".into()], rows, [0; 2]);
    Frame { time, span: 1, covered: 1, dropped: 0, tables: vec![table] }
}

fn ask(engine: &Engine, id: &str, from: u64, to: u64, step: u64) -> Data {
    let query = Query { from: Some(from as i64), to: Some(to as i64), step, ..Query::default() };
    engine.data(&id.parse().expect("an id"), &query).expect("an answer")
}

#[test]
fn history_is_answered_from_disk_after_a_restart() {
    let dir = folder("restart");
    let first = engine(&dir, Retention::default());
    (T..T + 7300).for_each(|time| first.push(frame(time)));
    first.close();
    drop(first);
    let engine = engine(&dir, Retention::default());
    let seconds = ask(&engine, "nfs3.ops[client]", T + 3590, T + 3610, 1);
    let rows = seconds.rows.as_deref().expect("rows");
    assert_eq!(rows[0].key, "b");
    assert_eq!(rows[0].values[..3], [Some(50.0), Some(51.0), Some(52.0)]);
    assert_eq!(rows[1].values, vec![Some(1.0); 20]);
    // By the minute, and beyond the last whole minute by the second.
    let minutes = ask(&engine, "nfs3.ops[client=b][op]", T, T + 7320, 60);
    assert_eq!(minutes.times.len(), 122);
    assert_eq!(minutes.total[..2], [Some(29.5), Some(29.5)]);
    assert_eq!(minutes.total[121], Some((0..40).sum::<u64>() as f64 / 40.0));
    let hours = ask(&engine, "nfs3.bytes", T, T + 7200, 3600);
    assert_eq!(hours.total, [Some(10.0), Some(10.0)]);
    assert!(minutes.note.is_none() && hours.note.is_none());
    std::fs::remove_dir_all(&dir).expect("removed");
}

#[test]
fn levels_of_a_large_pool_are_right_by_the_hour() {
    const TB: u64 = 1_000_000_000_000;
    let dir = folder("large");
    let engine = engine(&dir, Retention::default());
    let tank = Key::Name(Name::plain("tank"));
    for time in T..T + 3700 {
        let mut rows = Rows::default();
        for (way, level) in [("data", 80 * TB), ("free", 40 * TB)] {
            let figures = [level * SAMPLE_SCALE as u64, 0];
            rows.add(tank.clone(), Key::Name(Name::plain(way)), figures);
        }
        let by = ["pool".into(), "use".into()];
        let table = Table::from_rows("capacity.bytes".into(), by, rows, [0; 2]);
        engine.push(Frame { time, span: 1, covered: 1, dropped: 0, tables: vec![table] });
    }
    let is = |found: Option<f64>, tb: u64| {
        let found = found.expect("a value");
        assert!((found / (tb * TB) as f64 - 1.0).abs() < 1e-9, "{found} is not {tb} TB");
    };
    for step in [1, 60, 3600] {
        let hour = |id| ask(&engine, id, T, T + 3600, step);
        is(hour("capacity.bytes").total[0], 120);
        is(hour("capacity.bytes[pool=tank]").total[0], 120);
        let pools = hour("capacity.bytes[pool]");
        is(pools.total[0], 120);
        is(pools.rows()[0].values[0], 120);
        let uses = hour("capacity.bytes[pool=tank][use]");
        is(uses.rows()[0].values[0], 80);
        is(uses.rows()[1].values[0], 40);
    }
    std::fs::remove_dir_all(&dir).expect("removed");
}

#[test]
fn a_client_with_a_label_that_changes_is_one_row() {
    let dir = folder("label");
    let engine = engine(&dir, Retention::default());
    let read = Key::Name(Name::plain("read"));
    for time in T..T + 3700 {
        let label = if time < T + 90 { "10.0.0.1" } else { "ann" };
        let name = Name { key: "10.0.0.1".into(), label: label.into() };
        let mut rows = Rows::default();
        rows.add(Key::Name(Arc::new(name)), read.clone(), [2, 0]);
        rows.add(Key::Name(Name::plain("b")), read.clone(), [1, 0]);
        let by = ["client".into(), "op".into()];
        let table = Table::from_rows("nfs3.ops".into(), by, rows, [0; 2]);
        engine.push(Frame { time, span: 1, covered: 1, dropped: 0, tables: vec![table] });
    }
    // In an hour both labels are in one frame.
    for (step, to) in [(1, T + 180), (60, T + 180), (3600, T + 3600)] {
        let data = ask(&engine, "nfs3.ops[client]", T, to, step);
        let rows: Vec<_> = data.rows().iter().map(|row| (&*row.key, &*row.label)).collect();
        assert_eq!(rows, [("10.0.0.1", "ann"), ("b", "b")], "by {step} s");
        for (row, rate) in data.rows().iter().zip([2.0, 1.0]) {
            assert_eq!(row.average, rate, "{} by {step} s", row.key);
            assert!(row.values.iter().all(|value| *value == Some(rate)), "{row:?}");
        }
    }
    std::fs::remove_dir_all(&dir).expect("removed");
}

#[test]
fn what_is_kept_by_the_minute_only_is_answered_by_the_minute() {
    let dir = folder("retention");
    let day = 86_400;
    let keep = Retention { keep: [3600, 10 * day, 100 * day], bytes: u64::MAX };
    let engine = engine(&dir, keep);
    (T..T + 120).for_each(|time| engine.push(frame(time)));
    (T + 2 * day..T + 2 * day + 400).for_each(|time| engine.push(frame(time)));
    let old = ask(&engine, "nfs3.ops", T, T + 180, 1);
    assert_eq!((old.step, old.total.len()), (60, 3));
    assert_eq!(old.total, [Some(30.5), Some(30.5), None]);
    assert_eq!(old.note.as_deref(), Some("statistics this old are only stored per minute"));
    let new = ask(&engine, "nfs3.ops", T + 2 * day, T + 2 * day + 5, 1);
    assert_eq!((new.step, new.total[4]), (1, Some(5.0)));
    std::fs::remove_dir_all(&dir).expect("removed");
}

#[test]
fn seconds_that_come_again_are_answered_from_memory_while_the_store_has_others() {
    let dir = folder("set-back");
    let engine = engine(&dir, Retention::default());
    (T..T + 1_000).for_each(|time| engine.push(frame(time)));
    assert_eq!(engine.problem(), None);
    // The frame of a second has as many operations as one of the next hour's.
    let again = |time| Frame { time, ..frame(time % 60 + 30) };
    (T + 540..T + 550).for_each(|time| engine.push(again(time)));
    let problem = engine.problem().expect("recording is paused");
    assert!(problem.starts_with("the clock was set back"), "{problem}");
    let seconds = |from: u64, to: u64| ask(&engine, "nfs3.ops", T + from, T + to, 1).total;
    let plus = |n: u64| Some(1.0 + n as f64);
    assert_eq!(seconds(545, 551), [plus(35), plus(36), plus(37), plus(38), plus(39), None]);
    assert_eq!(seconds(538, 542), [plus(58), plus(59), plus(30), plus(31)]);
    // What was recorded before is still there, and recording continues.
    engine.push(frame(T + 1_000));
    assert_eq!(engine.problem(), None);
    assert_eq!(seconds(538, 542), [plus(58), plus(59), plus(0), plus(1)]);
    std::fs::remove_dir_all(&dir).expect("removed");
}

#[test]
fn intervals_count_back_from_now_and_are_bounded() {
    let dir = folder("intervals");
    let engine = engine(&dir, Retention::default());
    let now = wall_ns() / NS_PER_S;
    (now - 100..now).for_each(|time| engine.push(frame(time)));
    let stat: StatId = "nfs3.ops".parse().expect("an id");
    let last = engine.data(&stat, &Query::default()).expect("an answer");
    assert_eq!((last.from, last.to), (now - 60, now));
    assert!(last.total.iter().all(Option::is_some));
    let query = Query { from: Some(-10), to: Some(-5), ..Query::default() };
    let some = engine.data(&stat, &query).expect("an answer");
    assert_eq!((some.from, some.to), (now - 10, now - 5));
    let year = Query { from: Some(-31_536_000), ..Query::default() };
    let long = engine.data(&stat, &year).expect("an answer");
    assert!(long.times.len() as u64 <= POINTS_MAX && long.step > 1000);
    // The wrong way round, and in milliseconds or for ever, from the store and from the recorder.
    let millis = (now * 1000) as i64;
    for (from, to) in [(-5, -10), (millis - 60_000, millis), (0, i64::MAX)] {
        let wrong = Query { from: Some(from), to: Some(to), ..Query::default() };
        for stat in [&stat, &"nfs3.ops[client=a][op=read][file]".parse().expect("an id")] {
            let answer = engine.data(stat, &wrong);
            assert!(matches!(answer, Err(QueryError::Interval(_))), "{from} to {to}: {answer:?}");
        }
    }
    for step in [u64::MAX, u64::MAX - 1] {
        let one = engine.data(&stat, &Query { step, ..Query::default() }).expect("an answer");
        assert_eq!(one.total.len(), 1);
        assert!(one.times[0].checked_add(one.step).is_some());
    }
    std::fs::remove_dir_all(&dir).expect("removed");
}

#[test]
fn the_answer_is_the_data_object_of_the_api() {
    let dir = folder("json");
    let engine = engine(&dir, Retention::default());
    (T..T + 2).for_each(|time| engine.push(frame(time)));
    let json = |id| serde_json::to_value(ask(&engine, id, T, T + 2, 1)).expect("JSON");
    let data = json("nfs3.ops[client]");
    let mut names: Vec<&String> = data.as_object().expect("an object").keys().collect();
    names.sort();
    assert_eq!(
        names,
        [
            "dropped",
            "error_bound",
            "exact",
            "from",
            "note",
            "other",
            "rows",
            "source",
            "stat",
            "step",
            "times",
            "title",
            "to",
            "total",
            "unit"
        ]
    );
    assert_eq!(data["rows"][0]["key"], "a");
    assert_eq!(data["source"], "store");
    assert!(data["other"].is_null() && data["note"].is_null());
    let heat = json("nfs3.ops[latency]");
    assert!(heat.get("rows").is_none() && heat["buckets"].is_array());
    std::fs::remove_dir_all(&dir).expect("removed");
}

#[test]
fn every_statistic_has_the_title_of_its_group() {
    let titles: std::collections::BTreeMap<_, _> =
        Engine::statistics().into_iter().map(|one| (one.group, one.group_name)).collect();
    assert_eq!(titles.len(), probe::schema::schema().groups().len());
    for group in probe::schema::schema().groups() {
        assert_eq!(titles.get(&group.group), Some(&group.name));
    }
}
