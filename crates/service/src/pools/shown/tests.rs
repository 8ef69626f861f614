//! Lines and names of nodes.

use host_pools::profile::Profile;
use host_pools::request::{Phase, TaskStatus};
use host_pools::state::State;

use super::super::faults::tests::pool as of;
use super::*;

#[test]
fn a_task_is_shown_in_percent_and_its_end_in_a_line() {
    let mut tank = of(Profile::Mirror, State::Degraded, 1);
    tank.task = Some(TaskStatus {
        kind: Kind::Replace,
        phase: Phase::Convert,
        thousandths: 815,
        seconds_left: Some(7),
        started_s: 0,
    });
    tank.history.push(Ended {
        kind: Kind::Scrub,
        started_s: 1,
        ended_s: 60,
        complete: true,
        result: "5 MiB were read without an error.".to_owned(),
    });
    let shown = pool(&tank);
    let value = |name: &str| {
        let mut all = shown.iter().filter(|(one, _)| *one == name);
        all.next().map(|(_, value)| value.clone())
    };
    assert_eq!(value("progress"), Some(Value::number(81)));
    assert_eq!(value("phase"), Some(Value::text("convert")));
    assert_eq!(value("scrubbed"), Some(Value::number(60)));
    let history = value("history").expect("a history");
    let line = history.as_texts()[0].to_owned();
    assert!(line.ends_with("scrub: 5 MiB were read without an error."), "{line}");
}

#[test]
fn a_disk_has_the_name_that_stays() {
    let with = |ids: &[&str], serial: &str| Disk {
        name: "sda".to_owned(),
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        serial: serial.to_owned(),
        ..Disk::default()
    };
    assert_eq!(name(&with(&["wwn-1", "ata-1"], "S")), "wwn-1");
    assert_eq!(name(&with(&[], "S")), "S");
    assert_eq!(name(&with(&[], "")), "sda");
}

#[test]
fn a_snapshot_is_found_by_the_name_of_its_node() {
    let tank = of(Profile::Mirror, State::Healthy, 0);
    let node = snapshot_name(&tank.snapshots[0]);
    assert_eq!(node, "s@a@b");
    assert_eq!(snapshot(&tank, &node), tank.snapshots.first());
    assert_eq!(snapshot(&tank, "s"), None);
}
