//! Delegations with a given clock: granted, recalled, returned, revoked, reclaimed.

use vfs::attr::{Attr, FileType, Time};
use vfs::handle::Handle;
use vfs::locks::{Caching, Looked, Unflushed};
use wire::nfs4::{seq4_status, why_no_delegation4};

use super::super::channel::{Callback, CallbackCred, CbEnd, PathStatus};
use super::super::deleg::{Caller, Deleg, DelegationRequest, Phase};
use super::*;
use crate::rpc::Back;

/// Records the delegations that it should recall.
#[derive(Default)]
struct Called(Mutex<Vec<Arc<Deleg>>>);

impl Caller for Arc<Called> {
    fn recall(&self, deleg: &Arc<Deleg>) {
        lock(&self.0).push(Arc::clone(deleg));
    }
    fn look(&self, _: &Arc<Deleg>, _: bool) -> Looked {
        Looked::Unknown
    }
    fn probe(&self, _: &Arc<Client>) {}
}

fn state_with_caller() -> (State, Arc<Called>) {
    let (state, called) = (state(), Arc::<Called>::default());
    state.recalls.set_caller(Box::new(Arc::clone(&called)));
    (state, called)
}

/// A 4.1 client that can be called, and its session.
fn callable(state: &State, name: &[u8], now: u64) -> (Arc<Client>, Arc<Session>, Arc<Back>) {
    let (client, id) = client41(state, name, now);
    let session = state.session(&id).unwrap();
    let back = Back::alone(client.id);
    state.with_channel(&session, |channel| {
        channel.set(1, CallbackCred::None);
        channel.bind(&back);
    });
    (client, session, back)
}

fn attr() -> Attr {
    attr_of(KEY)
}

/// Attributes of a file.
pub(super) fn attr_of(key: FileKey) -> Attr {
    let zero = Time::default();
    Attr {
        kind: FileType::Regular,
        mode: 0o644,
        nlink: 1,
        uid: 0,
        gid: 0,
        size: 0,
        used: 0,
        rdev: (0, 0),
        fsid: key.fsid,
        fileid: key.fileid,
        generation: key.generation,
        atime: zero,
        mtime: zero,
        ctime: zero,
        change: 0,
        birth: None,
    }
}

fn delegate(state: &State, client: &Arc<Client>, now: u64) -> Result<Stateid4, u32> {
    delegate_for(state, client, now, Caching::READ)
}

fn delegate_for(
    state: &State,
    client: &Arc<Client>,
    now: u64,
    kind: Caching,
) -> Result<Stateid4, u32> {
    state.may_delegate(client, FILE, now)?;
    let (handle, attr) = (Handle::new(b"a handle").unwrap(), attr());
    let wanted = DelegationRequest { file: FILE, slot: FILE, handle: &handle, attr: &attr };
    state.delegate(client, wanted, kind)
}

const FILE: u64 = 0x1_0000;
const SECOND: u64 = NS_PER_S;

fn open_write(state: &State, client: &Arc<Client>, now: u64) -> Result<Stateid4, Nfsstat4> {
    state.open(client, KEY, &client.owner(b"w").unwrap(), BOTH, now)
}

fn flags(state: &State, session: &Session) -> u32 {
    state.status_flags(session)
}

#[test]
fn a_conflict_recalls_and_continues_after_the_return() {
    for minor in [0, 1] {
        let (state, called) = state_with_caller();
        let holder = match minor {
            0 => {
                let client = client40(&state, b"holder", 0);
                client.way_back.path().status = PathStatus::Up;
                client
            }
            _ => callable(&state, b"holder", 0).0,
        };
        let other = client41(&state, b"other", 0).0;
        let id = delegate(&state, &holder, 0).unwrap();
        assert_eq!(state.recalls.counts(), (1, 0));
        assert_eq!(open_write(&state, &other, 1), Err(Nfsstat4::DELAY));
        let deleg = Arc::clone(&lock(&called.0)[0]);
        state.recalled(&deleg, 1);
        assert_eq!(open_write(&state, &other, 2), Err(Nfsstat4::DELAY));
        assert_eq!(lock(&called.0).len(), 1, "the holder is told once");
        assert_eq!(state.check_io(&holder, &id, KEY, 1), Ok(()), "it may read meanwhile");
        assert_eq!(state.check_io(&holder, &id, KEY, 2), Err(Nfsstat4::OPENMODE));
        assert_eq!(state.delegation_return(&holder, &id), Ok(()), "minor version {minor}");
        assert_eq!(state.recalls.counts(), (0, 0));
        assert!(open_write(&state, &other, 3).is_ok());
        assert_eq!(state.delegation_return(&holder, &id), Err(Nfsstat4::BAD_STATEID));
        assert!(state.look_at_recalls(2 * LEASE).is_empty());
        assert_eq!(state.recalls.counts(), (0, 0), "what was returned is not taken away");
    }
}

#[test]
fn its_own_opens_are_not_in_the_way() {
    let (state, called) = state_with_caller();
    let (holder, ..) = callable(&state, b"holder", 0);
    delegate(&state, &holder, 0).unwrap();
    assert!(open_write(&state, &holder, 1).is_ok());
    assert!(lock(&called.0).is_empty());
}

#[test]
fn none_is_granted_without_a_back_channel_or_where_others_write() {
    let (state, _) = state_with_caller();
    let (silent, _) = client41(&state, b"silent", 0);
    assert_eq!(delegate(&state, &silent, 0), Err(why_no_delegation4::RESOURCE));
    let (holder, session, _back) = callable(&state, b"holder", 0);
    let written = open_write(&state, &silent, 0).unwrap();
    assert_eq!(delegate(&state, &holder, 0), Err(why_no_delegation4::CONTENTION));
    state.close(&silent, &written, KEY).unwrap();
    let id = delegate(&state, &holder, 0).unwrap();
    assert_eq!(delegate(&state, &holder, 0), Err(why_no_delegation4::RESOURCE), "one is enough");
    state.delegation_return(&holder, &id).unwrap();
    state.with_channel(&session, |channel| channel.unbind(holder.id));
    assert_eq!(delegate(&state, &holder, 0), Err(why_no_delegation4::RESOURCE));
}

#[test]
fn after_a_conflict_the_file_is_left_alone_for_a_while() {
    let (state, called) = state_with_caller();
    let (holder, ..) = callable(&state, b"holder", 0);
    let other = client41(&state, b"other", 0).0;
    let id = delegate(&state, &holder, SECOND).unwrap();
    assert_eq!(open_write(&state, &other, SECOND), Err(Nfsstat4::DELAY));
    let deleg = Arc::clone(&lock(&called.0)[0]);
    state.recalled(&deleg, SECOND);
    state.delegation_return(&holder, &id).unwrap();
    assert_eq!(delegate(&state, &holder, 30 * SECOND), Err(why_no_delegation4::CONTENTION));
    assert!(delegate(&state, &holder, 31 * SECOND).is_ok());
}

#[test]
fn a_client_without_a_reply_loses_it_after_a_lease_and_is_notified() {
    let (state, called) = state_with_caller();
    let (holder, session, _back) = callable(&state, b"holder", 0);
    let other = client41(&state, b"other", 0).0;
    let id = delegate(&state, &holder, 0).unwrap();
    assert_eq!(open_write(&state, &other, SECOND), Err(Nfsstat4::DELAY));
    let deleg = Arc::clone(&lock(&called.0)[0]);
    state.recalled(&deleg, SECOND);
    deleg.set_phase(Phase::Notified);
    holder.renew(LEASE);
    assert!(state.look_at_recalls(SECOND + LEASE).is_empty());
    assert_eq!(state.test_stateid(&holder, &id), Nfsstat4::OK, "its time is not over");
    holder.renew(SECOND + LEASE);
    assert!(state.look_at_recalls(SECOND + LEASE + 1).is_empty());
    assert_eq!(state.recalls.counts(), (0, 1));
    assert!(open_write(&state, &other, SECOND + LEASE + 1).is_ok());
    let revoked = Nfsstat4::DELEG_REVOKED;
    assert_eq!(state.test_stateid(&holder, &id), revoked);
    assert_eq!(state.check_io(&holder, &id, KEY, 1), Err(revoked));
    assert_eq!(state.delegation_return(&holder, &id), Err(revoked));
    assert_eq!(flags(&state, &session), seq4_status::RECALLABLE_STATE_REVOKED);
    assert_eq!(state.free_stateid(&holder, &id), Ok(()));
    assert_eq!(flags(&state, &session), 0);
    assert_eq!(state.test_stateid(&holder, &id), Nfsstat4::BAD_STATEID);
}

#[test]
fn a_client_that_went_away_loses_it_at_once() {
    let (state, called) = state_with_caller();
    let (holder, ..) = callable(&state, b"holder", 0);
    let other = client41(&state, b"other", 2 * LEASE).0;
    delegate(&state, &holder, 0).unwrap();
    assert_eq!(open_write(&state, &other, 2 * LEASE), Err(Nfsstat4::DELAY));
    let deleg = Arc::clone(&lock(&called.0)[0]);
    state.recalled(&deleg, 2 * LEASE);
    state.look_at_recalls(2 * LEASE);
    assert!(open_write(&state, &other, 2 * LEASE).is_ok());
}

#[test]
fn what_was_not_delivered_is_called_again() {
    let (state, called) = state_with_caller();
    let (holder, ..) = callable(&state, b"holder", 0);
    let other = client41(&state, b"other", 0).0;
    delegate(&state, &holder, 0).unwrap();
    assert_eq!(open_write(&state, &other, 1), Err(Nfsstat4::DELAY));
    let deleg = Arc::clone(&lock(&called.0)[0]);
    state.recalled(&deleg, 1);
    deleg.set_phase(Phase::Unsent);
    assert_eq!(state.look_at_recalls(2).len(), 1);
    deleg.set_phase(Phase::Sent);
    assert!(state.look_at_recalls(3).is_empty());
    deleg.set_phase(Phase::Unsent);
    assert_eq!(state.look_at_recalls(4).len(), 1);
}

#[test]
fn a_held_delegation_is_not_freed_and_keeps_its_client() {
    let (state, _) = state_with_caller();
    let (holder, session, _back) = callable(&state, b"holder", 0);
    let id = delegate(&state, &holder, 0).unwrap();
    assert_eq!(state.test_stateid(&holder, &id), Nfsstat4::OK);
    assert_eq!(state.free_stateid(&holder, &id), Err(Nfsstat4::LOCKS_HELD));
    state.destroy_session(&session.id, true).unwrap();
    assert_eq!(state.destroy_clientid(holder.id), Err(Nfsstat4::CLIENTID_BUSY));
    assert!(state.expire(holder.id));
    assert_eq!((state.recalls.counts(), state.locks.counts().leases), ((0, 0), 0));
}

#[test]
fn a_lost_back_channel_is_reported_until_another_is_bound() {
    let (state, _) = state_with_caller();
    let (holder, session, back) = callable(&state, b"holder", 0);
    let (asked_none, plain) = client41(&state, b"plain", 0);
    state.sweep(1);
    assert_eq!(flags(&state, &session), 0);
    back.close();
    state.sweep(2);
    let down = seq4_status::CB_PATH_DOWN | seq4_status::CB_PATH_DOWN_SESSION;
    assert_eq!(flags(&state, &session), down);
    let plain = state.session(&plain).unwrap();
    assert_eq!(flags(&state, &plain), 0, "{} never asked for one", asked_none.id);
    let gone = Back::alone(7);
    gone.close();
    state.with_channel(&session, |channel| channel.bind(&gone));
    assert_eq!(flags(&state, &session), down, "the new one is gone already");
    let back = Back::alone(8);
    state.with_channel(&session, |channel| channel.bind(&back));
    assert_eq!(flags(&state, &session), 0);
    assert!(state.can_call(&holder));
}

#[test]
fn slots_go_in_step_and_a_silent_client_is_notified() {
    let (state, _) = state_with_caller();
    let (holder, session, _back) = callable(&state, b"holder", 0);
    delegate(&state, &holder, 0).unwrap();
    let deleg = state.delegation(&holder, &delegation_of(&state, &holder)).unwrap();
    let turn = |now| state.with_channel(&session, |channel| channel.turn(&deleg, now));
    let ended = |slot, end| state.with_channel(&session, |channel| channel.ended(slot, end));
    for slot in 0..attrs().maxrequests {
        let turn = turn(0).expect("a slot");
        assert_eq!((turn.slot, turn.sequence, turn.highest), (slot, 1, slot));
    }
    assert_eq!(turn(0).err(), Some(true), "all are busy");
    let next = ended(2, CbEnd::Done);
    assert_eq!(next.len(), 1, "who waits has his turn");
    let again = turn(0).expect("a slot");
    assert_eq!((again.slot, again.sequence), (2, 2));
    assert!(ended(2, CbEnd::Unsent).is_empty());
    assert_eq!(turn(0).ok().map(|t| (t.slot, t.sequence)), Some((2, 2)), "it never left");
    state.sweep(2 * state.patience_ns());
    assert!(!state.can_call(&holder), "it has not answered");
    ended(0, CbEnd::Done);
    assert!(state.can_call(&holder), "late is better than never");
    ended(1, CbEnd::Fault);
    assert_eq!(flags(&state, &session), seq4_status::BACKCHANNEL_FAULT | seq4_status::CB_PATH_DOWN);
}

#[test]
fn a_recall_that_waits_for_a_slot_is_sent_again_when_its_session_is_destroyed() {
    let (state, called) = state_with_caller();
    let (holder, session, _back) = callable(&state, b"holder", 0);
    delegate(&state, &holder, 0).unwrap();
    let deleg = state.delegation(&holder, &delegation_of(&state, &holder)).unwrap();
    let turn = || state.with_channel(&session, |channel| channel.turn(&deleg, 0).err());
    for _ in 0..attrs().maxrequests {
        assert_eq!(turn(), None);
    }
    deleg.set_phase(Phase::Sent);
    assert_eq!(turn(), Some(true), "it waits");
    state.destroy_session(&session.id, true).unwrap();
    assert_eq!(deleg.phase(), Phase::Unsent);
    assert_eq!(lock(&called.0).len(), 1, "at once");
    assert_eq!(turn(), Some(false), "none waits for that session any more");
}

#[test]
fn a_delegation_ends_once() {
    let (state, _) = state_with_caller();
    let (holder, ..) = callable(&state, b"holder", 0);
    let other = callable(&state, b"other", 0).0;
    delegate(&state, &holder, 0).unwrap();
    delegate(&state, &other, 0).unwrap();
    let id = delegation_of(&state, &holder);
    let mut held = holder.held.lock();
    assert!(held.undelegate(&id));
    assert!(!held.undelegate(&id), "returned while its share is removed");
    drop(held);
    let deleg = state.delegation(&other, &delegation_of(&state, &other)).unwrap();
    let mut held = other.held.lock();
    assert!(held.undelegate(&deleg.stateid));
    held.remember_revoked(&deleg);
    assert!(!held.undelegate(&deleg.stateid), "revoked");
    assert_eq!(held.find_deleg(&deleg.stateid, true).err(), Some(Nfsstat4::DELEG_REVOKED));
}

/// The stateid of the one delegation that a client holds.
fn delegation_of(state: &State, client: &Client) -> Stateid4 {
    let number = 1;
    let mut other = [0; 12];
    let words = [5, client.id as u32, number].map(u32::to_be_bytes);
    other.copy_from_slice(words.as_flattened());
    let id = Stateid4 { seqid: 1, other };
    assert_eq!(state.test_stateid(client, &id), Nfsstat4::OK);
    id
}

#[test]
fn a_client_of_4_0_is_called_where_it_has_confirmed() {
    let (state, _) = state_with_caller();
    let (id, confirm) = state.setclientid(b"a", [1; 8], 0, 0).unwrap();
    let callback = Callback { address: Some(([127, 0, 0, 1], 9).into()), program: 3, ident: 4 };
    state.propose_callback(id, confirm, callback);
    state.setclientid_confirm(id, confirm, 0, 0).unwrap();
    let client = state.confirm_callback(id, confirm).expect("a new way");
    assert_eq!(client.way_back.path().callback, Some(callback));
    assert!(state.confirm_callback(id, confirm).is_none(), "a repeated one says nothing new");
    assert!(!state.can_call(&client), "nobody has tried");
    client.way_back.path().status = PathStatus::Up;
    client.way_back.path().since_ns = Some(0);
    assert!(state.can_call(&client));
    delegate(&state, &client, 0).unwrap();
    assert!(!state.path_is_down(&client));
    state.sweep(2 * state.patience_ns());
    assert!(state.path_is_down(&client), "RENEW says so");
    assert!(state.should_probe(&client, 3 * state.patience_ns()));
}

#[test]
fn others_wait_longer_than_a_holder_has_to_give_back() {
    let state = state();
    let limit = std::time::Duration::from_nanos(state.lease_ns);
    assert!(state.locks.recall_patience() > limit);
    assert!(vfs::locks::LockTable::default().recall_patience() > std::time::Duration::ZERO);
}

#[test]
fn one_for_writing_is_in_the_way_of_every_other_open() {
    let (state, called) = state_with_caller();
    let (holder, ..) = callable(&state, b"holder", 0);
    let other = client41(&state, b"other", 0).0;
    let both = Caching::READ_WRITE;
    let open_read = || state.open(&other, KEY, &other.owner(b"r").unwrap(), READ, 1);
    let read = open_read().unwrap();
    assert_eq!(delegate_for(&state, &holder, 0, both), Err(why_no_delegation4::CONTENTION));
    state.close(&other, &read, KEY).unwrap();
    let range = vfs::locks::Range::new(0, 9).unwrap();
    let lock_owner = other.owner(b"l").unwrap();
    state.locks.relock(KEY, &lock_owner, range, vfs::locks::Kind::Read).unwrap();
    assert_eq!(delegate_for(&state, &holder, 0, both), Err(why_no_delegation4::CONTENTION));
    state.locks.unlock_all(KEY, &lock_owner);
    assert!(open_write(&state, &holder, 0).is_ok(), "its own open is none of another");
    let id = delegate_for(&state, &holder, 0, both).unwrap();
    assert_eq!(state.check_io(&holder, &id, KEY, 3), Ok(()));
    assert_eq!(open_read(), Err(Nfsstat4::DELAY));
    assert_eq!(lock(&called.0).len(), 1);
    state.delegation_return(&holder, &id).unwrap();
    assert!(open_read().is_ok());
}

#[test]
fn the_holder_is_asked_and_its_answer_used_at_least_once() {
    let (state, _) = state_with_caller();
    let (holder, ..) = callable(&state, b"holder", 0);
    let id = delegate_for(&state, &holder, 0, Caching::READ_WRITE).unwrap();
    let deleg = state.delegation(&holder, &id).unwrap();
    let known =
        |is_new| Looked::Reported(Unflushed { size: 7, change: 1, granted_change: 0, is_new });
    assert_eq!(deleg.look(0, true), (Looked::Pending, true));
    assert_eq!(deleg.look(SECOND, true), (Looked::Pending, false), "once");
    assert_eq!(deleg.look(SECOND + 1, true), (Looked::Unknown, false), "too late");
    deleg.answered(Some((7, 1)), 2 * SECOND);
    assert_eq!(deleg.look(3 * SECOND, false), (known(true), false), "it stays new");
    assert_eq!(deleg.look(60 * SECOND, true), (known(true), false), "kept for who has asked");
    assert_eq!(deleg.look(60 * SECOND, true), (Looked::Pending, true), "and for nobody else");
    deleg.answered(Some((7, 1)), 60 * SECOND);
    assert_eq!(deleg.look(60 * SECOND, true), (known(true), false));
    assert_eq!(deleg.look(61 * SECOND, true), (known(false), false), "as good as another");
    assert_eq!(deleg.look(61 * SECOND + 1, true), (Looked::Pending, true));
    deleg.answered(None, 62 * SECOND);
    assert_eq!(deleg.look(62 * SECOND, true), (Looked::Unknown, false), "it cannot say");
}
