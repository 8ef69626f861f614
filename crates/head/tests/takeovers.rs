//! What a claim records: from which head, why, and how long each phase took.

use std::time::Duration;

use head::keys::{Cause, Member, Owner, Phases, Record, Takeover, Versioned, View};
use head::machine::{Action, Event, Machine, Outcome, Request, Settings, Time};

/// The lease of the head.
const LEASE: i64 = 77;

fn ms(n: u64) -> Time {
    Duration::from_millis(n)
}

/// The head `right`, with its requests answered as they come.
struct Head {
    machine: Machine,
    now: Time,
    pending: Option<Request>,
    started: Option<u64>,
}

impl Head {
    fn new() -> Self {
        let settings = Settings::new("right", vec![("accounts".to_owned(), "left".to_owned())]);
        let machine = Machine::new(settings);
        let mut head = Self { machine, now: ms(1_000), pending: None, started: None };
        let actions = head.machine.tick(head.now);
        head.take(actions);
        head.event(Event::Granted(head.now, LEASE));
        head
    }

    fn event(&mut self, event: Event) {
        let actions = self.machine.event(self.now, event);
        self.take(actions);
    }

    fn take(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Query(request) => self.pending = Some(request),
                Action::Start(_, number, _) => self.started = Some(number),
                Action::Renew(id) => self.event(Event::Renewed(self.now, id)),
                _ => {}
            }
        }
    }

    /// Lets it read these keys, some time later; what it requests then.
    fn reads(&mut self, view: &View, later: u64) -> Option<Request> {
        self.now += ms(later);
        let actions = self.machine.tick(self.now);
        self.take(actions);
        for _ in 0..4 {
            match self.pending.take()? {
                Request::Read => {
                    self.event(Event::Answer(self.now, Outcome::View(view.clone())));
                    self.pending.as_ref()?;
                }
                // It is what it was in the view, or is not of interest here.
                Request::Announce(..) => self.event(Event::Answer(self.now, Outcome::Done(9))),
                other => return Some(other),
            }
        }
        None
    }

    /// The takeover that it claims with these keys.
    fn claims(&mut self, view: &View) -> Takeover {
        match self.reads(view, 300) {
            Some(Request::Claim { record, .. }) => record.last.expect("it records a takeover"),
            other => panic!("no claim: {other:?}"),
        }
    }
}

fn versioned<T>(value: T, lease: i64) -> Versioned<T> {
    Versioned { value, revision: 5, lease }
}

/// Keys after an ownership of `former`, which may be a member.
fn keys(former: &str, member: Option<Member>, target: &str) -> View {
    let mut view = View::default();
    let own = versioned(Member::default(), LEASE);
    view.members.insert("right".to_owned(), own);
    if let Some(member) = member {
        view.members.insert(former.to_owned(), versioned(member, 2));
    }
    let last = Some(Takeover { to: former.to_owned(), ..Takeover::default() });
    let record = Record { number: 3, target: target.to_owned(), served: 2, last };
    view.records.insert("accounts".to_owned(), versioned(record, 0));
    view
}

fn cause(view: &View) -> (String, Cause) {
    let taken = Head::new().claims(view);
    assert_eq!(taken.to, "right");
    assert_eq!(taken.phases, None);
    (taken.from, taken.cause)
}

#[test]
fn each_cause_is_found_in_the_keys() {
    let left = |cause| ("left".to_owned(), cause);
    let draining = Member { draining: true, ..Member::default() };
    assert_eq!(cause(&keys("left", None, "left")), left(Cause::HeadLost));
    assert_eq!(cause(&keys("left", None, "right")), left(Cause::Command));
    assert_eq!(cause(&keys("left", Some(draining), "left")), left(Cause::Drain));
    let failed = Member { failed: vec!["accounts".to_owned()], ..Member::default() };
    assert_eq!(cause(&keys("left", Some(failed), "left")), left(Cause::ServerEnded));
    let cut = Member { cut: vec!["accounts".to_owned()], ..Member::default() };
    assert_eq!(cause(&keys("left", Some(cut), "left")), left(Cause::Unreachable));
    let again = keys("right", None, "right");
    assert_eq!(cause(&again), ("right".to_owned(), Cause::HeadLost), "this head was started anew");

    let mut first = keys("left", None, "left");
    first.records.clear();
    assert_eq!(cause(&first), (String::new(), Cause::Start));
    let mut older = keys("left", None, "left");
    older.records.get_mut("accounts").expect("the record").value.last = None;
    assert_eq!(cause(&older), (String::new(), Cause::Unknown));
}

#[test]
fn a_client_of_cephfs_is_known_until_the_next_owner_has_the_lock() {
    let of_client = |member| {
        let mut view = keys("left", member, "left");
        let record = view.records.get_mut("accounts").expect("the record");
        record.value.last.as_mut().expect("a takeover").cephfs_client = Some(4123);
        view
    };
    let mut head = Head::new();
    let mut view = of_client(None);
    let taken = head.claims(&view);
    assert_eq!(taken.cephfs_client, Some(4123), "this head may be lost before it has evicted it");
    assert_eq!(head.machine.lost_client("accounts"), Some(4123));
    head.event(Event::Answer(head.now, Outcome::Done(6)));
    head.machine.locked_by("accounts", 3, 9);
    assert_eq!(head.machine.lost_client("accounts"), Some(4123), "another number");
    head.machine.locked_by("accounts", 4, 9);
    head.event(Event::Fenced("accounts".to_owned(), 4, Ok(())));
    let record = Record { number: 4, target: "right".to_owned(), served: 2, last: Some(taken) };
    view.records.insert("accounts".to_owned(), Versioned { revision: 6, ..versioned(record, 0) });
    let key = Owner { head: "right".to_owned(), number: 4 };
    view.owners.insert("accounts".to_owned(), Versioned { value: key, revision: 6, lease: LEASE });
    let Some(Request::Report { record, .. }) = head.reads(&view, 300) else { panic!("no report") };
    assert_eq!(record.served, 2, "it has the lock, and does not serve yet");
    assert_eq!(record.last.expect("a takeover").cephfs_client, Some(9));
    let done = head.machine.served("accounts", 4, 1, Phases::default()).expect("a takeover");
    assert_eq!(done.cephfs_client, Some(9));

    // The former owner lives: its mount answers.
    let failed = Member { failed: vec!["accounts".to_owned()], ..Member::default() };
    let mut head = Head::new();
    assert_eq!(head.claims(&of_client(Some(failed))).cephfs_client, Some(4123));
    assert_eq!(head.machine.lost_client("accounts"), None);
}

#[test]
fn a_takeover_is_recorded_with_its_phases_once_it_is_served() {
    let mut head = Head::new();
    let mut view = keys("left", Some(Member::default()), "right");
    let owner = Owner { head: "left".to_owned(), number: 3 };
    view.owners.insert("accounts".to_owned(), versioned(owner, 2));
    assert_eq!(head.reads(&view, 300), None, "the former owner drains");
    view.owners.clear();
    let Some(Request::Claim { record, .. }) = head.reads(&view, 700) else { panic!("no claim") };
    assert_eq!((record.number, record.served), (4, 2));
    assert_eq!(head.machine.resources()["accounts"].served, 2);
    head.now += ms(30);
    head.event(Event::Answer(head.now, Outcome::Done(6)));
    head.event(Event::Fenced("accounts".to_owned(), 4, Ok(())));
    assert_eq!(head.started, Some(4));
    head.event(Event::Started("accounts".to_owned(), 4, Ok(())));
    let phases = Phases { lock: 7, start: 400, address: 1, ..Phases::default() };
    assert_eq!(head.machine.served("accounts", 3, 1, phases), None, "an older number");
    let done = head.machine.served("accounts", 4, 1_700_000_000, phases).expect("a takeover");
    assert_eq!((done.from.as_str(), done.cause), ("left", Cause::Command));
    let phases = done.phases.expect("its phases");
    assert_eq!((phases.hand_over, phases.claim), (700, 30));

    // A view from before the claim changes nothing; one from after it is written.
    let record = versioned(record, 0);
    view.records.insert("accounts".to_owned(), Versioned { revision: 6, ..record });
    let owner = Owner { head: "right".to_owned(), number: 4 };
    let owner = Versioned { value: owner, revision: 6, lease: LEASE };
    view.owners.insert("accounts".to_owned(), owner);
    let Some(Request::Report { seen, record, .. }) = head.reads(&view, 300) else {
        panic!("no report");
    };
    assert_eq!((seen, record.last.as_ref()), (6, Some(&done)));
    assert_eq!((record.number, record.target.as_str(), record.served), (4, "right", 4));
    // Another write was first: it is written again, and then no more.
    head.event(Event::Answer(head.now, Outcome::Refused));
    assert!(matches!(head.reads(&view, 300), Some(Request::Report { .. })));
    head.event(Event::Answer(head.now, Outcome::Done(7)));
    assert_eq!(head.reads(&view, 300), None);
}

/// The head `right` as the owner of the resource, with these other keys of `left`.
fn owner(left: Option<Member>) -> (Head, View) {
    let mut head = Head::new();
    let mut view = keys("left", left, "right");
    let Some(Request::Claim { record, .. }) = head.reads(&view, 300) else { panic!("no claim") };
    head.event(Event::Answer(head.now, Outcome::Done(6)));
    head.event(Event::Fenced("accounts".to_owned(), 4, Ok(())));
    head.event(Event::Started("accounts".to_owned(), 4, Ok(())));
    view.records.insert("accounts".to_owned(), Versioned { revision: 6, ..versioned(record, 0) });
    let key = Owner { head: "right".to_owned(), number: 4 };
    view.owners.insert("accounts".to_owned(), Versioned { value: key, revision: 6, lease: LEASE });
    assert_eq!(head.reads(&view, 300), None);
    (head, view)
}

fn phase(head: &Head) -> head::machine::Phase {
    head.machine.resources()["accounts"].phase
}

#[test]
fn a_confirmation_is_bound_to_the_last_ownership_that_is_known() {
    let head = Head::new();
    assert_eq!(head.machine.last_known("accounts"), Ok(0), "nothing was read");
    let mut view = keys("left", None, "left");
    let key = Owner { head: "left".to_owned(), number: 3 };
    view.owners.insert("accounts".to_owned(), versioned(key, 2));
    let mut head = Head::new();
    head.reads(&view, 300);
    assert_eq!(head.machine.last_known("accounts"), Ok(3));
    // Claims that got no lock have numbers, too.
    view.owners.clear();
    let Some(Request::Claim { .. }) = head.reads(&view, 300) else { panic!("no claim") };
    head.event(Event::Answer(head.now, Outcome::Done(6)));
    assert_eq!(head.machine.last_known("accounts"), Ok(4), "it waits for its fences");
    // Repeated at the owner, it would permit to follow each later one.
    let (head, _) = owner(Some(Member::default()));
    let refused = head.machine.last_known("accounts").expect_err("it is the owner");
    assert!(refused.starts_with("the head right owns accounts already"), "{refused}");
}

#[test]
fn a_drain_without_another_head_is_refused_with_the_reason() {
    let has = |list: &str| vec![list.to_owned()];
    for (left, expected) in [
        (None, "no other one is a member"),
        (Some(Member { draining: true, ..Member::default() }), "the head left drains"),
        (Some(Member { ending: true, ..Member::default() }), "the head left drains"),
        (
            Some(Member { failed: has("accounts"), ..Member::default() }),
            "accounts has failed on the head left",
        ),
        (
            Some(Member { cut: has("accounts"), ..Member::default() }),
            "clients do not reach accounts at the head left",
        ),
    ] {
        let (mut head, view) = owner(left);
        let refused = head.machine.drain(true).expect_err("no other head");
        assert_eq!(refused, format!("no other head may take accounts over: {expected}"));
        assert!(!head.machine.is_draining());
        head.reads(&view, 300);
        assert_eq!(phase(&head), head::machine::Phase::Owner);
    }
    let (mut head, view) = owner(Some(Member::default()));
    head.machine.drain(true).expect("left can take it");
    head.reads(&view, 300);
    assert_eq!(phase(&head), head::machine::Phase::HandingOver);
}

#[test]
fn a_head_that_drains_claims_what_no_other_head_may_own() {
    // Both were drained at once: the resource was handed over to one that takes nothing.
    let (mut head, mut view) = owner(Some(Member::default()));
    head.machine.drain(true).expect("left can take it");
    let drains = Member { draining: true, ..Member::default() };
    view.members.insert("right".to_owned(), versioned(drains.clone(), LEASE));
    head.reads(&view, 300);
    head.event(Event::Ended("accounts".to_owned(), 4, "exit status: 0".to_owned()));
    view.owners.clear();
    head.pending = None;
    head.event(Event::Answer(head.now, Outcome::Done(7)));
    head.reads(&view, 300);
    assert_eq!(phase(&head), head::machine::Phase::Offline);
    assert_eq!(head.reads(&view, 300), None, "left may own it");
    view.members.insert("left".to_owned(), versioned(drains, 2));
    let Some(Request::Claim { record, .. }) = head.reads(&view, 300) else { panic!("no claim") };
    assert_eq!((record.number, record.target.as_str()), (5, "right"));

    // A head that ends does not.
    let (mut head, mut view) = owner(Some(Member { draining: true, ..Member::default() }));
    head.machine.end();
    assert!(head.machine.has_heirs(), "left drains, and takes it all the same");
    head.reads(&view, 300);
    assert_eq!(phase(&head), head::machine::Phase::HandingOver);
    let ends = Member { ending: true, ..Member::default() };
    view.members.insert("left".to_owned(), versioned(ends, 2));
    head.reads(&view, 300);
    assert!(!head.machine.has_heirs());
}

#[test]
fn an_owner_that_clients_do_not_reach_gives_the_resource_away() {
    let no_carrier = || Some("the link eth0 has no carrier".to_owned());
    let (mut head, view) = owner(Some(Member::default()));
    head.machine.set_cut("accounts", no_carrier());
    head.reads(&view, 300);
    assert_eq!(phase(&head), head::machine::Phase::HandingOver);

    // With the other one cut too it stays, with a reason.
    let cut = Member { cut: vec!["accounts".to_owned()], ..Member::default() };
    let (mut head, view) = owner(Some(cut));
    head.machine.set_cut("accounts", no_carrier());
    head.reads(&view, 300);
    assert_eq!(phase(&head), head::machine::Phase::Owner);
    let why = head.machine.resources()["accounts"].why.clone().expect("a reason");
    assert!(why.contains("clients do not reach accounts at the head left"), "{why}");
    let refused = head.machine.set_target("accounts", "left").expect_err("it is cut");
    assert!(refused.contains("clients do not reach accounts at the head left"), "{refused}");
    head.machine.set_cut("accounts", None);
    head.reads(&view, 300);
    assert_eq!(head.machine.resources()["accounts"].why, None);
}
