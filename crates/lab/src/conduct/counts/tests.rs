//! The server's counts against the clients'.

use super::*;

fn row(op: &str, client: &str, count: u64, bytes: u64) -> CountRow {
    CountRow { op: op.into(), client: client.into(), count, bytes, latency_ns: count * 1000 }
}

fn compared(by: Counting, kind: Kind, rows: &[CountRow], clients: ClientTotals) -> Comparison {
    let rows: Vec<&CountRow> = rows.iter().collect();
    record((1.0, 2.0), true, &rows, (by, kind), clients).compared.unwrap()
}

#[test]
fn operations_of_protocols_of_records() {
    let totals = ClientTotals { ops: 30, bytes: 1, slots: 4 };
    let nfs = [row("read", "a", 10, 0), row("read", "b", 20, 0), row("sequence", "a", 99, 0)];
    assert_eq!(compared(Counting::Transfers, Kind::RandRead, &nfs, totals).server, 30);
    assert!(compared(Counting::Transfers, Kind::RandRead, &nfs, totals).agrees);
    assert!(
        !compared(Counting::Transfers, Kind::SyncWrite, &nfs, totals).agrees,
        "no write was counted"
    );
    let scsi = [row("read(10)", "a", 10, 0), row("read(16)", "a", 20, 0)];
    let scsi = [&scsi[..], &[row("read capacity(10)", "a", 9, 0)]].concat();
    assert!(compared(Counting::Transfers, Kind::SeqRead, &scsi, totals).agrees);
    let made = [row("create", "a", 15, 0), row("remove", "a", 15, 0)];
    assert!(compared(Counting::Calls, Kind::Create, &made, totals).agrees);
}

#[test]
fn bytes_of_protocols_that_stream() {
    let totals = ClientTotals { ops: 30, bytes: 1000, slots: 1 };
    let counted = compared(Counting::Bytes, Kind::SeqRead, &[row("get", "a", 1, 1000)], totals);
    assert_eq!((counted.of.as_str(), counted.agrees), ("bytes", true));
    let far = [row("get", "a", 1, 1001 + counted.in_flight)];
    assert!(!compared(Counting::Bytes, Kind::SeqRead, &far, totals).agrees);
}

#[test]
fn what_is_not_complete_is_not_compared() {
    let one = row("read", "a", 10, 0);
    let totals = ClientTotals { ops: 30, ..Default::default() };
    let found = record((1.0, 2.0), false, &[&one], (Counting::Calls, Kind::RandRead), totals);
    assert_eq!(found.compared, None);
    assert_eq!(mean_latency(&found, Counting::Calls, Kind::RandRead), Some(1000.0));
    assert_eq!(mean_latency(&found, Counting::Calls, Kind::SyncWrite), None);
}

#[test]
fn other_clients_are_left_out() {
    let counts = Counts {
        complete: true,
        rows: vec![row("read", "127.0.0.11", 1, 0), row("read", "192.0.2.9", 1, 0)],
    };
    let own = [Some("127.0.0.11".to_owned())];
    assert_eq!(of_clients(&counts, &own).len(), 1);
    // Their addresses are not known, or are others for the server.
    assert_eq!(of_clients(&counts, &[None]).len(), 2);
    assert_eq!(of_clients(&counts, &[Some("10.0.0.1".to_owned())]).len(), 2);
}

#[test]
fn addresses_that_are_translated_on_the_way() {
    let of = |rows: &[&str]| {
        let rows = rows.iter().map(|client| row("read", client, 1, 0)).collect();
        Counts { complete: true, rows }
    };
    let clients = |all: &[&str]| all.iter().map(|c| Some((*c).to_owned())).collect::<Vec<_>>();
    let both = clients(&["10.0.0.2", "10.0.0.3"]);
    assert_eq!(Translated::of(&of(&["10.0.0.2", "10.0.0.3", "10.0.0.9"]), &both), None);
    assert_eq!(Translated::of(&of(&[]), &both), None, "nothing was counted");
    assert_eq!(Translated::of(&of(&["192.0.2.1"]), &[None]), None, "nothing is known");
    let counts = of(&["192.0.2.1"]);
    let found = Translated::of(&counts, &both).unwrap();
    assert_eq!((found.seen_as("10.0.0.2"), found.seen_as("10.0.0.4")), (Some("192.0.2.1"), None));
    assert_eq!(
        found.sentence(),
        "addresses are translated on the way: clients leave from 10.0.0.2, 10.0.0.3, the server \
         sees 192.0.2.1"
    );
    assert_eq!(of_clients(&counts, &both).len(), 1);
    // One of them directly: all rows count, or the counts would not agree.
    let counts = of(&["192.0.2.1", "10.0.0.3"]);
    let found = Translated::of(&counts, &both).unwrap();
    assert_eq!((found.seen_as("10.0.0.2"), found.seen_as("10.0.0.3")), (Some("192.0.2.1"), None));
    assert_eq!(of_clients(&counts, &both).len(), 2);
    // With several addresses, the counts do not show which client has which.
    let found = Translated::of(&of(&["192.0.2.1", "192.0.2.2"]), &both).unwrap();
    assert_eq!(found.seen_as("10.0.0.2"), None);
}
