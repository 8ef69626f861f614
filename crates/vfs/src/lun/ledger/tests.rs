//! Tests of the ledger's edges.

use std::sync::mpsc;
use std::time::Duration;

use base::limits::FLUSH_FAILURES_KEPT;

use super::{Ledger, Written};
use crate::status::Status;

#[test]
fn a_write_during_a_flush_counts_before_and_after_it() {
    let ledger = Ledger::default();
    // A flush that succeeds while the write is in progress has not covered it; the next one fails.
    let ((), written) = ledger.noted(|| ledger.flush(|| Ok(())).expect("good"));
    assert_eq!(ledger.flush(|| Err(Status::Io)), Err(Status::Io));
    assert_eq!(ledger.check(written), Err(Status::Io));
    // A flush that fails while the write is in progress may have lost it.
    let (_, written) = ledger.noted(|| ledger.flush(|| Err(Status::Io)));
    ledger.flush(|| Ok(())).expect("good");
    assert_eq!(ledger.check(written), Err(Status::Io));
}

#[test]
fn a_reported_loss_is_not_reported_again() {
    let ledger = Ledger::default();
    let ((), mut written) = ledger.noted(|| ());
    let asked = written;
    assert!(ledger.flush(|| Err(Status::Io)).is_err());
    let ((), later) = ledger.noted(|| ());
    written.join(later);
    written.settle(asked);
    assert_eq!(ledger.check(written), Ok(()));
    assert!(!written.is_empty());
    written.settle(later);
    assert_eq!(written, Written::NONE);
}

#[test]
fn many_failures_are_remembered_in_few_ranges() {
    let ledger = Ledger::default();
    let ((), first) = ledger.noted(|| ());
    for _ in 0..FLUSH_FAILURES_KEPT + 5 {
        assert!(ledger.flush(|| Err(Status::Io)).is_err());
        let ((), _) = ledger.noted(|| ());
    }
    assert_eq!(ledger.check(first), Err(Status::Io));
    assert!(ledger.lock().lost.len() <= FLUSH_FAILURES_KEPT);
    assert_eq!(ledger.failures(), FLUSH_FAILURES_KEPT as u64 + 5);
}

#[test]
fn pending_writes_are_reported_while_a_flush_is_stuck() {
    let ledger = Ledger::default();
    let ((), _) = ledger.noted(|| ());
    let (begun, has_begun) = mpsc::channel();
    let (let_go, may_end) = mpsc::channel::<()>();
    let (sender, receiver) = mpsc::channel();
    let asked = &ledger;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            asked.flush(|| {
                begun.send(()).expect("somebody waits");
                // It ends when the other side has been dropped.
                let _ = may_end.recv();
                Ok(())
            })
        });
        has_begun.recv().expect("the flush begins");
        scope.spawn(move || sender.send(asked.is_dirty()));
        let answer = receiver.recv_timeout(Duration::from_secs(10));
        drop(let_go);
        assert_eq!(answer, Ok(true));
    });
    assert!(!ledger.is_dirty());
}
