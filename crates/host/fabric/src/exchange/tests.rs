//! Replies that are lost, late, foreign or malformed.

use super::*;
use crate::attribute::NODE_INFO;
use crate::fake::{Fake, host};
use crate::mad::Route;

/// Requests the NodeInfo of the local node.
struct Local {
    left: usize,
    replies: usize,
    lacks: Vec<QueryError>,
}

impl Work for Local {
    type Tag = ();

    fn next(&mut self) -> Option<((), Query)> {
        self.left = self.left.checked_sub(1)?;
        let target = Target::Route(Route::default());
        Some(((), Query { target, attribute: NODE_INFO, modifier: 0, data: Vec::new() }))
    }

    fn end(&mut self, (): (), result: Result<&[u8], QueryError>) {
        match result {
            Ok(data) => {
                assert_eq!(crate::attribute::NodeInfo::decode(data).node_guid, host(1));
                self.replies += 1;
            }
            Err(lack) => self.lacks.push(lack),
        }
    }
}

fn run(fake: Fake, requests: usize, limit: Duration) -> (Local, Exchange<Fake>) {
    let mut exchange = Exchange::new(fake);
    let mut work = Local { left: requests, replies: 0, lacks: Vec::new() };
    exchange.run(&mut work, limit).expect("a transport");
    (work, exchange)
}

#[test]
fn a_hundred_thousand_replies_that_are_none_are_ignored_and_counted() {
    let mut fake = Fake::new(1, 1, 42);
    fake.noise = true;
    let (work, exchange) = run(fake, 100_000, Duration::from_secs(3_600));
    assert_eq!((work.replies, work.lacks.len()), (100_000, 0));
    let ignored = exchange.ignored();
    assert_eq!(ignored.all(), 100_000, "{ignored:?}");
    assert!(ignored.malformed > 1_000 && ignored.foreign > 1_000 && ignored.mismatched > 1_000);
}

#[test]
fn lost_requests_are_sent_again() {
    let mut fake = Fake::new(1, 1, 7);
    fake.lost = 100;
    let (work, _) = run(fake, 1_000, Duration::from_secs(3_600));
    // Of a request and its reply 19 % are lost; three times in a row less than 1 %.
    assert_eq!(work.replies + work.lacks.len(), 1_000);
    assert!(work.lacks.len() < 30, "{}", work.lacks.len());
    assert!(work.lacks.iter().all(|lack| *lack == QueryError::Timeout));
}

#[test]
fn silence_ends_at_the_limit() {
    let mut fake = Fake::new(1, 1, 7);
    fake.silent.insert(host(1));
    let (work, mut exchange) = run(fake, 1_000, Duration::from_secs(5));
    assert_eq!((work.replies, work.lacks.len()), (0, 1_000));
    assert!(work.lacks.contains(&QueryError::Late) && work.lacks.contains(&QueryError::Timeout));
    assert!(exchange.transport().now() < Duration::from_secs(6));
}

#[test]
fn the_kernel_reports_of_timeouts_are_no_replies() {
    let mut exchange = Exchange::new(Fake::new(1, 1, 7));
    let mut work = Local { left: 0, replies: 0, lacks: Vec::new() };
    let mut pending = InFlight::new();
    let bytes = Mad::get(Class::SubnetByRoute, NODE_INFO, 0).encode().to_vec();
    exchange.received(&mut work, &mut pending, &Received { error: 110, bytes });
    assert_eq!((exchange.ignored().all(), work.lacks.len()), (0, 0));
}
