//! Each row of the table of triggers, for each kind of lease: what the holder keeps, and whether
//! the operation waits.

use std::sync::Arc;

use super::super::super::*;
use super::super::tests::{KEY, Log, SLOT, attr, open_of, take};

/// What `from` is broken to (`None`: not at all), and whether the operation waits.
type Row = (Caching, Option<Caching>, bool);

const R: Caching = Caching::READ;
const RH: Caching = Caching::of_bits(3);
const RW: Caching = Caching::READ_WRITE;
const RWH: Caching = Caching::ALL;
const NONE: Caching = Caching::NONE;

/// Locks bytes, in each of the ways that there are; whether all have to wait.
fn locks(table: &LockTable, kind: Kind) -> bool {
    let (other_client, bytes) = (open_of(9), Range::to_end(0));
    let waits = table.lock(KEY, &other_client, bytes, kind) == Err(Refused::Recalling);
    let again = [
        table.relock(KEY, &other_client, bytes, kind) == Err(Refused::Recalling),
        table.lock_or_wait(KEY, &other_client, bytes, kind, Box::new(drop))
            == Err(Refused::Recalling),
    ];
    assert_eq!(again, [waits; 2], "{kind:?}");
    waits
}

/// Has another client do something to a file with a lease.
fn does(table: &LockTable, trigger: Trigger) -> bool {
    let other_client = open_of(9);
    let waits = |refused: Result<Share, Refused>| refused == Err(Refused::Recalling);
    let open = |access, deny, overwrites| {
        let opening = OpenOptions { overwrites, ..OpenOptions::default() };
        waits(table.open_smb(KEY, &other_client, Share { access, deny }, (false, opening)))
    };
    match trigger {
        Trigger::OpenRead => open(SHARE_READ, 0, false),
        Trigger::OpenWrite => open(SHARE_WRITE, 0, false),
        Trigger::Overwrite => open(SHARE_WRITE, 0, true),
        // The holder has it open for reading.
        Trigger::Conflict => open(SHARE_WRITE, SHARE_READ, false),
        Trigger::RangeShared => locks(table, Kind::Read),
        Trigger::RangeExclusive => locks(table, Kind::Write),
        Trigger::TestExclusive => !table.may_test(KEY, other_client.client, Kind::Write),
        other => !table.may(KEY, other),
    }
}

fn row(style: &str, (from, to, waits): Row, trigger: Trigger) {
    let (table, log) = (LockTable::default(), Arc::new(Log::default()));
    let holder = open_of(1);
    table.open(KEY, &holder, Share { access: SHARE_READ, deny: 0 }).expect("free");
    match style {
        "delegation" => table.grant(SLOT, &attr(1), &holder, from, log.clone()).expect("free"),
        _ => {
            let granted = take(&table, (&holder, &holder), (style == "oplock", from), &log);
            assert_eq!(granted.caching, from, "{style} {trigger:?}");
        }
    }
    assert_eq!(does(&table, trigger), waits, "{style} {from:?} {trigger:?}: waits");
    let broken: Vec<_> = log.taken().into_iter().map(|what| (what.from, what.to)).collect();
    let expected: Vec<_> = to.map(|to| (from, to)).into_iter().collect();
    assert_eq!(broken, expected, "{style} {from:?} {trigger:?}");
}

#[test]
fn each_row_for_leases() {
    for trigger in Trigger::ALL {
        let rows: [Row; 4] = match trigger {
            Trigger::OpenRead
            | Trigger::OpenWrite
            | Trigger::Read
            | Trigger::Look
            | Trigger::TestExclusive => {
                [(R, None, false), (RH, None, false), (RW, Some(R), true), (RWH, Some(RH), true)]
            }
            Trigger::Overwrite
            | Trigger::Write
            | Trigger::RangeShared
            | Trigger::RangeExclusive => [
                (R, Some(NONE), false),
                (RH, Some(NONE), false),
                (RW, Some(NONE), true),
                (RWH, Some(NONE), true),
            ],
            Trigger::Conflict | Trigger::Name => {
                [(R, None, false), (RH, Some(R), true), (RW, None, false), (RWH, Some(RW), true)]
            }
            Trigger::Attributes => {
                [(R, None, false), (RH, None, false), (RW, None, false), (RWH, None, false)]
            }
        };
        rows.into_iter().for_each(|one| row("lease", one, trigger));
    }
}

#[test]
fn each_row_for_oplocks() {
    for trigger in Trigger::ALL {
        let rows: [Row; 3] = match trigger {
            Trigger::OpenRead
            | Trigger::OpenWrite
            | Trigger::Read
            | Trigger::Look
            | Trigger::TestExclusive => {
                [(R, None, false), (RW, Some(R), true), (RWH, Some(R), true)]
            }
            Trigger::Overwrite
            | Trigger::Write
            | Trigger::RangeShared
            | Trigger::RangeExclusive => {
                [(R, Some(NONE), false), (RW, Some(NONE), true), (RWH, Some(NONE), true)]
            }
            Trigger::Conflict | Trigger::Name => {
                [(R, None, false), (RW, None, false), (RWH, Some(R), true)]
            }
            Trigger::Attributes => [(R, None, false), (RW, None, false), (RWH, None, false)],
        };
        rows.into_iter().for_each(|one| row("oplock", one, trigger));
    }
}

#[test]
fn each_row_for_delegations() {
    for trigger in Trigger::ALL {
        let rows: [Row; 2] = match trigger {
            Trigger::OpenRead | Trigger::Read | Trigger::Look | Trigger::RangeShared => {
                [(R, None, false), (RW, Some(NONE), true)]
            }
            Trigger::OpenWrite
            | Trigger::Overwrite
            | Trigger::Write
            | Trigger::Attributes
            | Trigger::RangeExclusive
            | Trigger::TestExclusive
            | Trigger::Name => [(R, Some(NONE), true), (RW, Some(NONE), true)],
            Trigger::Conflict => [(R, None, false), (RW, None, false)],
        };
        rows.into_iter().for_each(|one| row("delegation", one, trigger));
    }
}
